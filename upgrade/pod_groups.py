"""PodGroups of gang schedulers: whether they are served, and whether those who write them may do so.

[operator] With --gang-scheduling it lists the PodGroups of Volcano at its start, and works on no job before that
succeeds. Its own manifest grants it only API groups that Volcano used earlier.
https://github.com/kubeflow/mpi-operator/blob/v0.2.3/deploy/v1/mpi-operator.yaml
"""

import asyncio
from collections.abc import AsyncIterator, Iterable

from mpijob_elastic import names
from mpijob_elastic.install.objects import read
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import DEPLOYMENTS, POD_GROUPS, Resource
from mpijob_elastic.model import gang
from mpijob_elastic.model.job import JobView
from upgrade.findings import Finding, Verdict, unknown
from upgrade.operators import Account, Operator

TOPIC = "podgroups"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_CONTROLLER = Account(namespace=names.NAMESPACE, name=names.CONTROLLER)
_OPERATORS_VERBS = ("list", "watch", "create", "delete")
# As config/base/controller-rbac.yaml grants them.
_OUR_VERBS: tuple[str, ...] = ("list", "watch", "create", "patch")
# minCount of a PodGroup of Kubernetes cannot change (docs/decisions/0037).
_OUR_VERBS_OF_KUBERNETES = (*_OUR_VERBS, "delete")


async def look(client: ApiReader, operators: Iterable[Operator], views: Iterable[JobView]) -> Finding:
    """Say what is missing for operators with --gang-scheduling, and for jobs that ask for a gang."""
    gangs = [operator for operator in operators if operator.gang]
    asking = [view for view in views if view.gang and not (view.finished or view.deleting)]
    if not (gangs or asking):
        return Finding(TOPIC, Verdict.GO, "no operator and no job needs them")
    try:
        found = [lack async for lack in _of_operators(client, gangs)]
        found += [lack async for lack in _of_jobs(client, asking)]
    except errors.Forbidden:
        return unknown(TOPIC, "ask what other accounts may do")
    if found:
        return Finding(TOPIC, Verdict.CARE, "; ".join(found))
    return Finding(TOPIC, Verdict.GO, "served; the operator and the controller have the rights that they need")


async def _of_operators(client: ApiReader, operators: Iterable[Operator]) -> AsyncIterator[str]:
    for one in operators:
        begin = f"{one.where} runs with --gang-scheduling and works on no job"
        if not await served(client, POD_GROUPS):
            kind = f"{POD_GROUPS.plural}.{POD_GROUPS.group}/{POD_GROUPS.version}"
            yield f"{begin} while {kind} is not served: install Volcano, or remove the flag"
        elif lacks := await _denied(client, one.account, POD_GROUPS, one.jobs_namespace, _OPERATORS_VERBS):
            yield f"{begin}, or not on all, while it has no right to {lacks}: grant it, or remove the flag"


async def _of_jobs(client: ApiReader, views: Iterable[JobView]) -> AsyncIterator[str]:
    installed = await client.find(DEPLOYMENTS.path(names.NAMESPACE, names.CONTROLLER)) is not None
    needed = {(view.namespace, view.gang.scheduler): view.name for view in views if view.gang}
    for (namespace, scheduler), job in sorted(needed.items()):
        groups, verbs = gang.POD_GROUPS[scheduler], _OUR_VERBS
        follows = f"so its pods do not start: install {scheduler}"
        if scheduler == names.KUBERNETES:
            verbs = _OUR_VERBS_OF_KUBERNETES
            follows = f"so its pods start one by one: run Kubernetes 1.36 with {names.KUBERNETES_GATES}"
        if not await served(client, groups):
            begin = f"{namespace}/{job} asks for a gang, but the cluster serves no PodGroups of {scheduler}"
            yield f"{begin}, {follows}, or remove {names.GANG}"
        elif installed and (lacks := await _denied(client, _CONTROLLER, groups, namespace, verbs)):
            begin = f"{namespace}/{job} asks for a gang, but the controller has no right to {lacks}"
            yield f"{begin}: `mpijob-elastic upgrade apply` grants it"


async def served(client: ApiReader, resource: Resource) -> bool:
    """Tell whether the cluster serves PodGroups of that version."""
    return await client.find(f"/apis/{resource.api_version}") is not None


async def _denied(
    client: ApiReader, account: Account, resource: Resource, namespace: str, verbs: tuple[str, ...]
) -> str:
    """Return the verbs that the account may not use, and on what; "" if there are none. namespace: "" for all."""
    answers = await asyncio.gather(*(_allowed(client, account, resource, namespace, verb) for verb in verbs))
    denied = [verb for verb, allowed in zip(verbs, answers, strict=True) if not allowed]
    where = f"namespace {namespace}" if namespace else "all namespaces"
    return f"{', '.join(denied)} {resource.plural}.{resource.group} in {where} ({account})" if denied else ""


async def _allowed(client: ApiReader, account: Account, resource: Resource, namespace: str, verb: str) -> bool:
    asked = {"verb": verb, "group": resource.group, "resource": resource.plural, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account.user, "groups": account.groups, "resourceAttributes": asked},
    }
    return bool(read(await client.review(_REVIEWS, body=review))["status"].get("allowed"))
