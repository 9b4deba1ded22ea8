"""Look at the cluster before an upgrade. Nothing is written; a question that cannot be answered is reported as open."""

from mpijob_elastic import names
from mpijob_elastic.install import installer, inventory, objects, server
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.install.objects import identity
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.install.server_side_apply import HOOKS, Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import ENDPOINT_SLICES
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from upgrade import apply, canary, findings, job_impact, jobs, kueue, live_crd, operators
from upgrade.findings import Finding, Report, Verdict


async def look(client: ApiWriter, plan: Plan, *, now: float) -> Report:
    """Look at everything; `now` in seconds since the epoch. Raises `errors.KubeError` if nothing can be asked."""
    found = await server.examine(client, [*plan.manifests(), *inventory.manifests()])
    views = await _jobs(client)
    adoptions = None if views is None else [job_impact.adoption(view, now=now) for view in views]
    return Report(
        findings=(
            findings.kubernetes(found.version, found.minor),
            await _definition(client),
            *findings.operators(await operators.operators_in(client)),
            findings.jobs(adoptions),
            *([] if views is None else findings.faults(await jobs.faults_of_all(client))),
            await _rights(client, found, plan),
            await _webhook(client, found, plan),
            await kueue.look(client),
        ),
        jobs=tuple(adoptions or ()),
    )


async def _definition(client: ApiReader) -> Finding:
    try:
        return findings.definition(await live_crd.read(client))
    except Refused:
        return findings.definition(None)
    except errors.Forbidden:
        return findings.unknown("definition", "read it")


async def _jobs(client: ApiReader) -> list[JobView] | None:
    try:
        return await jobs.views_of_all(client)
    except (errors.Forbidden, errors.NotFound):
        return None


async def _rights(client: ApiReader, found: server.Server, plan: Plan) -> Finding:
    try:
        await installer.check(client, found, plan, uncover=False)
        await apply.check(client)
    except (Refused, errors.Forbidden) as error:
        return Finding("rights", Verdict.NO, str(error))
    return Finding("rights", Verdict.GO, "this account has all rights that are needed")


async def _webhook(client: ApiWriter, found: server.Server, plan: Plan) -> Finding:
    topic, applier = "webhook", Applier(client=client, server=found)
    hooks = [identity(manifest) for manifest in plan.manifests() if manifest["kind"] in HOOKS]
    try:
        registered = [await applier.read(hook) for hook in hooks]
    except errors.Forbidden:
        return findings.unknown(topic, "read its registration")
    if None in registered:
        return Finding(topic, Verdict.GO, "not installed yet")
    namespace = next(iter(plan.jobs_namespaces), "default")
    installed = f"installed, {await _ready_endpoints(client)} endpoints"
    try:
        answers = await canary.is_webhook_called(client, namespace)
    except errors.ApiError:
        answers = False
    if answers:
        return Finding(topic, Verdict.GO, f"{installed}; it answers")
    return Finding(
        topic,
        Verdict.CARE,
        f"{installed}; it did not answer for a job in {namespace}, and the API server goes on without it: see the "
        f"logs of deployment/{names.WEBHOOK}",
    )


async def _ready_endpoints(client: ApiReader) -> int:
    selector = f"kubernetes.io/service-name={names.WEBHOOK}"
    try:
        slices = await list_objects(client, ENDPOINT_SLICES.path(), objects.read, selector=selector)
    except (errors.Forbidden, errors.NotFound):
        return 0
    # An absent condition means ready.
    endpoints = [end for found in slices for end in found.get("endpoints") or ()]
    return sum(end.get("conditions", {}).get("ready") is not False for end in endpoints)
