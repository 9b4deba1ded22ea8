"""The search of `bad_neighbour`, beside a tenant that stores as much as it can in all places that are kept."""

from pathlib import Path

from lab.replicas import Controller
from tests.campaign.bad_neighbour import ALL, ALONE, visit
from tests.campaign.hoarder import KINDS, Hoarder, kueue_served
from tests.campaign.labs import served
from tests.campaign.part import Options, Outcome, above
from tests.campaign.size import memory_limit

VISITS = (ALONE, ALL, ALONE)


def run(options: Options) -> Outcome:
    """Make the visits."""
    with (
        served(beside=kueue_served) as (cluster, installed, webhook),
        Controller.start(cluster, installed) as controller,
    ):
        found = visit(
            cluster,
            installed.webhook_port,
            options,
            kind=Hoarder,
            beside={ALONE: (), ALL: KINDS},
            visits=VISITS,
        )
        peaks = {"controller": _peak(controller.pid), "webhook": _peak(webhook.pid)}
    return Outcome(
        runs=found.runs,
        violations=(
            *found.violations,
            *(
                one
                for name, peak in peaks.items()
                for one in above(f"MiB of the {name}", peak, memory_limit(name))
            ),
        ),
        numbers="; ".join(
            [found.numbers, *(f"{name} at most {peak:.0f} MiB" for name, peak in peaks.items())]
        ),
    )


def _peak(pid: int) -> float:
    """Return the most memory that a process has had, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 2**10
