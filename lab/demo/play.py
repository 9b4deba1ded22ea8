"""The play: five sizes one after the other, and what must come true of each.

What happens is told by `mpijob-elastic watch`, and whether all came true by `mpijob-elastic get -o
json`, as users have them.
"""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from lab.demo import job
from lab.demo.job import Step
from lab.demo.stage import Stage
from lab.errors import LabError
from lab.layout import Layout
from lab.processes import new_log, spawn
from lab.ranks import Ranks, State
from mpijob_elastic import names

WIDTH = 100  # columns of what is said
DISCOVERY = 1.0  # seconds; DISCOVER_HOSTS_FREQUENCY_SECS in horovod/runner/elastic/driver.py
COMMIT = 1.5  # seconds from learning that its host has left the list to a rank's end
TICK = 0.1
PRODUCT = (sys.executable, "-m", "mpijob_elastic")
WORDS: Mapping[State, str] = {
    "starting": "is being started",
    "running": "runs",
    "leaving": "learns that its host leaves",
    "ended": "ended by itself",
    "killed": "was killed",
}


class StepFailed(Exception):
    """A step that did not come true: which one, and what is missing."""


class Play:
    """The demo's job on a stage, its ranks, and what `watch` tells of it."""

    def __init__(self, stage: Stage) -> None:
        self._cluster = stage.cluster
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(stage.cluster.kubeconfig),
            "PYTHONUNBUFFERED": "1",
        }
        self._ranks: Ranks | None = None
        self._told: dict[str, State] = {}
        self._watch: subprocess.Popen[bytes] | None = None
        self._log: Path = new_log(Layout(stage.cluster.state_dir).logs, "watch")
        self._read = 0

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Leave no process of it."""
        if self._ranks:
            self._ranks.close()
        if self._watch:
            with self._watch:
                self._watch.kill()

    def perform(self, step: Step, *, patience: float) -> float:
        """Do a step; the seconds until all of it is true.

        Raise StepFailed, or LabError for a command.
        """
        print(
            f"\n{textwrap.fill(f'{step.title}: {step.text}', WIDTH)}\n$ {step.command}", flush=True
        )
        print(step.run(self._cluster), flush=True)
        if self._watch is None:
            self._watch = spawn(
                [*PRODUCT, "watch", job.NAME], log=self._log, environment=self._environment
            )
        began = time.monotonic()
        while missing := self.look(step):
            if time.monotonic() > began + patience:
                raise StepFailed(
                    f"step {step.title}: not as asked for within {patience:.0f} s: {', '.join(missing)}"
                )
        self._tell()
        return time.monotonic() - began

    def look(self, step: Step) -> list[str]:
        """Be Horovod's driver for a second; return what is not yet as the step wants it.

        Raise StepFailed.
        """
        report = self._report()
        launcher = report["launcher"]
        # A kubelet would show a launcher that was touched the new file at once; here there is none.
        if launcher and launcher["refreshed"] and self._cluster.exec_offered:
            self._ranks = self._ranks or Ranks(
                self._cluster, namespace=job.NAMESPACE, job=job.NAME, commit=COMMIT
            )
            self._ranks.discover([host.rpartition(":")[0] for host in report["hosts"]])
        until = time.monotonic() + DISCOVERY
        while time.monotonic() < until:
            self._tell()
            for host, state in self._told.items():
                if state == "killed":
                    raise StepFailed(
                        f"step {step.title}: the rank in {host} was killed; Horovod would blacklist it"
                    )
            time.sleep(TICK)
        return self._missing(report, [names.worker(job.NAME, index) for index in range(step.size)])

    def _report(self) -> dict[str, Any]:
        command = [*PRODUCT, "get", job.NAME, "-o", "json"]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LabError(f"`mpijob-elastic get` ended with {done.returncode}: {done.stderr}")
        report: dict[str, Any] = msgspec.json.decode(done.stdout)
        return report

    def _missing(self, report: dict[str, Any], wanted: list[str]) -> list[str]:
        alive = [
            names.pod_of(host)
            for host, state in self._told.items()
            if state in ("running", "leaving")
        ]
        holds = {
            "size": report["desired"] == len(wanted),
            "Role": {*wanted} <= {*(report["execNames"] or ())},
            "discover_hosts.sh": [names.pod_of(host.rpartition(":")[0]) for host in report["hosts"]]
            == wanted,
            "launcher told": bool(report["launcher"] and report["launcher"]["refreshed"]),
            "ranks": sorted(alive) == wanted or not self._cluster.exec_offered,
            "workers": [(worker["name"], worker["ready"]) for worker in report["workers"]]
            == [(n, True) for n in wanted],
        }
        return [name for name, held in holds.items() if not held]

    def _tell(self) -> None:
        """Print what `watch` has told since, and what has become of the ranks."""
        with self._log.open() as log:
            log.seek(self._read)
            for line in log:
                print(f"  {line.rstrip()}", flush=True)
            self._read = log.tell()
        if self._ranks:
            self._ranks.commit()
            for host, state in self._ranks.states.items():
                if self._told.get(host) != state:
                    print(
                        f"  {time.strftime('%H:%M:%S')}  rank in {host}: {WORDS[state]}", flush=True
                    )
            self._told = self._ranks.states
