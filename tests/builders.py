"""Views of a job for tests: a small elastic job at rest, and everything about it that a test wants otherwise.

The job is called `j`; times are seconds since the epoch, and `NOW` is long after everything settled.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import config_map, next_memory
from mpijob_elastic.model.hosts import parse_script
from mpijob_elastic.model.job import Config, JobView, Launcher, LauncherPhase, Ref, Role, Worker
from mpijob_elastic.model.memory import Host, Memory, pod_fingerprint
from mpijob_elastic.model.policy import Policy

JOB = "j"
NOW = 1_000_000.0
LONG_AGO = NOW - 3600.0
# As the operator writes it for a job without mainContainer.
KUBEXEC = '#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"'


def ref(name: str, *, uid: str | None = None) -> Ref:
    return Ref(name=name, uid=uid or f"uid-of-{name}", resource_version="7")


def pods(*indices: int) -> tuple[str, ...]:
    """The names of these workers."""
    return tuple(names.worker(JOB, index) for index in indices)


def worker(index: int, *, uid: str | None = None, **facts: Any) -> Worker:
    """A worker that has been Ready for long; `facts` say otherwise."""
    facts = {"containers": ("main",), "created_at": LONG_AGO, "running": True, "ready_at": LONG_AGO, **facts}
    return Worker(ref=ref(names.worker(JOB, index), uid=uid), index=index, **facts)


def pending(index: int, **facts: Any) -> Worker:
    return worker(index, **{"running": False, "ready_at": None, **facts})


def failed(index: int, **facts: Any) -> Worker:
    return worker(index, **{"running": False, "ready_at": None, "terminated": True, **facts})


def launcher(phase: LauncherPhase = LauncherPhase.STARTED, **facts: Any) -> Launcher:
    """A launcher of long ago that names discover_hosts.sh, and mounts it."""
    facts = {"mounts_discovery": True, "names_discovery": True, "created_at": LONG_AGO, **facts}
    return Launcher(ref=ref(names.launcher(JOB)), phase=phase, **facts)


def config(
    hosts: Iterable[str], *, slots: int = 1, hostfile: Iterable[str] | None = None, memory: Memory | None = None
) -> Config:
    """A ConfigMap with these hosts, as we write it: the hostfile and the memory belong to the script.

    Where the memory tells of no host names, it knows each host to be the pod that `worker` gives.
    """
    hosts = list(hosts)
    memory = memory or Memory()
    if not memory.hosts:
        known = {
            names.pod_of(host): named(names.pod_of(host), incarnation=names.incarnation_of(host)) for host in hosts
        }
        memory = msgspec.structs.replace(memory, hosts=known)
    script = names.discover_hosts(hosts, slots=slots)
    lines = [names.pod_of(host) for host in hosts] if hostfile is None else list(hostfile)
    return Config(
        ref=ref(names.config_map(JOB)),
        published=parse_script(script),
        script=script,
        hostfile=names.hostfile(lines, slots=slots),
        memory=next_memory.signed(memory, script=script),
        kubexec=KUBEXEC,
    )


def named(pod: str, *, uid: str | None = None, incarnation: int = 0) -> Host:
    """The remembered host name of a pod; by default of the pod that `worker` gives."""
    return Host(pod=pod_fingerprint(uid or f"uid-of-{pod}"), incarnation=incarnation)


def role(*indices: int) -> Role:
    """A Role that lets the launcher exec into these workers."""
    return Role(ref=ref(names.launcher(JOB)), exec_rule=1, exec_names=pods(*indices))


def job(size: int = 3, *, known: bool = True, elastic: bool = True, **facts: Any) -> JobView:
    """An elastic job of that many workers which trains on all of them; `known`: its launcher was shown the list.

    Without `elastic` it is annotated so.
    """
    if not elastic:
        facts["policy"] = replace(facts.get("policy", Policy()), enabled=False)
        facts["spec_elastic"] = False
    facts = {
        "replicas": size,
        "slots": 1,
        "spec_elastic": True,
        "workers": tuple(worker(index) for index in range(size)),
        "launcher": launcher(),
        "config": config(pods(*range(size))),
        "role": role(*range(size)),
        **facts,
    }
    view = JobView(namespace="default", ref=ref(JOB), **facts)
    return shown(view) if known and view.launcher and view.config else view


def shown(view: JobView, *, at: float = LONG_AGO) -> JobView:
    """The same job after its launcher was shown what is published, at that time."""
    assert view.launcher is not None
    assert view.config is not None
    return replace(view, launcher=replace(view.launcher, refreshed=config_map.mark(view.config, at=at)))
