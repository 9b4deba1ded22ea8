"""One job `train` as its four kinds of objects stand in a cluster, in the JSON of the API server.

Created at `CREATED`, looked at 100 s later, at `NOW`; everything has long settled unless a test
says otherwise.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import snapshot
from mpijob_elastic.cli.jobs.report import JobReport, build
from mpijob_elastic.cli.jobs.snapshot import Snapshot, snapshots
from mpijob_elastic.decide import next_memory
from mpijob_elastic.decide.config_map import mark
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.job import Config, parse_script
from mpijob_elastic.model.memory import Host, Memory, parse_memory, pod_fingerprint, render_memory
from mpijob_elastic.model.progress import ProgressLine
from mpijob_elastic.observe import facts_config
from tests.builders import KUBEXEC

Object = dict[str, Any]

CREATED = 1_767_225_600.0
CREATED_TEXT = "2026-01-01T00:00:00Z"
NOW = CREATED + 100.0
ELASTIC = ["horovodrun", "--host-discovery-script", names.DISCOVER_HOSTS_PATH, "python", "train.py"]


def mpi_job(
    *,
    name: str = "train",
    namespace: str = "default",
    replicas: int = 2,
    conditions: Iterable[str] = ("Created", "Running"),
    command: Iterable[str] = ELASTIC,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    gpus: int = 0,
    slices: Mapping[str, int] | None = None,
    **status: object,
) -> Object:
    found = {**({"nvidia.com/gpu": gpus} if gpus else {}), **(slices or {})}
    limits = {"limits": {key: str(count) for key, count in found.items()}} if found else {}
    workers = {
        "replicas": replicas,
        "template": {"spec": {"containers": [{"name": "worker", "resources": limits}]}},
    }
    template = {"spec": {"containers": [{"name": "launcher", "command": list(command)}]}}
    return {
        "metadata": _meta(
            name, namespace, annotations=dict(annotations or {}), labels=dict(labels or {})
        ),
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": template}, "Worker": workers}},
        "status": {
            "conditions": [{"type": kind, "status": "True"} for kind in conditions],
            **status,
        },
    }


def worker(
    index: int, *, phase: str = "Running", job: str = "train", namespace: str = "default"
) -> Object:
    ready = {
        "type": "Ready",
        "status": "True" if phase == "Running" else "False",
        "lastTransitionTime": CREATED_TEXT,
    }
    return {
        "metadata": _owned(
            names.worker(job, index),
            job,
            namespace,
            labels={names.LABEL_JOB_ROLE: names.ROLE_WORKER},
        ),
        "spec": {"nodeName": f"node-{index}", "containers": [{"name": "worker"}]},
        "status": {"phase": phase, "conditions": [ready]},
    }


def launcher(
    *,
    phase: str = "Running",
    mounts: bool = True,
    command: Iterable[str] = (),
    refreshed: str | None = None,
    job: str = "train",
    namespace: str = "default",
) -> Object:
    items = [{"key": names.KEY_DISCOVER_HOSTS, "path": names.KEY_DISCOVER_HOSTS}] if mounts else []
    metadata = _owned(
        names.launcher(job), job, namespace, labels={names.LABEL_JOB_ROLE: names.ROLE_LAUNCHER}
    )
    if refreshed is not None:
        metadata["annotations"] = {names.REFRESHED: refreshed}
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": "node-0",
            "containers": [{"name": "launcher", "command": list(command)}] if command else [],
            "volumes": [{"name": names.CONFIG_VOLUME, "configMap": {"items": items}}],
        },
        "status": {"phase": phase},
    }


def config_map(
    hosts: Iterable[str],
    *,
    memory: Memory | None = None,
    reminder: str = "",
    job: str = "train",
    namespace: str = "default",
) -> Object:
    hosts = list(hosts)
    script = names.discover_hosts(hosts, slots=1, reminder=reminder)
    metadata = _owned(names.config_map(job), job, namespace)
    # Each host is the pod that `worker` gives.
    known = {names.pod_of(host): _named(host, namespace) for host in hosts}
    memory = memory or Memory()
    signed = next_memory.signed(
        msgspec.structs.replace(memory, hosts={**known, **memory.hosts}), script=script
    )
    metadata["annotations"] = {names.MEMORY: render_memory(signed)}
    hostfile = names.hostfile([names.pod_of(host) for host in hosts], slots=1)
    numbered = reminder or any(names.incarnation_of(host) for host in hosts)
    reaching = kubexec.mapped(KUBEXEC) if numbered else KUBEXEC
    return {
        "metadata": metadata,
        "data": {
            names.KEY_DISCOVER_HOSTS: script,
            names.KEY_HOSTFILE: hostfile,
            names.KEY_KUBEXEC: reaching,
        },
    }


def _named(host: str, namespace: str) -> Host:
    pod = names.pod_of(host)
    return Host(pod=pod_fingerprint(_uid(pod, namespace)), incarnation=names.incarnation_of(host))


def role(pods: Iterable[str], *, job: str = "train", namespace: str = "default") -> Object:
    rules = [{"resources": ["pods"]}, {"resources": ["pods/exec"], "resourceNames": list(pods)}]
    return {"metadata": _owned(names.launcher(job), job, namespace), "rules": rules}


def shown(config: Object, *, at: float) -> str:
    """Return the launcher's annotation after a touch for this ConfigMap."""
    facts = facts_config.read_config(json.dumps(config).encode())
    return mark(
        Config(
            facts=facts,
            published=parse_script(facts.script or ""),
            memory=parse_memory(facts.memory),
        ),
        at=at,
    )


def workers(*indices: int) -> list[str]:
    return [names.worker("train", index) for index in indices]


def read(
    jobs: Iterable[Object],
    *,
    pods: Iterable[Object] = (),
    configs: Iterable[Object] = (),
    roles: Iterable[Object] | None = (),
) -> list[Snapshot]:
    """Return the jobs as read from a cluster; roles: None where the user may not read them."""
    return snapshots(
        jobs=[snapshot.read_job(_raw(item)) for item in jobs],
        pods=[snapshot.read_pod(_raw(item)) for item in pods],
        configs=[facts_config.read_config(_raw(item)) for item in configs],
        roles=None if roles is None else [facts_config.read_role(_raw(item)) for item in roles],
    )


def at_rest(size: int = 2, *, now: float = NOW, **changed: Any) -> JobReport:
    """The report on a job of that size that trains on all its workers; `changed` are other objects than usual."""
    pods = workers(*range(size))
    config, lines = changed.pop("config", config_map(pods)), changed.pop("lines", None)
    parts = {
        "job": mpi_job(replicas=size),
        "launcher": launcher(refreshed=shown(config, at=CREATED) if config else None),
        "workers": [worker(index) for index in range(size)],
        "role": role(pods),
        **changed,
    }
    [seen] = read(
        [parts["job"]],
        pods=[*([parts["launcher"]] if parts["launcher"] else []), *parts["workers"]],
        configs=[config] if config else [],
        roles=None if parts["role"] is None else [parts["role"]],
    )
    return build(replace(seen, lines=lines), now=now)


def line(*, since: float, first: float = CREATED + 20.0, **told: Any) -> ProgressLine:
    """What a rank wrote a second ago; its steps take 0.3 s each. since: the first step of the ring."""
    usual = {"alive": True, "process": 1, "step": 1200, "samples": 128, "ranks": 2, "total": 4000}
    times = {"asked_at": NOW, "at": NOW - 1.0, "step_ms": 312.5, "own_ms": 0.0}
    sums = {"kept": 60.0, "repeated": 3.0, "again": 10, "open": 10.0}
    return ProgressLine(**{**usual, **times, **sums, "first": first, "since": since, **told})


def lines_of(*lines: ProgressLine | None) -> dict[str, ProgressLine]:
    """The lines of the first workers, by the uid of the pod."""
    pods = workers(*range(len(lines)))
    return {_uid(pod, "default"): one for pod, one in zip(pods, lines, strict=True) if one}


def _owned(
    name: str, job: str, namespace: str, *, labels: Mapping[str, str] | None = None
) -> Object:
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": job,
        "uid": _uid(job, namespace),
        "controller": True,
    }
    return {**_meta(name, namespace), "labels": dict(labels or {}), "ownerReferences": [owner]}


def _meta(name: str, namespace: str, **more: object) -> Object:
    times = {"resourceVersion": "7", "creationTimestamp": CREATED_TEXT}
    return {"name": name, "namespace": namespace, "uid": _uid(name, namespace), **times, **more}


def _uid(name: str, namespace: str) -> str:
    return f"uid of {namespace}/{name}"


def _raw(item: Object) -> bytes:
    return json.dumps(item).encode()
