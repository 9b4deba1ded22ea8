"""Two jobs of real Elastic Horovod that want the same GPUs: the first gives way to the second, and grows again."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from lab.cluster import Cluster
from lab.errors import LabError
from lab.training import log as training
from lab.training.job import TrainingJob, example
from mpijob_elastic import names
from tests.real.two_nodes import FIRST
from tests.real.waiting import until

Object = dict[str, Any]
NOTHING: Mapping[str, str] = {}
GPU = "nvidia.com/gpu"
PATIENCE = 300.0  # seconds
STEP = {"STEP_SECONDS": "0.25", "COMMIT_STEPS": "4"}
ENDLESS = {"TARGET_STEPS": "1000000", "MAX_STEPS": "1000000", **STEP}
SHORT = {"TARGET_STEPS": "100", **STEP}


@contextmanager
def gpus(cluster: Cluster, count: int) -> Iterator[None]:
    """Have the node say that it has so many GPUs, as an administrator may, as long as the block lasts."""

    def say(count: str | None) -> None:
        patch = json.dumps({"status": {"capacity": {GPU: count}}})
        cluster.kubectl("patch", "node", FIRST, "--subresource=status", "--type=merge", "--patch", patch)

    say(str(count))
    allocatable = rf"--for=jsonpath={{.status.allocatable.nvidia\.com/gpu}}={count}"
    cluster.kubectl("wait", "node", FIRST, allocatable, "--timeout=120s")
    try:
        yield
    finally:
        say(None)


def on_gpus(
    size: int,
    *,
    annotations: Mapping[str, str] = NOTHING,
    labels: Mapping[str, str] = NOTHING,
    specs: Mapping[str, str] = NOTHING,
) -> Object:
    """Return the example that trains, with a GPU for each of its workers, and at least two of them.

    specs: what the pods of launcher and workers have in theirs.
    """
    manifest = example()
    manifest["metadata"]["labels"] = {**labels}
    manifest["metadata"]["annotations"] |= {names.MIN_REPLICAS: "2", **annotations}
    replicas = manifest["spec"]["mpiReplicaSpecs"]
    pods = {role: of["template"]["spec"] for role, of in replicas.items()}
    for spec in pods.values():
        spec.update(specs)
    [launcher] = pods["Launcher"]["containers"]
    launcher["command"] = ["2" if word == "1" else word for word in launcher["command"]]  # -np and --min-np
    [worker] = pods["Worker"]["containers"]
    worker["resources"]["limits"] = {GPU: "1"}
    replicas["Worker"]["replicas"] = size
    return manifest


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Seconds from the creation of the second job until both train with two; from its end until the first has four.

    pause: the longest time in which the first job did no step meanwhile. kept: the workers with which it went on;
    listed: what its launcher was told then.
    """

    squeezed: float
    started: float
    back: float
    pause: float
    kept: tuple[str, ...]
    listed: tuple[str, ...]

    def told(self, first: str, second: str) -> str:
        """Return the seconds in words."""
        return (
            f"after the creation of {second}: {first} trains with 2 after {self.squeezed:.1f} s, "
            f"{second} after {self.started:.1f} s; after its end {first} trains with 4 after {self.back:.1f} s; "
            f"{first} was never without a step for more than {self.pause:.1f} s"
        )


def share(first: TrainingJob, first_is: Object, second: TrainingJob, second_is: Object) -> Shared:
    """Have the second job take from the first one what it needs, and end. Each gets the manifest beside it."""
    first.create(ENDLESS, manifest=first_is)
    _trains(first, 4, since=0)
    created = time.time()
    second.create(SHORT, manifest=second_is)
    squeezed = _trains(first, 2, since=created)
    started = _trains(second, 2, since=created)
    listed = first.hosts()
    until(f"the end of {second.name}", lambda: second.outcome() == "Succeeded" or None, patience=PATIENCE)
    ended = max(one.time for one in second.log().ends)
    back = _trains(first, 4, since=ended)
    assert _pods(back) == tuple(names.worker(first.name, index) for index in range(4))
    meanwhile = [step for step in first.log().steps if created <= step.time <= back.time]
    return Shared(
        squeezed=squeezed.time - created,
        started=started.time - created,
        back=back.time - ended,
        pause=training.longest_pause(meanwhile),
        kept=_pods(squeezed),
        listed=tuple(listed),
    )


def _trains(job: TrainingJob, size: int, *, since: float) -> training.Told:
    """Wait until so many ranks train; where they do not, the error has what pods, Events and launcher say."""
    try:
        return until(
            f"{job.name} trains with {size} ranks",
            lambda: training.first_with(job.log().steps, size=size, since=since),
            patience=PATIENCE,
        )
    except AssertionError as error:
        for asked in (("get", "pods,events"), ("logs", names.launcher(job.name), "--tail=150")):
            with suppress(LabError):
                error.add_note(job.cluster.kubectl("-n", job.namespace, *asked))
        raise


def _pods(step: training.Told) -> tuple[str, ...]:
    return tuple(sorted(names.pod_of(host) for host in step.hosts))
