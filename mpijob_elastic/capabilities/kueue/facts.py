"""Kueue's side of a job: its Workloads, which ask a queue for quota.

https://github.com/kubernetes-sigs/kueue/blob/main/apis/kueue/v1beta2/workload_types.go
The base asks for all at once that the job needs to start: the launcher and the least workers. Each further worker, an
extra, asks for itself, so that Kueue can grant and take back workers one by one. A Workload has the name of its pod,
the base that of the launcher.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.api import LABEL_PRIORITY_CLASS, LABEL_QUEUE, MULTIKUEUE, PREBUILT
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.wire import Owned

# The Workload for which Kueue preempts another, in its words.
_UID = re.compile(r"\(UID: ([^\s,)]+)")


@dataclass(frozen=True, kw_only=True)
class Asked(Known):
    """What an MPIJob asks of Kueue, or Kueue of it.

    queue: "" if it asks for none; priority_class: there. prebuilt: the Workload that MultiKueue made for it here, ""
    without. elsewhere: MultiKueue runs it in another cluster.
    """

    queue: str = ""
    priority_class: str = ""
    prebuilt: str = ""
    elsewhere: bool = False

    @property
    def gate(self) -> str:  # type: ignore[override]
        """The gate of a job that waits for quota."""
        return names.GATE_QUEUED if self.queue or self.elsewhere else ""

    @property
    def queued(self) -> bool:  # type: ignore[override]
        """True if it waits for quota, here or elsewhere."""
        return self.gate != ""

    @property
    def rations(self) -> bool:  # type: ignore[override]
        """True if it is in a queue here."""
        return self.queue != ""


def asked(job: MPIJob) -> Asked | None:
    """Return what an MPIJob asks for."""
    labels, annotations = job.metadata.labels, job.metadata.annotations
    found = Asked(
        queue=labels.get(LABEL_QUEUE, ""),
        priority_class=labels.get(LABEL_PRIORITY_CLASS, ""),
        prebuilt=annotations.get(PREBUILT) or labels.get(PREBUILT, ""),
        elsewhere=job.spec is not None and job.spec.managed_by == MULTIKUEUE,
    )
    return None if found == Asked() else found


class Workload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Workload as last seen.

    workers: how many it asks for. reserved: quota is set aside for it, and stays so until we clear that. admitted: its
    pods may start. evicted: Kueue wants the quota back. ready: we said that its pods run. said: what it waits for or
    why it is evicted, in the words of Kueue or of a check. flavors: kinds of nodes that were chosen, by set of pods.
    updates: checks add something to its pods. active: nobody has taken it out of its queue. cluster: that MultiKueue
    has chosen, "" without. pods: uids of the pods that own it, too.
    """

    metadata: Owned
    queue: str = ""
    priority: int = 0
    workers: int = 0
    reserved: bool = False
    admitted: bool = False
    evicted: bool = False
    ready: bool = False
    finished: bool = False
    active: bool = True
    created_at: float = 0.0
    said: str = ""
    flavors: dict[str, tuple[str, ...]] = {}
    updates: bool = False
    cluster: str = ""
    pods: tuple[str, ...] = ()

    @property
    def granted(self) -> bool:
        """True if its pods may start."""
        return self.admitted and self.reserved and not self.evicted and not self.finished

    @property
    def preempted(self) -> bool:
        """True if its quota is to be given back as soon as its pods are gone."""
        return self.evicted and self.reserved and not self.finished

    @property
    def checked(self) -> bool:
        """True if quota is set aside for it, and an admission check has yet to answer."""
        return self.reserved and self.said != "" and not (self.admitted or self.evicted or self.finished)

    @property
    def waits(self) -> bool:
        """True if it is in the queue."""
        return self.active and not self.reserved and not self.finished

    @property
    def line(self) -> str:
        """What it said, on a single line."""
        return " ".join(self.said.split())


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The queue that a job asks for, "" if it asks for none or no Kueue is there, and its Workloads by name.

    ignored: the queue that it asks for where no Kueue is there. prebuilt: MultiKueue makes the first of
    them. elsewhere: MultiKueue runs the job in another cluster. places: of Workloads that wait, by uid, where known.
    """

    name: str = ""
    ignored: str = ""
    priority_class: str = ""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    prebuilt: bool = False
    elsewhere: bool = False
    places: Mapping[str, int] = field(default_factory=dict)

    def base(self, job: str) -> Workload | None:
        """Return the Workload of the launcher and the least workers."""
        return self.workloads.get(names.launcher(job))

    def suspends(self, job: str) -> str:
        """Return why the whole job has to stop, in Kueue's words; "" if it need not."""
        base = self.base(job)
        return f"Kueue ({base.line})" if base and base.preempted else ""


NO_QUEUE = Queue()


def of(job: JobFacts, found: Iterable[Workload], *, all_known: Iterable[Workload]) -> Queue:
    """Return what Kueue says of a job. found: Workloads that may be its own; all_known: those whose names may help."""
    asked = job.of(Asked) or Asked()
    mine = (one for one in found if one.metadata.job_uid == job.metadata.uid or _is_sent(one, asked))
    return Queue(
        name=asked.queue,
        priority_class=asked.priority_class,
        workloads={one.metadata.name: one for one in named(mine, all_known)},
        prebuilt=bool(asked.prebuilt),
        elsewhere=asked.elsewhere,
    )


def _is_sent(found: Workload, asked: Asked) -> bool:
    """Tell whether MultiKueue made a Workload for this job, and nobody owns it yet."""
    return not found.metadata.job_uid and found.metadata.name == asked.prebuilt


def places(found: Iterable[Workload]) -> dict[str, int]:
    """Return the place of each Workload that waits, by uid: 1 is the next in its LocalQueue.

    Kueue takes the higher priority first, then the older (pkg/cache/queue/cluster_queue.go, queueOrderingFunc).
    """
    result: dict[str, int] = {}
    ahead: Counter[tuple[str, str]] = Counter()
    for one in sorted((one for one in found if one.waits), key=lambda one: (-one.priority, one.created_at)):
        local = one.metadata.namespace, one.queue
        ahead[local] += 1
        result[one.metadata.uid] = ahead[local]
    return result


def named(found: Iterable[Workload], among: Iterable[Workload]) -> list[Workload]:
    """Return Workloads, if their quota is wanted with the name of the other, of which Kueue gives the uid only."""
    found = list(found)
    matches = [_UID.search(one.said) if one.preempted else None for one in found]
    if not any(matches):
        return found
    wanted = {match[1] for match in matches if match}
    others = {one.metadata.uid: one.metadata for one in among if one.metadata.uid in wanted}
    return [
        _naming(one, other) if match and (other := others.get(match[1])) else one
        for one, match in zip(found, matches, strict=True)
    ]


def _naming(found: Workload, other: Owned) -> Workload:
    said = found.said.replace("(UID:", f"({other.namespace}/{other.name}, UID:", 1)
    return msgspec.structs.replace(found, said=said)
