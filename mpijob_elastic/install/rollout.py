"""Wait until applied objects are ready, and say why they are not."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install import NotInTime
from mpijob_elastic.install.objects import ObjectIdentity, Say
from mpijob_elastic.install.server import Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import list_objects
from mpijob_elastic.kube.resources import PODS

POLL = 0.5  # seconds

# Says in words what is missing; "" when nothing is.
Missing = Callable[[], Awaitable[str]]


async def until(condition: Missing, *, seconds: float, say: Say) -> str:
    """Wait until nothing is missing, and say what is; return what is missing at the end.

    Trouble of the API server counts as missing: it may be restarting.
    """
    said = ""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            missing = await condition()
        except (errors.Unreachable, errors.ApiError) as error:
            if not errors.may_pass(error):
                raise
            missing = str(error)
        if missing and missing != said:
            said = missing
            say(missing)
        if not missing or asyncio.get_running_loop().time() > deadline:
            return missing
        await asyncio.sleep(POLL)


async def wait(condition: Missing, *, seconds: float, say: Say, advice: str) -> None:
    """Wait as `until` does.

    Raises `NotInTime` with what is missing after `seconds`, and `advice`.
    """
    if late := await until(condition, seconds=seconds, say=say):
        raise NotInTime(f"after {seconds:.0f} s {late}; {advice}")


async def for_deployments(
    applier: Applier, deployments: Sequence[ObjectIdentity], *, seconds: float, say: Say
) -> None:
    """Wait until all replicas of all Deployments are new and available.

    Raises `NotInTime`, `errors.KubeError`.
    """

    async def missing() -> str:
        found = await asyncio.gather(*(applier.read(one) for one in deployments))
        return ", ".join(filter(None, map(rollout, deployments, found)))

    if late := await until(missing, seconds=seconds, say=say):
        reasons = await _reasons(applier, deployments)
        raise NotInTime(
            f"not ready after {seconds:.0f} s: {late}{''.join(reasons)}\nThe webhook "
            "configurations were not touched. Correct this and run the same command again"
        )


async def for_bundles(
    applier: Applier, hooks: Sequence[ObjectIdentity], *, seconds: float, say: Say
) -> None:
    """Wait until every webhook has the CA that verifies its calls.

    Raises as `for_deployments` does.
    """

    async def missing() -> str:
        found = await asyncio.gather(*(applier.read(one) for one in hooks))
        return ", ".join(
            f"{one} has no caBundle yet"
            for one, live in zip(hooks, found, strict=True)
            if live is None
            or any(not hook["clientConfig"].get("caBundle") for hook in live["webhooks"])
        )

    if late := await until(missing, seconds=seconds, say=say):
        raise NotInTime(
            f"not trusted after {seconds:.0f} s: {late}. The log of "
            f"deployment/{names.WEBHOOK} (or of cert-manager) says why; until then, calls of "
            "the webhook fail and the API server goes on without it"
        )


def rollout(one: ObjectIdentity, live: dict[str, Any] | None) -> str:
    """Return what `kubectl rollout status` would wait for, in words; "" if it would not wait."""
    if live is None:
        return f"{one} is gone"
    status, replicas = live.get("status", {}), live["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= live["metadata"]["generation"]
    new = min(status.get("updatedReplicas", 0), status.get("availableReplicas", 0)) if seen else 0
    settled = seen and new == replicas == status.get("replicas", 0)
    return "" if settled else f"{one}: {new} of {replicas} replicas ready"


async def _reasons(applier: Applier, deployments: Iterable[ObjectIdentity]) -> list[str]:
    reasons = []
    for one in deployments:
        live = await applier.read(one)
        if live is None:
            continue
        conditions = live.get("status", {}).get("conditions", [])
        failures = [
            one for one in conditions if one["type"] == "ReplicaFailure" and one["status"] == "True"
        ]
        reasons += [failure["message"] for failure in failures]
        selector = ",".join(
            f"{key}={value}" for key, value in live["spec"]["selector"]["matchLabels"].items()
        )
        pods = await list_objects(
            applier.client, PODS.path(one.namespace), msgspec.json.decode, selector=selector
        )
        reasons += [reason for pod in pods for reason in _pod_reasons(pod)]
    return [f"\n  {reason}" for reason in dict.fromkeys(reasons)]


def _pod_reasons(pod: dict[str, Any]) -> list[str]:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    containers = status.get("containerStatuses", [])
    waiting = [
        container["state"]["waiting"] for container in containers if "waiting" in container["state"]
    ]
    unscheduled = [
        one for one in status.get("conditions", []) if one.get("reason") == "Unschedulable"
    ]
    return [
        f"pod {name}: {one.get('reason', '')}: {one.get('message', '')}"
        for one in (*waiting, *unscheduled)
    ]
