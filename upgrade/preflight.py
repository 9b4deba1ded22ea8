"""A look at the cluster before an upgrade; nothing is written, every question is answered or said to be open."""

from __future__ import annotations

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install import inventory, server
from mpijob_elastic.install import preflight as installable
from mpijob_elastic.install.failure import InstallError
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.install.objects import identity
from mpijob_elastic.install.server_side_apply import HOOKS, Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.resources import ENDPOINT_SLICES, MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import findings, job_impact, jobs, live_crd, operators, rights
from upgrade.findings import Finding, Report, Verdict
from upgrade.job_impact import Adoption
from upgrade.refusal import Refused

_SCHEDULERS = {"volcano": "scheduling.volcano.sh", "kueue": "kueue.x-k8s.io"}
# The webhook refuses such a job, and a dry run keeps nothing.
_BAD_JOB = {
    "apiVersion": MPI_JOBS.api_version,
    "kind": MPI_JOBS.kind,
    "metadata": {"name": "mpijob-elastic-preflight", "annotations": {names.MIN_REPLICAS: "none"}},
    "spec": {"mpiReplicaSpecs": {}},
}


class _Endpoint(msgspec.Struct):
    class Conditions(msgspec.Struct):
        """Of one endpoint; absent means ready."""

        ready: bool | None = None

    conditions: Conditions = msgspec.field(default_factory=Conditions)


class _Slice(msgspec.Struct):
    endpoints: list[_Endpoint] | None = None


async def look(client: ApiWriter, plan: Plan, *, now: float) -> Report:
    """Look at everything; `now` in seconds since the epoch. Raises `errors.KubeError` where nothing can be asked."""
    found = await server.examine(client, [*plan.manifests(), *inventory.manifests()])
    adoptions = await _jobs(client, now=now)
    return Report(
        findings=(
            findings.kubernetes(found.version, found.minor),
            await _definition(client),
            *findings.operators(await operators.operators_in(client)),
            findings.jobs(adoptions),
            await _rights(client, found, plan),
            await _webhook(client, Applier(client=client, server=found), plan),
            *[findings.scheduler(name, served=await _serves(client, group)) for name, group in _SCHEDULERS.items()],
        ),
        jobs=tuple(adoptions or ()),
    )


async def _definition(client: ApiWriter) -> Finding:
    try:
        return findings.definition(await live_crd.read(client))
    except Refused:
        return findings.definition(None)
    except errors.Forbidden:
        return findings.unknown("definition", "read it")


async def _jobs(client: ApiWriter, *, now: float) -> list[Adoption] | None:
    try:
        return [job_impact.adoption(view, now=now) for view in await jobs.views_of_all(client)]
    except (errors.Forbidden, errors.NotFound):
        return None


async def _rights(client: ApiWriter, found: server.Server, plan: Plan) -> Finding:
    try:
        await installable.check(client, found, plan.manifests(), jobs_namespace=plan.jobs_namespace)
        await rights.check(client)
    except InstallError as error:
        return Finding(topic="rights", verdict=Verdict.NO, text=str(error))
    return Finding(topic="rights", verdict=Verdict.GO, text="this account may do all of it")


async def _serves(client: ApiWriter, group: str) -> bool:
    try:
        await client.get(f"/apis/{group}")
    except errors.NotFound:
        return False
    return True


async def _webhook(client: ApiWriter, applier: Applier, plan: Plan) -> Finding:
    topic = "webhook"
    hooks = [identity(one) for one in plan.manifests() if one["kind"] in HOOKS]
    try:
        registered = [await applier.read(one) for one in hooks]
    except errors.Forbidden:
        return findings.unknown(topic, "read its registration")
    if None in registered:
        return Finding(topic=topic, verdict=Verdict.GO, text="not installed yet")
    selector = f"kubernetes.io/service-name={names.WEBHOOK}"
    slices = await _slices(client, selector)
    ready = [one for found in slices for one in found.endpoints or () if one.conditions.ready is not False]
    namespace = plan.jobs_namespace or "default"
    if await _answers(client, namespace):
        return Finding(topic=topic, verdict=Verdict.GO, text=f"installed, {len(ready)} endpoints; it answers")
    return Finding(
        topic=topic,
        verdict=Verdict.CARE,
        text=f"installed, {len(ready)} endpoints; it did not answer for a job in {namespace}, and the API server goes "
        f"on without it: see the logs of deployment/{names.WEBHOOK}",
    )


async def _slices(client: ApiWriter, selector: str) -> list[_Slice]:
    try:
        return await list_objects(
            client, ENDPOINT_SLICES.path(), msgspec.json.Decoder(_Slice).decode, selector=selector
        )
    except (errors.Forbidden, errors.NotFound):
        return []


async def _answers(client: ApiWriter, namespace: str) -> bool:
    path = MPI_JOBS.path(namespace)
    try:
        await client.create_object(path, query={"dryRun": "All"}, body=_BAD_JOB)
    except errors.ApiError as error:
        return "admission webhook" in error.message
    return False
