"""Stand-ins for Horovod's drivers in all jobs of a lab, so that commands have ranks to wait for.

A process of its own, because `lab.ranks` starts children from programs without threads.
"""

import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lab import companions
from lab.api import Api
from lab.cluster import Cluster
from lab.errors import LabError
from lab.layout import Layout
from lab.processes import end
from lab.ranks import Ranks
from mpijob_elastic import names

ROOT = Path(__file__).parents[1]
EVERY = 0.5  # seconds between two looks
PRINTS = 5.0  # seconds between two lines in a log
GRACE = 10.0  # seconds for the process to end
COMMIT = 0.5  # seconds until a rank that shall leave has ended
_LAUNCHERS = f"{names.POD_SELECTOR},{names.LABEL_JOB_ROLE}={names.ROLE_LAUNCHER}"
_PODS = f"/api/v1/pods?labelSelector={quote(_LAUNCHERS)}"
_HOST = re.compile(r"^echo (\S+):[1-9]", re.MULTILINE)
_TARGET = "TARGET_STEPS"
_PRINT = "printf '%s\\n' \"$@\" > /proc/1/fd/1"


def target_steps(pod: Mapping[str, Any]) -> float:
    """Return the steps after which a training ends, as the variable of its launcher says; inf without one."""
    named = (one for container in pod["spec"]["containers"] for one in container.get("env", ()))
    texts = (one.get("value", "") for one in named if one["name"] == _TARGET)
    return next((int(text) for text in texts if text.isdecimal()), math.inf)


class DriverStandIn:
    """The driver of a job, as long as its launcher lives."""

    def __init__(self, cluster: Cluster, api: Api, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        self._cluster, self._api = cluster, api
        self._namespace = metadata["namespace"]
        self._job = metadata["labels"][names.LABEL_JOB_NAME]
        self._ranks = Ranks(cluster, namespace=self._namespace, job=self._job, commit=COMMIT)
        self._step, self._prints_at = 0, time.monotonic()
        self._ends_after = target_steps(pod)

    def look(self) -> None:
        """Start and end ranks as the list says, and let the launcher print now and then, or end."""
        hosts = self._hosts()
        self._ranks.discover(hosts)
        self._ranks.commit()
        if hosts and time.monotonic() >= self._prints_at:
            self._print(len(hosts))
        if self._step >= self._ends_after:
            self.end()

    def close(self) -> None:
        """End its ranks."""
        self._ranks.close()

    def end(self) -> None:
        """Let the job succeed."""
        status = json.dumps({"status": {"phase": "Succeeded"}})
        patch = ("--subresource=status", "--type=merge", "-p", status)
        self._cluster.kubectl(
            "patch", "pod", names.launcher(self._job), "-n", self._namespace, *patch
        )

    def _hosts(self) -> list[str]:
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{names.config_map(self._job)}"
        return _HOST.findall(self._api.get(path)["data"].get(names.KEY_DISCOVER_HOSTS, ""))

    def _print(self, size: int) -> None:
        """Print what a training prints."""
        self._step, self._prints_at = self._step + 1, time.monotonic() + PRINTS
        event = "end" if self._step >= self._ends_after else "step"
        step = json.dumps({"event": event, "step": self._step, "size": size})
        lines = (f"[0]<stdout>:{step}", "[1]<stdout>:of rank 1")
        launcher = names.launcher(self._job)
        words = ("--", "/bin/sh", "-c", _PRINT, "sh", *lines)
        self._cluster.kubectl("exec", "-n", self._namespace, launcher, *words)


class DriverStandIns:
    """The drivers of all jobs. ends: the jobs that succeed as soon as their launcher runs."""

    def __init__(self, cluster: Cluster, *, ends: tuple[str, ...]) -> None:
        self._cluster, self._ends = cluster, ends
        self._drivers: dict[str, DriverStandIn] = {}

    def look(self, api: Api) -> None:
        """Look at each job once; what fails is said, and looked at again later."""
        try:
            running = {pod["metadata"]["uid"]: pod for pod in api.get(_PODS)["items"] if _runs(pod)}
        except LabError as error:
            print(error, file=sys.stderr, flush=True)
            return
        for uid in self._drivers.keys() - running.keys():
            self._drivers.pop(uid).close()
        for uid, pod in running.items():
            try:
                self._look(api, uid, pod)
            except LabError as error:
                print(f"{pod['metadata']['name']}: {error}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End all ranks."""
        for driver in self._drivers.values():
            driver.close()

    def _look(self, api: Api, uid: str, pod: dict[str, Any]) -> None:
        if uid not in self._drivers:
            self._drivers[uid] = DriverStandIn(self._cluster, api, pod)
        if pod["metadata"]["labels"][names.LABEL_JOB_NAME] in self._ends:
            self._drivers[uid].end()
        self._drivers[uid].look()


def _runs(pod: dict[str, Any]) -> bool:
    """Tell whether a launcher runs, and is not about to go."""
    is_going = "deletionTimestamp" in pod["metadata"]
    return pod.get("status", {}).get("phase") == "Running" and not is_going


@contextmanager
def standing_in(
    cluster: Cluster, *, ends: tuple[str, ...] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Be the drivers of all jobs for as long as the block lasts, in this process; see DriverStandIns."""
    command = [sys.executable, "-m", "lab.drivers", cluster.name, *ends]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    layout = Layout(cluster.state_dir)
    process, _ = companions.start(layout, "drivers", command, environment=environment)
    try:
        yield process
    finally:
        end(process, within=GRACE)


def main() -> None:
    """Look until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lab", help="its name")
    parser.add_argument("ends", nargs="*", help="jobs that succeed as soon as they run")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    cluster = Cluster.attach(name=words.lab)
    drivers = DriverStandIns(cluster, ends=tuple(words.ends))
    try:
        with cluster.api() as api:
            while True:
                time.sleep(EVERY)
                drivers.look(api)
    finally:
        drivers.close()


if __name__ == "__main__":
    main()
