"""Does again, on a real API server, what a recording says was done, and waits until the world is as recorded."""

import asyncio
import difflib
import re
from typing import Any

import msgspec
import yaml

from lab.operator.kinds import CONFIG_MAPS, MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.kube.errors import NotFound
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.recording import Recording, Step, World
from tests.lab.world import look

NAMESPACE = "default"
PATIENCE = 120.0  # seconds until the world must be as recorded; the real operator's limits take some
HOLD = 0.4  # seconds for which it must then stay so
POLL = 0.04  # seconds

_POD = re.compile(r"(?:launcher|worker (?P<index>\d+)) pod (?P<phase>Succeeded|Failed)(?:, reason (?P<reason>\w+))?")
_DELETED = re.compile(r"worker (?P<index>\d+) deleted by hand")
_EDITED = re.compile(r"edit Worker\.replicas to (?P<replicas>\d+)(?: again)?")
_BY_HAND = "Role gains worker 2 and ConfigMap gains a key, by hand"


async def replay(client: ApiWriter, recording: Recording) -> None:
    """Do all steps and check the world after each, then remove the job; raise AssertionError with the difference."""
    create = recording.steps[0]
    for _ in range(recording.earlier_lives):
        await _perform(client, recording.job, create)
        await _until_running(client, recording.job)
        await _remove(client, recording.job)
    try:
        for step in recording.steps:
            await _perform(client, recording.job, step)
            await settle(client, recording.job, step.after, after=step.do)
    finally:
        await _remove(client, recording.job)


async def settle(client: ApiWriter, job: str, expected: World, *, after: str) -> None:
    """Wait until the job's world is as expected and stays so; raise AssertionError with the difference."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    since: float | None = None
    while since is None or loop.time() < since + HOLD:
        world = await look(client, namespace=NAMESPACE, job=job)
        if world != expected:
            since = None
            assert loop.time() < deadline, f"after {after!r} (- recorded, + here):\n{_difference(expected, world)}"
        elif since is None:
            since = loop.time()
        await asyncio.sleep(POLL)


async def _perform(client: ApiWriter, job: str, step: Step) -> None:
    if step.do == "create":
        body = {key: value for key, value in step.changed[f"MPIJob/{job}"].items() if key != "status"}
        await client.create_object(MPI_JOBS.path(NAMESPACE), body=body)
    elif match := _EDITED.fullmatch(step.do):
        spec = {"mpiReplicaSpecs": {"Worker": {"replicas": int(match["replicas"])}}}
        await _patch(client, MPI_JOBS, job, {"spec": spec})
    elif match := _POD.fullmatch(step.do):
        status = {"phase": match["phase"], "reason": match["reason"]}
        await _patch(client, PODS, _pod(job, match["index"]), {"status": status}, subresource="status")
    elif match := _DELETED.fullmatch(step.do):
        await _delete_pod(client, _pod(job, match["index"]))
    elif step.do == _BY_HAND:
        role, config = step.changed[f"Role/{job}-launcher"], step.changed[f"ConfigMap/{job}-config"]
        await _patch(client, ROLES, f"{job}-launcher", {"rules": role["rules"]})
        await _patch(client, CONFIG_MAPS, f"{job}-config", {"data": config["data"]})
    else:
        raise ValueError(f"a recording has the step {step.do!r}, which this file does not know")


def _pod(job: str, index: str | None) -> str:
    return f"{job}-launcher" if index is None else f"{job}-worker-{index}"


async def _patch(
    client: ApiWriter, resource: Resource, name: str, patch: dict[str, Any], *, subresource: str | None = None
) -> None:
    path = resource.path(NAMESPACE, name, subresource)
    await client.patch_object(path, body=patch, content_type=MERGE_PATCH)


async def _delete_pod(client: ApiWriter, name: str) -> None:
    path = PODS.path(NAMESPACE, name)
    uid = _uid(await client.delete_object(path))
    while True:
        try:
            if _uid(await client.get(path)) != uid:
                return
        except NotFound:
            return
        await asyncio.sleep(POLL)


def _uid(answer: bytes) -> str:
    return str(msgspec.json.decode(answer)["metadata"]["uid"])


async def _until_running(client: ApiWriter, job: str) -> None:
    running = f"Normal MPIJobRunning MPIJob/{job}: MPIJob {NAMESPACE}/{job} is running"
    while running not in (await look(client, namespace=NAMESPACE, job=job))["Events"]:
        await asyncio.sleep(POLL)


async def _remove(client: ApiWriter, job: str) -> None:
    # The garbage collector follows some time after.
    await client.delete_object(MPI_JOBS.path(NAMESPACE, job))
    while set(await look(client, namespace=NAMESPACE, job=job)) != {"Events"}:
        await asyncio.sleep(POLL)


def _difference(expected: World, world: World) -> str:
    recorded, here = (yaml.safe_dump(part, width=200).splitlines() for part in (expected, world))
    return "\n".join(difflib.unified_diff(recorded, here, lineterm="", n=6))
