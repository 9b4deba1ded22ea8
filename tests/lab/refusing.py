"""Writes that are refused for good, one kind at a time: what makes each due, and what comes true all the same."""

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lab.cluster import Cluster
from mpijob_elastic import names
from tests.lab.job import Job
from tests.lab.scalable import told
from tests.lab.suspended import held
from tests.lab.waiting import until

WHY = "the platform team forbids it"
CANARY = "canary"
Step = Callable[[Job], Awaitable[object]]


def asks(**annotations: str | None) -> Step:
    return lambda job: job.annotate(**annotations)


def sized(replicas: int) -> Step:
    return lambda job: job.scale(replicas)


def trains(replicas: int) -> Step:
    async def step(job: Job) -> None:
        await job.annotate(suspend=None)
        await job.scale(replicas)
        await job.settled(replicas)

    return step


async def of_three(job: Job) -> None:
    await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "1s"})
    await job.settled(3)


async def is_replaced(job: Job) -> None:
    """The first worker fails."""
    [first] = job.workers(0)
    before = await job.state()
    await job.set_status(first, {"phase": "Failed", "reason": "Error"})
    await job.replaced(before, first)
    await job.until(lambda state: len(state.hosts) == state.replicas, "all workers listed")


async def stops(job: Job) -> None:
    await job.annotate(suspend="true")
    await job.until(lambda state: held(state, state.replicas), "gated pods only")


WHOLE = trains(3)
RUNNING = (trains(2), is_replaced, WHOLE)
DAY = (*RUNNING, stops, WHOLE)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A kind of write: what makes it due, and what comes true all the same.

    group, resource, operation, when (CEL): as a policy names it. create, before: what is done
    before there is the policy. after: what comes true once it is gone.
    """

    group: str = ""
    resource: str
    operation: str
    when: str = "true"
    create: Step = of_three
    before: tuple[Step, ...] = ()
    due: Step
    then: tuple[Step, ...]
    after: Step = WHOLE


async def withstands(job: Job, cluster: Cluster, refused: Refused) -> None:
    """Refuse a kind of write to a new job for a while.

    The refusal is told with its reason; all else comes true.
    """
    for step in (refused.create, *refused.before):
        await step(job)
    with forbidding(cluster, job.namespace, refused):
        await refused.due(job)
        await job.told("Refused", WHY)
        for step in refused.then:
            await step(job)
    await refused.after(job)
    await job.until(lambda state: WHY not in state.notices, "no refusal")


@contextmanager
def forbidding(cluster: Cluster, namespace: str, refused: Refused) -> Iterator[None]:
    """Have a policy refuse the controller's writes of a kind in a namespace as long as the block lasts."""
    name = f"forbidding-{namespace}"
    ours = f"request.userInfo.username == '{names.CONTROLLER_USER}' && ({refused.when}) || request.name == '{CANARY}'"
    places = ((refused.group, refused.resource, refused.operation), ("", "configmaps", "CREATE"))
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "resources": [resource],
            "operations": [operation],
        }
        for group, resource, operation in places
    ]
    policy = {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [{"name": "ours", "expression": ours}],
            "validations": [{"expression": "false", "message": WHY}],
        },
    }
    there = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": there},
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [{**head, **one} for one in (policy, binding)],
        }
    )
    create = ("create", "configmap", CANARY, "-n", namespace, "--dry-run=server")
    cluster.kubectl("apply", "-f", "-", stdin=text)
    try:
        until(lambda: WHY in told(cluster, *create)[1])
        yield
    finally:
        cluster.kubectl("delete", "-f", "-", stdin=text)
    until(lambda: told(cluster, *create)[0] == 0)
