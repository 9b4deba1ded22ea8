"""What `get` shows of a job that KubeQueue holds."""

import json
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, Commands, forbidden, status


def enqueued(phase: str = "Enqueued") -> Answers:
    """A job that waits in KubeQueue."""
    job, waits = (
        worlds.mpi_job(replicas=1, conditions=["Created"]),
        worlds.worker(0, phase="Pending"),
    )
    job["metadata"]["annotations"] = {KUBEQUEUE_SUSPEND: "true"}
    waits["spec"]["schedulingGates"] = [{"name": names.GATE_SUSPENDED}]
    [metadata] = [worlds.role([])["metadata"] | {"name": "train-mpi-qu"}]
    unit = {
        "metadata": metadata,
        "spec": {"queue": "team"},
        "status": {"phase": phase, "message": "1 more\nneeded"},
    }
    return {
        "mpijobs": [job],
        "pods": [waits],
        "configmaps": [worlds.config_map([])],
        "queueunits": [unit],
    }


@pytest.mark.parametrize(
    ("phase", "state"), [("", "Enqueued"), ("Enqueued", "Enqueued"), ("Reserved", "Reserved")]
)
async def test_a_job_in_kube_queue_shows_the_phase_of_its_unit(
    command: Commands, phase: str, state: str
) -> None:
    lines = (await command.get(enqueued(phase))).splitlines()
    assert f"State:          {state}, " in "\n".join(lines)
    assert "Queue:          team; train-mpi-qu waits: 1 more needed" in lines
    assert not [line for line in lines if line.endswith("QUOTA")]
    assert (await command.get(enqueued(phase), job=None)).splitlines()[1].split()[1] == state


@pytest.mark.parametrize("answer", [forbidden("units"), status(404, "NotFound"), []])
async def test_who_may_not_read_its_unit_or_has_none_gets_the_rest(
    command: Commands, answer: Any
) -> None:
    read = json.loads(await command.get({**enqueued(), "queueunits": answer}, output="json"))
    assert (read["queue"], read["state"]) == (None, "Suspended")
