"""Seconds for which the workers of a job had a node, by a watch of their pods beside the product."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from lab.training.job import TrainingJob

_ENDED = ("Succeeded", "Failed")


@dataclass(kw_only=True)
class Held:
    """A worker pod; seconds since the epoch, None until it comes to that.

    bound: its condition PodScheduled, to the second. ended: when it was gone or had ended, as we
    saw it.
    """

    name: str
    bound: float | None = None
    ended: float | None = None


@dataclass(kw_only=True)
class Allocated:
    """The worker pods of a job, by uid."""

    pods: dict[str, Held] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def watched(cls, job: TrainingJob) -> Iterator["Allocated"]:
        """Watch during the block."""
        found, cluster = cls(), job.cluster
        words = (
            *("get", "pods", "--watch", "--output-watch-events", "-o", "json", "-n", job.namespace),
            f"--selector=mpi-job-name={job.name},mpi-job-role=worker",
        )
        access = (str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig))
        watch = subprocess.Popen([*access, *words], stdout=subprocess.PIPE, text=True)
        assert watch.stdout
        reader = threading.Thread(target=found._read, args=(watch.stdout,))
        reader.start()
        try:
            yield found
        finally:
            watch.terminate()
            watch.wait()
            reader.join()

    def seconds(self, *, since: float = 0.0, until: float) -> float:
        """Return the seconds of all pods together between two times."""
        return sum(
            max(0.0, min(pod.ended or until, until) - max(pod.bound, since))
            for pod in list(self.pods.values())
            if pod.bound is not None
        )

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self._see(json.loads(line), time.time())

    def _see(self, event: dict[str, Any], now: float) -> None:
        pod = event["object"]
        held = self.pods.setdefault(pod["metadata"]["uid"], Held(name=pod["metadata"]["name"]))
        for condition in pod["status"].get("conditions", ()):
            if (condition["type"], condition["status"]) == ("PodScheduled", "True"):
                at = datetime.fromisoformat(condition["lastTransitionTime"])
                held.bound = at.timestamp()
        is_over = event["type"] == "DELETED" or pod["status"].get("phase") in _ENDED
        if is_over and held.ended is None:
            held.ended = now
