"""Random sequences: how each step is taken, and when a job has converged."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.campaign.sequence_place import Place
from tests.campaign.sequence_steps import TEMPLATES, Step
from tests.lab.job import Job, State

Value = str | int | None
Take = Callable[[Place, Job, Value], Awaitable[None]]

# Seconds until a sequence has converged. The operator puts a job off by 5 ms * 2^n where n events came before a sync
# succeeds ([operator] AddRateLimited at each event), which was 655 s twice; client-go puts off by 1,000 s at most.
PATIENCE = 1100.0
QUIET = 2.0  # seconds for which nothing may be written then
LOOK = 1.0  # seconds between two looks at a job that changes
AWAY = {names.NAMESPACE_OPT_OUT: "disabled"}
BACK = {names.NAMESPACE_OPT_OUT: None}


async def play(place: Place, job: Job, steps: tuple[Step, ...]) -> None:
    """Take the steps; one that finds nothing to act on does nothing, and does not count as `taken`."""
    for step in steps:
        with contextlib.suppress(errors.ApiError):
            await TAKE[step.kind](place, job, step.value)
            place.taken += 1
        await asyncio.sleep(step.rest)


async def converged(
    place: Place, job: Job, create: Step, versions: Sequence[object], *, patience: float = PATIENCE
) -> State:
    """Undo what keeps a job from its size, and wait until it is whole and nobody writes. Raises AssertionError.

    versions: what was written in the namespace; it grows.
    """
    with contextlib.suppress(errors.NotFound):
        await _label(place, BACK)
    assert not place.failed(), place.failed()
    await _create(job, create.value)
    await job.annotate(enabled=None, drain_timeout="3s")
    await _template(job, "elastic")
    deadline = time.monotonic() + patience
    while True:
        written = len(versions)
        state = await job.state()
        if state.launcher_runs and not _mounts(state) and state.launcher and not _is_going(state.launcher):
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                # As the notice advises.
                await _delete(place, names.launcher(job.name))
        wrong = unlike(job, state)
        await asyncio.sleep(LOOK if wrong else QUIET)
        if not wrong and len(versions) == written:
            return state
        # Looks of many places would be most of what the API server does.
        while len(versions) == written and time.monotonic() < deadline:
            await asyncio.sleep(LOOK)
        assert time.monotonic() < deadline, f"{wrong or 'it is whole, and still something changes'}: {_words(state)}"


async def _size(_place: Place, job: Job, size: Value) -> None:
    assert isinstance(size, int)
    await job.scale(size)


def _annotation(name: str) -> Take:
    async def annotate(_place: Place, job: Job, value: Value) -> None:
        await job.annotate(**{name: None if value is None else str(value)})

    return annotate


async def _new_template(_place: Place, job: Job, which: Value) -> None:
    await _template(job, str(which))


async def _delete_worker(place: Place, job: Job, index: Value) -> None:
    await _delete(place, f"{job.name}-worker-{index}")


async def _delete_launcher(place: Place, job: Job, _value: Value) -> None:
    await _delete(place, names.launcher(job.name))


async def _fail_worker(_place: Place, job: Job, index: Value) -> None:
    await job.set_status(f"{job.name}-worker-{index}", {"phase": "Failed", "reason": "Error"})


async def _recreate(_place: Place, job: Job, _value: Value) -> None:
    await job.delete()
    async with asyncio.timeout(PATIENCE):
        while (state := await job.state()).workers or state.launcher or state.exec_names:
            await asyncio.sleep(0.2)
    await _create(job, 2)


def _file(key: str) -> Take:
    async def edit(place: Place, job: Job, text: Value) -> None:
        value = text.replace("{job}", job.name) if isinstance(text, str) else None
        await _edit(place, resources.CONFIG_MAPS, names.config_map(job.name), {"data": {key: value}})

    return edit


async def _memory(place: Place, job: Job, text: Value) -> None:
    body = {"metadata": {"annotations": {names.MEMORY: text}}}
    await _edit(place, resources.CONFIG_MAPS, names.config_map(job.name), body)


async def _replace_config(place: Place, job: Job, _value: Value) -> None:
    data = {names.KEY_DISCOVER_HOSTS: "old\n", names.KEY_HOSTFILE: f"{job.name}-worker-0 slots=1\n"}
    body = {"data": data, "metadata": {"annotations": {names.MEMORY: None}}}
    await _edit(place, resources.CONFIG_MAPS, names.config_map(job.name), body)


async def _role(place: Place, job: Job, what: Value) -> None:
    name = names.launcher(job.name)
    role = msgspec.json.decode(await place.client.get(resources.ROLES.path(place.namespace, name)))
    rules: list[dict[str, Any]] = role["rules"]
    [rule] = [rule for rule in rules if rule["resources"] == ["pods/exec"]]
    had = rule.get("resourceNames", [])
    given = {"empty": [f"{job.name}-none"], "first": had[:1], "stranger": [*had, "stranger"]}
    rule["resourceNames"] = given[str(what)]
    await _edit(place, resources.ROLES, name, {"rules": rules})


async def _clock(place: Place, _job: Job, seconds: Value) -> None:
    assert isinstance(seconds, int)
    place.ahead += seconds


async def _kill_leader(place: Place, _job: Job, _value: Value) -> None:
    await place.kill()
    await place.lead()


async def _webhook(place: Place, _job: Job, what: Value) -> None:
    await _label(place, AWAY if what == "away" else BACK)


async def _new_job(_place: Place, job: Job, size: Value) -> None:
    await _create(job, size)


TAKE: Mapping[str, Take] = {
    "create": _new_job,
    "size": _size,
    "drain_timeout": _annotation("drain_timeout"),
    "min_replicas": _annotation("min_replicas"),
    "enabled": _annotation("enabled"),
    "template": _new_template,
    "delete_worker": _delete_worker,
    "delete_launcher": _delete_launcher,
    "fail_worker": _fail_worker,
    "recreate": _recreate,
    "script": _file(names.KEY_DISCOVER_HOSTS),
    "hostfile": _file(names.KEY_HOSTFILE),
    "memory": _memory,
    "replace_config": _replace_config,
    "role": _role,
    "clock": _clock,
    "kill_leader": _kill_leader,
    "webhook": _webhook,
}


async def _create(job: Job, size: Value) -> None:
    assert isinstance(size, int)
    with contextlib.suppress(errors.Conflict):
        await job.create(replicas=size, annotations={names.DRAIN_TIMEOUT: "3s"})


async def _template(job: Job, which: str) -> None:
    container = {"name": "launcher", "image": "horovod:test", "command": TEMPLATES[which]}
    template = {"metadata": {"annotations": {}}, "spec": {"containers": [container]}}
    await job.patch({"spec": {"mpiReplicaSpecs": {"Launcher": {"template": template}}}})


async def _delete(place: Place, pod: str) -> None:
    path = resources.PODS.path(place.namespace, pod)
    uid = msgspec.json.decode(await place.client.get(path))["metadata"]["uid"]
    place.deleted.add(uid)
    await place.client.delete_object(path, uid=uid)


async def _edit(place: Place, resource: resources.Resource, name: str, body: object) -> None:
    path = resource.path(place.namespace, name)
    answer = msgspec.json.decode(await place.client.patch_object(path, body=body, content_type=MERGE_PATCH))
    place.edits.add((resource.kind, name, answer["metadata"]["resourceVersion"]))


async def _label(place: Place, labels: dict[str, str] | dict[str, None]) -> None:
    path = resources.NAMESPACES.path(None, place.namespace)
    await place.client.patch_object(path, body={"metadata": {"labels": labels}}, content_type=MERGE_PATCH)


def _mounts(state: State) -> bool:
    volumes = state.launcher["spec"]["volumes"] if state.launcher else []
    items = [item for volume in volumes for item in volume.get("configMap", {}).get("items", [])]
    return any(item["key"] == names.KEY_DISCOVER_HOSTS for item in items)


def _is_going(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def unlike(job: Job, state: State) -> str:
    """Return what a whole job has and this does not, "" if nothing."""
    pods = job.workers(*range(state.replicas))
    hosts = [names.pod_of(host.rpartition(":")[0]) for host in state.hosts]
    wanted = {
        "the workers": sorted(state.workers) == sorted(pods) == sorted(state.running),
        "the hosts": hosts == pods,
        "the hostfile": state.hostfile == [f"{pod} slots=1" for pod in pods],
        "the Role": {*pods} <= {*state.exec_names},
        "the launcher": state.launcher_runs and _mounts(state),
        "the notices": not state.notices or state.notices.startswith("HostListContested"),
    }
    return ", ".join(what for what, holds in wanted.items() if not holds)


def _words(state: State) -> str:
    pods = {name: pod["status"].get("phase") for name, pod in state.workers.items()}
    return (
        f"replicas {state.replicas}, hosts {state.hosts}, hostfile {state.hostfile}, exec {state.exec_names}, "
        f"workers {pods}, launcher runs {state.launcher_runs}, notices {state.notices!r}, memory {state.memory}"
    )
