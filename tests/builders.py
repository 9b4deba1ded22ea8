"""Views of a job for tests: a small elastic job at rest, and everything about it that a test wants otherwise.

The job is called `j`; times are seconds since the epoch, and `NOW` is long after everything
settled. What has happened to a job is told by the methods of its `Story`, one after the other:
`job(2).shrunk(from_=3).drained(2, after=5)`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar, cast

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.decide import config_map, next_memory
from mpijob_elastic.model import elastic_script
from mpijob_elastic.model.job import (
    Config,
    ConfigFacts,
    JobView,
    Role,
    parse_script,
    script_fingerprint,
)
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.memory import Host, Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.pod import (
    Launcher,
    LauncherFacts,
    LauncherPhase,
    PodFacts,
    Probe,
    Worker,
)
from mpijob_elastic.model.policy import Policy
from tests import room_words

T = TypeVar("T")
View = TypeVar("View", bound=JobView)

JOB = "j"
# Names of jobs whose workers are easily taken for others.
NASTY_JOBS = ("mnist", "mnist10", "j-1", "a.b.c", "x-worker-3", "worker", "j-worker-1-worker", "0")
NOW = 1_000_000.0
LONG_AGO = NOW - 3600.0
# As the operator writes it for a job without mainContainer.
KUBEXEC = (
    '#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"'
)


def ref(name: str, *, uid: str | None = None) -> Owned:
    return Owned(
        name=name,
        namespace="default",
        uid=uid or f"uid-of-{name}",
        resource_version="7",
        job=JOB,
        job_uid=f"uid-of-{JOB}",
    )


# An MPIJob without any annotation; `job` makes it elastic.
FACTS = msgspec.structs.replace(
    capabilities.read(
        b'{"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {}, "status": {"conditions": [{}]}}'
    ),
    metadata=ref(JOB),
    size_known=True,
    reported=True,
)


def but(thing: T, **facts: Any) -> T:
    """The same view, pod, ConfigMap or other object, with what is otherwise about it."""
    if isinstance(thing, msgspec.Struct):
        renamed = {"metadata" if name == "ref" else name: value for name, value in facts.items()}
        return cast(T, msgspec.structs.replace(thing, **renamed))
    if isinstance(thing, JobView):
        return cast(T, _job(thing, **facts))
    return cast(T, _replaced(thing, **facts))


def _replaced(thing: Any, **facts: Any) -> Any:
    known = {field.name for field in fields(thing)}
    own = {name: value for name, value in facts.items() if name in known}
    inner = {name: value for name, value in facts.items() if name not in known}
    if inner:
        own["facts"] = _facts(thing, own.get("facts", thing.facts), **inner)
    return replace(thing, **own)


def _job(view: JobView, **facts: Any) -> JobView:
    """A job of which some facts are what a capability has seen."""
    seen = room_words.after(
        lambda words: words.seen, {type(one): one for one in view.capabilities}, facts
    )
    return room_words.seen_in(_replaced(view, **facts), seen)


def _facts(thing: object, known: Any, **facts: Any) -> Any:
    if "ref" in facts:
        facts["metadata"] = facts.pop("ref")
    if isinstance(thing, Worker):
        facts |= _phase(known.phase, facts)
        facts |= room_words.of_pod(facts)
        if "opaque" in facts:
            facts["shares_processes"] = facts.pop("opaque")
        if "forced" in facts:
            facts["grace"] = 0 if facts.pop("forced") else None
    if isinstance(thing, Launcher) and "phase" in facts:
        facts["launcher_phase"] = facts.pop("phase")
    if isinstance(thing, JobView):
        if "spec_elastic" in facts:
            facts["elastic"] = facts.pop("spec_elastic")
        facts |= _asked(known, facts)
        facts["policy"] = room_words.of_policy(facts.get("policy", known.policy), facts)
        if "namespace" in facts:
            facts["metadata"] = msgspec.structs.replace(
                facts.get("metadata", known.metadata), namespace=facts.pop("namespace")
            )
    return msgspec.structs.replace(known, **facts)


def _asked(known: JobFacts, facts: dict[str, Any]) -> dict[str, Any]:
    """What the MPIJob asks of capabilities; takes these facts away."""
    asked = room_words.after(
        lambda words: words.asked, {type(one): one for one in known.asked}, facts
    )
    found = tuple(one for one in asked.values() if one is not None)
    return {"asked": found} if found != known.asked else {}


def _phase(before: str, facts: dict[str, Any]) -> dict[str, str]:
    """The phase of a pod of which is said whether it runs, has ended, and how; takes these facts away."""
    said = {name: facts.pop(name, None) for name in ("running", "terminated", "succeeded")}
    if all(value is None for value in said.values()):
        return {}
    if said["succeeded"]:
        return {"phase": "Succeeded"}
    if said["terminated"]:
        return {"phase": "Failed"}
    is_running = before == "Running" if said["running"] is None else said["running"]
    return {"phase": "Running" if is_running else "Pending"}


def pods(*indices: int) -> tuple[str, ...]:
    """The names of these workers."""
    return tuple(names.worker(JOB, index) for index in indices)


def worker(index: int, *, uid: str | None = None, **facts: Any) -> Worker:
    """A worker that has been Ready for long; `facts` say otherwise."""
    pod = PodFacts(
        metadata=ref(names.worker(JOB, index), uid=uid),
        role=names.ROLE_WORKER,
        phase="Running",
        created_at=LONG_AGO,
        deleting=False,
        containers=("main",),
        ready_at=LONG_AGO,
        grouped=True,
    )
    return but(Worker(facts=pod, index=index, containers=("main",)), **facts)


def pending(index: int, **facts: Any) -> Worker:
    return worker(index, **{"running": False, "ready_at": None, **facts})


def failed(index: int, **facts: Any) -> Worker:
    return worker(index, **{"running": False, "ready_at": None, "terminated": True, **facts})


def launcher(phase: LauncherPhase = LauncherPhase.STARTED, **facts: Any) -> Launcher:
    """A launcher of long ago that names discover_hosts.sh, and mounts it."""
    pod = LauncherFacts(
        metadata=ref(names.launcher(JOB)),
        role=names.ROLE_LAUNCHER,
        phase="Running",
        created_at=LONG_AGO,
        deleting=False,
        containers=("main",),
        launcher_phase=phase,
        started_at=LONG_AGO if phase is LauncherPhase.STARTED else None,
        mounts_discovery=True,
        names_discovery=True,
        grouped=True,
    )
    return but(Launcher(facts=pod), **facts)


def config(
    hosts: Iterable[str],
    *,
    slots: int = 1,
    hostfile: Iterable[str] | None = None,
    memory: Memory | None = None,
) -> Config:
    """A ConfigMap with these hosts, as we write it: the hostfile and the memory belong to the script.

    Where the memory tells of no host names, it knows each host to be the pod that `worker` gives.
    """
    hosts = list(hosts)
    memory = memory or Memory()
    if not memory.hosts:
        known = {
            names.pod_of(host): named(names.pod_of(host), incarnation=names.incarnation_of(host))
            for host in hosts
        }
        memory = msgspec.structs.replace(memory, hosts=known)
    script = names.discover_hosts(hosts, slots=slots)
    lines = [names.pod_of(host) for host in hosts] if hostfile is None else list(hostfile)
    facts = ConfigFacts(
        metadata=ref(names.config_map(JOB)),
        script=script,
        hostfile=names.hostfile(lines, slots=slots),
        kubexec=KUBEXEC,
    )
    return Config(
        facts=facts,
        published=parse_script(script),
        memory=next_memory.signed(memory, script=script),
    )


def named(pod: str, *, uid: str | None = None, incarnation: int = 0) -> Host:
    """The remembered host name of a pod; by default of the pod that `worker` gives."""
    return Host(pod=pod_fingerprint(uid or f"uid-of-{pod}"), incarnation=incarnation)


def role(*indices: int) -> Role:
    """A Role that lets the launcher exec into these workers."""
    return Role(metadata=ref(names.launcher(JOB)), exec_rule=1, exec_names=pods(*indices))


def left(pod: str, *, ago: float, uid: str | None = None) -> Left:
    """A pod that left the list so many seconds ago; by default the pod that `worker` gives."""
    return Left(pod=pod_fingerprint(f"uid-of-{pod}" if uid is None else uid), at=NOW - ago)


def tries(count: int, *, ago: float = 0.0, uid: str = "uid-of-j-launcher") -> Tries:
    """So many tries, the last of them so many seconds ago."""
    return Tries(count=count, at=NOW - ago, uid=uid)


@dataclass(frozen=True, kw_only=True)
class Story(JobView):
    """A job that `job` gives, and what has happened to it: each method returns the job after that."""

    def but(self, **facts: Any) -> Self:
        """What is otherwise about the job itself."""
        return but(self, **facts)

    def plain(self) -> Self:
        """It is annotated not to be elastic."""
        return self.but(policy=replace(self.policy, enabled=False), spec_elastic=False)

    def pod(self, index: int, **facts: Any) -> Self:
        """What is otherwise about one of its workers."""
        name = names.worker(JOB, index)
        return self.but(
            workers=tuple(but(one, **facts) if one.name == name else one for one in self.workers)
        )

    def without(self, *indices: int) -> Self:
        """The pods of these workers are gone."""
        return self.but(workers=tuple(one for one in self.workers if one.index not in indices))

    def launched(self, **facts: Any) -> Self:
        """What is otherwise about its launcher."""
        return self.but(launcher=self.launcher and but(self.launcher, **facts))

    def configured(self, **facts: Any) -> Self:
        """What is otherwise about its ConfigMap."""
        return self.but(config=self.config and but(self.config, **facts))

    def remembering(self, **facts: Any) -> Self:
        """What is otherwise in its memory, which still belongs to the script."""
        return self.configured(memory=msgspec.structs.replace(self.memory, **facts))

    def shown(self, *, at: float = LONG_AGO) -> Self:
        """Its launcher was shown what is published, at that time."""
        return self.launched(refreshed=self.config and config_map.mark(self.config, at=at))

    def unshown(self) -> Self:
        """Its launcher was shown nothing yet."""
        return self.launched(refreshed=None)

    def shrunk(self, *, from_: int, ago: float = 20.0, told: float = 0.0) -> Self:
        """Its surplus workers left the list so many seconds ago; its launcher was shown that `told` seconds later."""
        stay, gone = pods(*range(self.replicas)), pods(*range(self.replicas, from_))
        memory = Memory(left={pod: left(pod, ago=ago) for pod in gone}, removed_at=NOW - ago)
        view = self.but(
            workers=tuple(map(worker, range(from_))),
            config=config(stay, memory=memory),
            role=role(*range(from_)),
        )
        return view.shown(at=NOW - ago + told)

    def drained(
        self, *indices: int, after: float = 5.0, busy_seen: bool = False, in_doubt: bool = False
    ) -> Self:
        """These workers were seen empty so many seconds after they left the list, and last looked at then."""
        view = self
        for index in indices:
            at = self.memory.left[names.worker(JOB, index)].at + after
            last = Probe(busy_seen=busy_seen, in_doubt=in_doubt, idle_at=at, asked_at=at)
            view = view.pod(index, probe=last)
        return view


def job(size: int = 3, *, known: bool = True, elastic: bool = True, **facts: Any) -> Story:
    """An elastic job of that many workers which trains on all of them; `known`: its launcher was shown the list.

    Without `elastic` it is annotated so.
    """
    if not elastic:
        facts["policy"] = replace(facts.get("policy", Policy()), enabled=False)
        facts["spec_elastic"] = False
    facts = {
        "spec_elastic": True,
        "workers": tuple(worker(index) for index in range(size)),
        "launcher": launcher(),
        "config": config(pods(*range(size))),
        "role": role(*range(size)),
        **facts,
    }
    view = but(Story(facts=FACTS, replicas=size), **facts)
    return view.shown() if known and view.launcher and view.config else view


def numbered(
    hosts: Iterable[str], *, number: int = 7, drain: int = 60, memory: Memory | None = None
) -> Config:
    """A ConfigMap with this list for elastic.sh; each host is the pod that `worker` gives."""
    known = config(hosts, memory=memory)
    marks = {host: pod_fingerprint(f"uid-of-{host}") for host in known.host_of}
    script = names.numbered_hosts(marks, slots=1, number=number, drain=drain)
    own = script_fingerprint(elastic_script.TEXT)
    plain = msgspec.structs.replace(known.memory or Memory(), hosts={})
    return but(
        known,
        script=script,
        elastic=own,
        published=parse_script(script),
        memory=next_memory.signed(plain, script=script),
    )


def mpi_job(size: int = 3, **facts: Any) -> Story:
    """A job of that many workers which elastic.sh runs on all of them."""
    facts = {
        "names_elastic": True,
        "launcher": launcher(mounts_elastic=True),
        "config": numbered(pods(*range(size))),
        **facts,
    }
    return job(size, **facts)


def shown(view: View, *, at: float = LONG_AGO) -> View:
    """The same job after its launcher was shown what is published, at that time."""
    assert view.launcher is not None
    assert view.config is not None
    return but(view, launcher=but(view.launcher, refreshed=config_map.mark(view.config, at=at)))
