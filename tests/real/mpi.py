"""A job that elastic.sh drives, through changes and losses; asserted from what its launchers said."""

import json
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import IO

import yaml

from lab.cluster import Cluster
from lab.training import log as horovod
from lab.training.job import TrainingJob, workers
from lab.training.log import Told
from lab.training.mpi.job import PROGRAM, Mpi, Said, manifest, plain
from lab.training.mpi.log import Log, parse
from mpijob_elastic import names
from tests.real.pods import await_phase, until

STEP_SECONDS, SAVE_EVERY = 0.25, 20
PATIENCE = 120.0  # seconds
BY_HAND = "by-hand"

# Each process but the first of a worker and this shell: the start that it belongs to, its words.
_PROCESSES = r"""
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  [ "$pid" = 1 ] || [ "$pid" = $$ ] && continue
  mark=$(tr '\0' '\n' < $process/environ | grep '^MPIJOB_ELASTIC_RUN=')
  words=$(tr '\0' ' ' < $process/cmdline)
  [ "$words" ] && echo "${mark#*=} $words"
done 2> /dev/null
:
"""


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a change of the hosts cost, in seconds.

    listed: from the edit to the new list in the ConfigMap. all_step: from the edit to the first
    step of all ranks. restart: from the list to that step. told: the part of it until elastic.sh
    sends the signal. by_hand: from SIGUSR1 to the first step, by hand; None if that was not done.
    lost: the steps that were done again. codes: of the starts that ended.
    """

    what: str
    listed: float
    all_step: float
    restart: float
    told: float
    by_hand: float | None
    lost: int
    codes: list[int]


def told(made: Mpi, change: Change) -> str:
    """Return a change in words."""
    words = (
        f"{made.words}, {change.what}: edit to all ranks stepping {change.all_step:.1f} s, to the new list "
        f"{change.listed:.1f} s, from there to the signal {change.told:.2f} s, to all ranks stepping "
        f"{change.restart:.2f} s, {change.lost} steps lost"
    )
    if change.by_hand is None:
        return words
    return f"{words}; by hand {change.by_hand:.2f} s, ratio {change.restart / change.by_hand:.2f}"


@dataclass(frozen=True, kw_only=True)
class Way:
    """What the end of a worker cost, in seconds from it.

    ended: until the start that ran then had ended. stepped: until some ranks stepped again.
    full: until all did. after_end: from the end of a start to the next step. lost: the steps that
    were done again. codes: of the starts that ended.
    """

    what: str
    ended: float
    stepped: float
    after_end: float
    full: float
    lost: int
    codes: list[int]

    @property
    def words(self) -> str:
        """All of it."""
        return (
            f"{self.what}: mpirun ended after {self.ended:.1f} s, steps again after {self.stepped:.1f} s "
            f"({self.after_end:.1f} s after that end), all ranks after {self.full:.1f} s, "
            f"{self.lost} steps lost, codes {self.codes}"
        )


@dataclass(kw_only=True)
class Lists:
    """The host lists that were in the ConfigMap of a job, each with the time at which it was seen."""

    found: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def watched(cls, job: TrainingJob) -> Iterator["Lists"]:
        lists, cluster = cls(), job.cluster
        access = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig)]
        output = r"--output=jsonpath={.data.discover_hosts\.sh}{'\n--\n'}"
        words = ["-n", job.namespace, "get", "configmap", names.config_map(job.name), "-w", output]
        watch = subprocess.Popen([*access, *words], stdout=subprocess.PIPE, text=True)
        assert watch.stdout
        reader = threading.Thread(target=lists._read, args=(watch.stdout,))
        reader.start()
        try:
            yield lists
        finally:
            watch.terminate()
            watch.wait()
            reader.join()

    def _read(self, output: IO[str]) -> None:
        hosts: list[str] = []
        for line in output:
            if line == "--\n":
                if not self.found or self.found[-1][1] != tuple(hosts):
                    self.found.append((time.time(), tuple(hosts)))
                hosts = []
            elif line.startswith("echo "):
                hosts.append(line.split()[1])

    def last_before(self, at: float) -> float:
        """Return when the list was seen that was the last one at a time."""
        return [seen for seen, _ in self.found if seen <= at][-1]


@dataclass(kw_only=True)
class MpiTraining:
    """A job that trains; each method returns when all is as it should be."""

    job: TrainingJob
    made: Mpi
    state: Path
    said: Said
    lists: Lists
    followed: ExitStack

    @classmethod
    @contextmanager
    def begun(
        cls,
        made: Mpi,
        cluster: Cluster,
        namespace: str,
        folder: Path,
        *,
        size: int,
        work_seconds: float = 0.0,
    ) -> Iterator["MpiTraining"]:
        """Create the job, and wait until all its ranks step; work_seconds: of CPU in each step."""
        job = TrainingJob(cluster=cluster, namespace=namespace)
        state = _folder(folder, "state")
        text = manifest(
            made,
            state,
            size=size,
            step_seconds=STEP_SECONDS,
            save_every=SAVE_EVERY,
            work_seconds=work_seconds,
        )
        cluster.kubectl("-n", namespace, "create", "-f", "-", stdin=yaml.safe_dump(text))
        said = Said(job=job, folder=folder)
        with ExitStack() as stack:
            training = cls(
                job=job,
                made=made,
                state=state,
                said=said,
                lists=stack.enter_context(Lists.watched(_created(job))),
                followed=stack.enter_context(ExitStack()),
            )
            training.follow()
            training.steps_with(size, since=0)
            yield training

    def follow(self) -> None:
        """Read what the launcher says that runs now."""
        launcher = names.launcher(self.job.name)
        until("the launcher is created", lambda: launcher in self.job.pods() or None)
        await_phase(self.job.cluster, self.job.namespace, launcher, "Running")
        self.followed.enter_context(self.said.followed())

    @property
    def log(self) -> Log:
        """What was said so far."""
        return parse(self.said.text)

    def steps_with(self, size: int, *, since: float) -> Told:
        """Wait until so many ranks step, and return their first step from then on."""

        def found() -> Told | None:
            return horovod.first_with(self.log.steps, size=size, since=since)

        return until(f"{size} ranks step", found, patience=PATIENCE)

    def resized(self, before: int, after: int, *, hand: float | None) -> Change:
        """Change the size."""
        edited = time.time()
        self.job.edit(after)
        first = self.steps_with(after, since=edited)
        assert set(first.hosts) == set(workers(after))
        until(
            f"only {after} workers are there",
            lambda: set(self.job.pods()) == {*workers(after), "train-launcher"} or None,
        )
        self.nothing_is_left(after)
        return self.change(f"{before}→{after}", edited, first, hand=hand)

    def change(self, what: str, edited: float, first: Told, *, hand: float | None = None) -> Change:
        """Return what a change cost whose first step of all ranks this is."""
        listed = self.lists.last_before(first.time)
        signal = self.log.since(edited).said("SIGUSR1")
        return Change(
            what=what,
            listed=listed - edited,
            all_step=first.time - edited,
            restart=first.time - listed,
            told=signal.at - listed if signal else 0.0,
            by_hand=hand,
            lost=self.lost(edited, first.time),
            codes=self.log.since(edited).codes,
        )

    def through(
        self, what: str, replaced: str | None, happen: Callable[[], None], *, size: int
    ) -> Way:
        """Do something to the job, and wait until all ranks step again, in a new pod of that name if one is given."""
        before = self._uid(replaced) if replaced else ""
        began = time.time()
        happen()
        if replaced:
            until(
                f"{replaced} is another pod",
                lambda: self._uid(replaced) not in ("", before) or None,
                patience=PATIENCE,
            )

        def ended() -> float | None:
            return self.log.since(began).ended_at

        end = until(f"a start ends after {what}", ended, patience=PATIENCE)
        # The last start that all ranks have: a worker leaves first, and its successor joins.
        first = until(
            f"all step after {what}",
            lambda: self._full(
                size, since=max(end, self._created_at(replaced) if replaced else end)
            ),
            patience=PATIENCE,
        )
        self.nothing_is_left(size)
        again = next(one for one in self.log.steps if one.time > end)
        return Way(
            what=what,
            ended=end - began,
            stepped=again.time - began,
            after_end=again.time - end,
            full=first.time - began,
            lost=self.lost(began, first.time),
            codes=self.log.since(began).codes,
        )

    def _full(self, size: int, *, since: float) -> Told | None:
        return horovod.first_with(self.log.steps, size=size, since=since)

    def _uid(self, pod: str) -> str:
        return self._of_pod(pod, ".metadata.uid")

    def _created_at(self, pod: str) -> float:
        told = self._of_pod(pod, ".metadata.creationTimestamp")
        return datetime.fromisoformat(told).timestamp()

    def _of_pod(self, pod: str, path: str) -> str:
        words = ("get", "pod", pod, "--ignore-not-found", "-o", f"jsonpath={{{path}}}")
        return self.job.cluster.kubectl("-n", self.job.namespace, *words)

    def suspended(self) -> None:
        """Suspend the job, wait until no pod of it runs, and resume it."""
        here = ("-n", self.job.namespace)

        def suspend(value: str) -> None:
            words = (
                "annotate",
                f"mpijob/{self.job.name}",
                f"{names.SUSPEND}={value}",
                "--overwrite",
            )
            self.job.cluster.kubectl(*here, *words)

        def rests() -> bool | None:
            return set(self.job.pods().values()) == {"Pending"} or None

        suspend("true")
        until("all pods wait", rests, patience=PATIENCE)
        self.followed.close()
        suspend("false")
        self.follow()

    def lost(self, since: float, to: float) -> int:
        """Return how many steps were done again; none may have been left out."""
        numbers = [one.step for one in self.log.steps if since - 5 <= one.time <= to]
        assert all(after <= before + 1 for before, after in pairwise(numbers)), numbers
        return sum(max(0, before + 1 - after) for before, after in pairwise(numbers))

    def processes(self, pod: str) -> list[str]:
        """Return the processes of a worker but the first: the start that each belongs to, its words."""
        found = self.job.cluster.kubectl(
            *("-n", self.job.namespace, "exec", pod, "-c", "worker", "--"),
            *("/bin/sh", "-c", _PROCESSES),
        )
        return found.splitlines()

    def nothing_is_left(self, size: int) -> None:
        """Wait until each worker holds nothing but its main process and the last start."""
        for pod in workers(size):
            until(
                f"{pod} holds only the last start: {self.processes(pod)}",
                lambda pod=pod: self._is_of_last_start(self.processes(pod)) or None,  # type: ignore[misc]
                patience=20,
            )

    def _is_of_last_start(self, processes: list[str]) -> bool:
        starts = [line.words.split()[1] for line in self.log.driver if " (list " in line.words]
        # The shell that started the daemon has the mark in its words.
        return all(
            re.search(rf"^\S+\.{starts[-1]}\. |_RUN=\S+\.{starts[-1]}\.;", one) for one in processes
        )

    def finished(self) -> None:
        """Have the program end for good: the job succeeds, and its workers hold nothing."""
        size = self.log.steps[-1].size
        (self.state / "finish").touch()
        until("the end of the job", lambda: self.job.outcome() not in ("Running",) or None)
        assert self.job.outcome() == "Succeeded", self.said.text[-3000:]
        conditions = ("get", "mpijob", self.job.name, "-o", "jsonpath={.status.conditions[*].type}")
        until(
            "the job has succeeded",
            lambda: (
                "Succeeded" in self.job.cluster.kubectl("-n", self.job.namespace, *conditions)
                or None
            ),
        )
        for pod in workers(size):
            assert self.processes(pod) == []
        saved = json.loads((self.state / "saved.json").read_text())
        last = self.log.steps[-1].step
        assert saved == {"step": last, "finished": 1}


def _created(job: TrainingJob) -> TrainingJob:
    """Wait until the operator has created the job's ConfigMap."""
    there = ("get", "configmap", names.config_map(job.name), "--ignore-not-found", "-o", "name")
    until("the ConfigMap", lambda: job.cluster.kubectl("-n", job.namespace, *there) or None)
    return job


def _folder(parent: Path, name: str) -> Path:
    """Make a folder in which whoever runs in a pod can write."""
    made = parent / name
    made.mkdir(exist_ok=True)
    made.chmod(0o777)
    return made


# Starts, ends and starts again, and tells the seconds from SIGUSR1 to the first step after it.
_BY_HAND = """
cd /tmp
run() { echo "$1" | tr , '\\n' > hosts; shift; "$@" > log 2>&1 & }
stepping() { until grep -q '"event": "step".*"size": '"$1", log; do sleep 0.05; done; }
{export}
run "{few}" {first}
mpirun=$!
stepping {before}
sleep 2
date +%s.%N
kill -USR1 $mpirun
wait $mpirun || { cat log; exit 1; }
run "{many}" {second}
mpirun=$!
stepping {after}
grep -m 1 '"event": "step".*"size": {after},' log
kill -USR1 $mpirun
wait $mpirun
"""


def by_hand(
    made: Mpi, cluster: Cluster, namespace: str, folder: Path, before: int, after: int
) -> float:
    """Type the same two runs into the launcher of a job of a fixed size; return the seconds from end to step."""
    job = TrainingJob(cluster=cluster, namespace=namespace, name=BY_HAND)
    state = _folder(folder, BY_HAND)
    if not job.pods():
        text = plain(made, state, size=3)
        text["metadata"]["name"] = BY_HAND
        cluster.kubectl("-n", namespace, "create", "-f", "-", stdin=yaml.safe_dump(text))
        launcher = names.launcher(BY_HAND)
        until("the launcher is created", lambda: launcher in job.pods() or None)
        await_phase(cluster, namespace, launcher, "Running")
    program = (*PROGRAM, "--step-seconds", f"{STEP_SECONDS}")

    def words(size: int) -> str:
        replaced = (
            word.replace("{np}", f"{size}").replace("{hostfile}", "hosts") for word in made.mpirun
        )
        return shlex.join([*replaced, *program])

    script = _BY_HAND
    for name, value in {
        "export": "\n".join(f"export {one}={value}" for one, value in made.by_hand.items()),
        "few": ",".join(f"{host}{made.slot}" for host in workers(before, job=BY_HAND)),
        "many": ",".join(f"{host}{made.slot}" for host in workers(after, job=BY_HAND)),
        "first": words(before),
        "second": words(after),
        "before": f"{before}",
        "after": f"{after}",
    }.items():
        script = script.replace(f"{{{name}}}", value)
    said = cluster.kubectl(
        *("-n", namespace, "exec", names.launcher(BY_HAND), "--", "/bin/sh", "-c", script)
    )
    ended, first = said.splitlines()
    return float(json.loads(first[first.index("{") :])["time"]) - float(ended)
