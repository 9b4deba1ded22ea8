"""Random sequences: steps of users, other programs and misfortune, as values that can be printed and replayed."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.campaign.sequence_place import PATIENCE, Place
from tests.lab.job import HOROVODRUN, MPIRUN, Job

SHORTEST, LONGEST = 3, 9  # steps of a sequence
MOST_WORKERS = 4
HOUR = 3600
GARBAGE = (
    "garbage",
    "",
    "#!/bin/sh\nexit 1\n",
    "#!/bin/sh\necho a:9\n",
    "#!/bin/sh\necho {job}-worker-0:1\n",
)
TEMPLATES = {"elastic": HOROVODRUN, "other": [*HOROVODRUN, "--verbose"], "plain": MPIRUN}

Value = str | int | None
Take = Callable[[Place, Job, Any], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """A step: its kind, one of `KINDS`; its value, if it has one; seconds of rest after it."""

    kind: str
    value: Value = None
    rest: float = 0.0


class Kind(NamedTuple):
    """How a step is taken, the values that it may have, and how often it is drawn."""

    take: Take
    weight: int
    values: tuple[Value, ...] = (None,)


def sequence(seed: str) -> tuple[Step, ...]:
    """Return the sequence of that seed: the first step creates the job."""
    random = Random(seed)
    steps = [Step("create", random.randint(1, 3), random.choice([0.0, 5.0, 5.0]))]
    weights = [kind.weight for kind in KINDS.values()]
    for drawn in random.choices([*KINDS], weights=weights, k=random.randint(SHORTEST, LONGEST)):
        rest = random.choice([0.0, 0.0, 0.3, 1.0, 4.0])
        steps.append(Step(drawn, random.choice(KINDS[drawn].values), rest))
    return tuple(steps)


async def play(place: Place, job: Job, steps: tuple[Step, ...]) -> None:
    """Take the steps; one that finds nothing to act on does nothing, and does not count as `taken`."""
    for step in steps:
        with contextlib.suppress(errors.ApiError):
            await KINDS[step.kind].take(place, job, step.value)
            place.taken += 1
        await asyncio.sleep(step.rest)


async def create(_place: Place, job: Job, size: int) -> None:
    with contextlib.suppress(errors.Conflict):
        await job.create(replicas=size, annotations={names.DRAIN_TIMEOUT: "3s"})


async def template(_place: Place, job: Job, which: str) -> None:
    container = {"name": "launcher", "image": "horovod:test", "command": TEMPLATES[which]}
    content = {"metadata": {"annotations": {}}, "spec": {"containers": [container]}}
    await job.patch({"spec": {"mpiReplicaSpecs": {"Launcher": {"template": content}}}})


async def delete(place: Place, job: Job, pod: str) -> None:
    """Delete the pod of the job with this end of its name."""
    path = resources.PODS.path(place.namespace, f"{job.name}-{pod}")
    uid = msgspec.json.decode(await place.client.get(path))["metadata"]["uid"]
    place.deleted.add(uid)
    await place.client.delete_object(path, uid=uid)


async def webhook(place: Place, _job: Job, what: str) -> None:
    """Let the webhook be called, or not."""
    path = resources.NAMESPACES.path(None, place.namespace)
    body = {
        "metadata": {"labels": {names.NAMESPACE_OPT_OUT: "disabled" if what == "away" else None}}
    }
    await place.client.patch_object(path, body=body, content_type=MERGE_PATCH)


async def _size(_place: Place, job: Job, size: int) -> None:
    await job.scale(size)


async def _scale(place: Place, job: Job, size: int) -> None:
    """Set the size as `kubectl scale` and an HPA do; the webhook may refuse it."""
    path = resources.MPI_JOBS.path(place.namespace, job.name, "scale")
    body = {"spec": {"replicas": size}}
    await place.client.patch_object(path, body=body, content_type=MERGE_PATCH)


def _annotation(name: str) -> Take:
    async def annotate(_place: Place, job: Job, value: str | None) -> None:
        await job.annotate(**{name: value})

    return annotate


async def _delete_worker(place: Place, job: Job, index: int) -> None:
    await delete(place, job, f"worker-{index}")


async def _delete_launcher(place: Place, job: Job, _: None) -> None:
    await delete(place, job, "launcher")


async def _fail_worker(_place: Place, job: Job, index: int) -> None:
    await job.set_status(names.worker(job.name, index), {"phase": "Failed", "reason": "Error"})


async def _recreate(place: Place, job: Job, _: None) -> None:
    await job.delete()
    async with asyncio.timeout(PATIENCE):
        while (state := await job.state()).workers or state.launcher or state.exec_names:
            await asyncio.sleep(0.2)
    await create(place, job, 2)


def _config(edit: Callable[[Job, Any], Mapping[str, Any]]) -> Take:
    """Edit the ConfigMap as somebody else would."""

    async def take(place: Place, job: Job, value: str | None) -> None:
        await _edit(place, resources.CONFIG_MAPS, names.config_map(job.name), edit(job, value))

    return take


def _file(key: str) -> Take:
    return _config(lambda job, text: {"data": {key: text and text.replace("{job}", job.name)}})


def _old(job: Job, _: None) -> Mapping[str, Any]:
    data = {names.KEY_DISCOVER_HOSTS: "old\n", names.KEY_HOSTFILE: f"{job.name}-worker-0 slots=1\n"}
    return {"data": data, "metadata": {"annotations": {names.MEMORY: None}}}


async def _role(place: Place, job: Job, what: str) -> None:
    name = names.launcher(job.name)
    role = msgspec.json.decode(await place.client.get(resources.ROLES.path(place.namespace, name)))
    [rule] = [rule for rule in role["rules"] if rule["resources"] == ["pods/exec"]]
    had = rule.get("resourceNames", [])
    given = {"empty": [f"{job.name}-none"], "first": had[:1], "stranger": [*had, "stranger"]}
    rule["resourceNames"] = given[what]
    await _edit(place, resources.ROLES, name, {"rules": role["rules"]})


async def _edit(place: Place, resource: resources.Resource, name: str, body: object) -> None:
    path = resource.path(place.namespace, name)
    answer = msgspec.json.decode(
        await place.client.patch_object(path, body=body, content_type=MERGE_PATCH)
    )
    place.edits.add((resource.kind, name, answer["metadata"]["resourceVersion"]))


async def _clock(place: Place, _job: Job, seconds: int) -> None:
    place.ahead += seconds


async def _kill_leader(place: Place, _job: Job, _: None) -> None:
    await place.kill()
    await place.lead()


KINDS: Mapping[str, Kind] = {
    "create": Kind(create, 0),
    "size": Kind(_size, 8, tuple(range(1, MOST_WORKERS + 1))),
    "scale": Kind(_scale, 6, tuple(range(1, MOST_WORKERS + 1))),
    "drain_timeout": Kind(_annotation("drain_timeout"), 2, ("0s", "1s", "3s", None)),
    "min_replicas": Kind(_annotation("min_replicas"), 1, ("1", None)),
    "parked": Kind(_annotation("parked"), 4, ("0", "1", "0,2", None, None)),
    "sizes": Kind(_annotation("sizes"), 2, ("2,4", "*2", "1,3", None)),
    "enabled": Kind(_annotation("enabled"), 1, ("true", "false", None)),
    "template": Kind(template, 1, tuple(TEMPLATES)),
    "delete_worker": Kind(_delete_worker, 2, (0, 1, 2)),
    "delete_launcher": Kind(_delete_launcher, 1),
    "fail_worker": Kind(_fail_worker, 1, (0, 1, 2)),
    "recreate": Kind(_recreate, 1),
    "script": Kind(_file(names.KEY_DISCOVER_HOSTS), 5, (*GARBAGE, None)),
    "hostfile": Kind(_file(names.KEY_HOSTFILE), 1, ("nobody slots=1\n", "", None)),
    "memory": Kind(
        _config(lambda _, text: {"metadata": {"annotations": {names.MEMORY: text}}}),
        1,
        ("garbage", "{}", None),
    ),
    "replace_config": Kind(_config(_old), 1),
    "role": Kind(_role, 2, ("empty", "first", "stranger")),
    "clock": Kind(_clock, 3, (*[-HOUR, HOUR, -600, 600, -30, 30] * HOUR, *range(-HOUR, HOUR))),
    "kill_leader": Kind(_kill_leader, 2),
    "webhook": Kind(webhook, 2, ("away", "back")),
}
