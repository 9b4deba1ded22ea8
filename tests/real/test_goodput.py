"""Where the worker-seconds of a job went, by the counters of the controller, and by the tester's own figures.

A job of Elastic Horovod, and one of mpirun with elastic.sh: 2→3, a killed rank, 3→1, suspended and
resumed, to the end. The tester takes the allocated seconds from a watch of the pods, and those of
steps from what the ranks said.
"""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from bench.real.timeline import lost
from lab.cluster import Cluster
from lab.replicas import Controller
from lab.training import log as training
from lab.training.allocated import Allocated
from lab.training.job import TrainingJob, example
from lab.training.mpi.job import MPIS, Mpi, Said
from mpijob_elastic import names
from tests.real.kept_from_log import Share, shares, total
from tests.real.losses import Loss
from tests.real.mpi import MpiTraining
from tests.real.pods import await_phase, until

pytestmark = pytest.mark.usefixtures("operator")

# Seconds in which the ranks step between two changes.
TRAINS = 35.0
# Shares by which the figures may differ.
ALLOCATED_WITHIN, KEPT_WITHIN = 0.01, 0.02
PATIENCE = 240.0
_SECONDS = re.compile(
    r'^mpijob_elastic_worker_seconds_total\{bucket="(\w+)"\} (\S+)$', re.MULTILINE
)
COMMIT = {"STEP_SECONDS": "0.25", "COMMIT_STEPS": "8", "MAX_STEPS": "1000000"}
ENDLESS = {**COMMIT, "TARGET_STEPS": "1000000"}
# Resumed, the example begins anew, because it keeps nothing on a disk.
SHORT = {**COMMIT, "TARGET_STEPS": "240"}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What the controller says, and what the tester found; seconds of all workers."""

    buckets: Mapping[str, float]
    allocated: float
    own: Share

    @property
    def words(self) -> str:
        """All of it."""
        said = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.buckets.items())
        return (
            f"{said}; together {sum(self.buckets.values()):.1f}, by the pods {self.allocated:.1f}; "
            f"by the log {self.own.kept:.1f} kept in {self.own.steps} steps, "
            f"{self.own.repeated:.1f} repeated in {self.own.again}"
        )

    def check(self) -> None:
        """Compare them."""
        assert sum(self.buckets.values()) == pytest.approx(self.allocated, rel=ALLOCATED_WITHIN)
        assert self.buckets["kept"] == pytest.approx(self.own.kept, rel=KEPT_WITHIN)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happened, when, and of how many ranks the first ring is that ends it.

    resumes: that ring is of the second launcher.
    """

    what: str
    since: float
    size: int
    resumes: bool = False


def losses(changes: Sequence[Change], held: Allocated, logs: Sequence[str]) -> str:
    """Return what each change cost: no step of the workers that had a node then, in worker-seconds.

    logs: what each launcher said.
    """
    steps, words = told_steps("".join(logs)), []
    for one in changes:
        of_ring = told_steps(logs[-1]) if one.resumes else steps
        # A step that ended just then was of the ring before.
        first = training.first_with(of_ring, size=one.size, since=one.since + 1)
        assert first, one
        cost = lost(held, steps, edited=one.since, until=first.time)
        words.append(f"{one.what} {cost:.1f} in {first.time - one.since:.1f} s")
    return "lost worker-seconds: " + ", ".join(words)


def told_steps(text: str) -> list[training.Told]:
    """Return the steps in what all launchers said."""
    found = (msgspec.json.decode(one, type=training.Told) for one in training.TOLD.findall(text))
    return [one for one in found if one.event == "step"]


def counted(controller: Controller) -> dict[str, float]:
    """Return the worker-seconds that the controller has counted, by bucket."""
    return {name: float(seconds) for name, seconds in _SECONDS.findall(controller.metrics())}


def spent(
    controller: Controller,
    job: TrainingJob,
    held: Allocated,
    before: Mapping[str, float],
    own: Share,
) -> Figures:
    """Return the figures of a job that has ended; it is deleted."""
    ended = ended_at(job)
    job.delete()
    until("no pod is left", lambda: not job.pods() or None)
    time.sleep(2)  # the controller forgets the job
    after = counted(controller)
    buckets = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
    return Figures(buckets=buckets, allocated=held.seconds(until=ended), own=own)


def ended_at(job: TrainingJob) -> float:
    """Return when the launcher ended."""
    path = "{.status.containerStatuses[0].state.terminated.finishedAt}"
    words = ("get", "pod", names.launcher(job.name), "-o", f"jsonpath={path}")
    told = job.cluster.kubectl("-n", job.namespace, *words)
    return datetime.fromisoformat(told).timestamp()


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("mpi_image")
@pytest.mark.parametrize("made", MPIS, ids=lambda made: made.name)
def test_of_a_job_of_mpirun(
    made: Mpi,
    cluster: Cluster,
    namespace: str,
    elastic: Controller,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = counted(elastic)
    job = TrainingJob(cluster=cluster, namespace=namespace)
    with (
        Allocated.watched(job) as held,
        MpiTraining.begun(made, cluster, namespace, tmp_path, size=2) as run,
    ):
        changes: list[Change] = []

        def now(what: str, size: int) -> None:
            time.sleep(TRAINS)
            changes.append(Change(what=what, since=time.time(), size=size))

        now("2→3", 3)
        run.resized(2, 3, hand=None)

        def kill() -> None:
            Loss.KILLED.inflict(cluster, namespace, names.worker(job.name, 1))

        now("rank killed", 3)
        ways = [run.through("rank killed", None, kill, size=3)]
        now("3→1", 1)
        run.resized(3, 1, hand=None)
        time.sleep(TRAINS)
        resumed = Change(what="suspended and resumed", since=time.time(), size=1, resumes=True)
        last = names.worker(job.name, 0)
        ways.append(run.through("suspended and resumed", last, run.suspended, size=1))
        time.sleep(TRAINS)
        run.finished()
        own = total(shares(run.said.text).values())
        logs = [log.read_text() for log in sorted(tmp_path.glob("*.log"))]
        costs = losses([*changes, resumed], held, logs)
        figures = spent(elastic, job, held, before, own)
    with capsys.disabled():
        told = "; ".join([figures.words, *(way.words for way in ways), costs])
        print(f"\n{made.words}: {told}", end="")  # noqa: T201
    figures.check()


@dataclass(kw_only=True)
class Horovod:
    """A job of Elastic Horovod that trains; each method returns when all is as it should be."""

    job: TrainingJob
    said: Said
    followed: ExitStack
    changes: list[Change] = field(default_factory=list)

    def happens(self, what: str, size: int, *, resumes: bool = False) -> float:
        """Note a change that happens now, and return the time."""
        self.changes.append(Change(what=what, since=time.time(), size=size, resumes=resumes))
        return self.changes[-1].since

    def follow(self) -> None:
        """Read what the launcher says that runs now."""
        launcher = names.launcher(self.job.name)
        until("the launcher is created", lambda: launcher in self.job.pods() or None)
        await_phase(self.job.cluster, self.job.namespace, launcher, "Running")
        self.followed.enter_context(self.said.followed())

    def trains(self, size: int, *, since: float) -> None:
        """Wait until so many ranks step, and let them."""

        def first() -> training.Told | None:
            steps = training.parse(self.said.text).steps
            return training.first_with(steps, size=size, since=since)

        until(f"{size} ranks train", first, patience=PATIENCE)
        time.sleep(TRAINS)

    def resized(self, size: int) -> None:
        """Change the size."""
        edited = self.happens(f"to {size}", size)
        self.job.edit(size)
        self.trains(size, since=edited)

    def lost_a_rank(self, index: int, *, size: int) -> None:
        """Kill a rank, and wait until it is back."""
        host = names.worker(self.job.name, index)
        killed = self.happens("rank killed", size)
        Loss.KILLED.inflict(self.job.cluster, self.job.namespace, host)

        def back() -> training.Recovery | None:
            found = training.parse(self.said.text)
            return training.recovery(found, host, size=size, since=killed)

        until("all train again", back, patience=PATIENCE)
        time.sleep(TRAINS)

    def suspended(self) -> None:
        """Suspend the job until no pod of it runs, and resume it with fewer steps to do."""
        manifest = example()
        manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 1
        self.job.create(SHORT, manifest=manifest)
        self.happens("suspended and resumed", 1, resumes=True)
        self._suspend("true")
        until(
            "all pods wait",
            lambda: set(self.job.pods().values()) == {"Pending"} or None,
            patience=PATIENCE,
        )
        self.followed.close()
        resumed = time.time()
        self._suspend("false")
        self.follow()
        self.trains(1, since=resumed)

    def _suspend(self, value: str) -> None:
        words = ("annotate", f"mpijob/{self.job.name}", f"{names.SUSPEND}={value}", "--overwrite")
        self.job.cluster.kubectl("-n", self.job.namespace, *words)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("training_image")
def test_of_a_job_of_elastic_horovod(
    cluster: Cluster,
    namespace: str,
    elastic: Controller,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = counted(elastic)
    job = TrainingJob(cluster=cluster, namespace=namespace)
    with Allocated.watched(job) as held, ExitStack() as followed:
        run = Horovod(job=job, said=Said(job=job, folder=tmp_path), followed=followed)
        job.create(ENDLESS)
        run.follow()
        run.trains(2, since=0)
        run.resized(3)
        run.lost_a_rank(1, size=3)
        run.resized(1)
        run.suspended()
        until("the end of the job", lambda: job.outcome() == "Succeeded" or None, patience=PATIENCE)
        # The example keeps nothing on a disk: resumed, it is another training.
        logs = [log.read_text() for log in sorted(tmp_path.glob("*.log"))]
        own = total(one for log in logs for one in shares(log).values())
        costs = losses(run.changes, held, logs)
        figures = spent(elastic, job, held, before, own)
    with capsys.disabled():
        print(f"\nElastic Horovod: {figures.words}; {costs}", end="")  # noqa: T201
    figures.check()
