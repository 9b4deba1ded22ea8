"""Look at the cluster before an installation, or at one that is there.

Nothing is written; a question that cannot be answered is reported as open.
"""

from mpijob_elastic import capabilities, names
from mpijob_elastic.install import Refused, installer, server
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.kube import errors, wire
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import operator_types
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import registration, views
from upgrade import canary, findings, kueue, operators, scale, traces
from upgrade.findings import Advice, Finding, Report


async def look(client: ApiWriter, plan: Plan, *, now: float) -> Report:
    """Look at everything; `now` in seconds since the epoch. Raises `errors.KubeError` if nothing can be asked."""
    found = await server.examine(client, [*plan.manifests(), *server.every_manifest()])
    jobs = await _jobs(client)
    adoptions = None if jobs is None else [findings.adoption(view, now=now) for view in jobs]
    return Report(
        findings=(
            findings.kubernetes(found.version, found.minor),
            await _definition(client),
            *findings.operators(await operators.operators_in(client)),
            findings.jobs(adoptions),
            *([] if jobs is None else findings.faults(await _faults(client))),
            await _rights(client, found, plan),
            await _webhook(client, plan),
            await kueue.look(client),
        ),
        jobs=tuple(adoptions or ()),
    )


async def _definition(client: ApiReader) -> Finding:
    try:
        return findings.definition(await scale.read_definition(client))
    except Refused:
        return findings.definition(None)
    except errors.Forbidden:
        return findings.unknown("definition", "read it")


async def _jobs(client: ApiReader) -> list[JobView] | None:
    """Return a view of each job, sorted by namespace and name; Roles are left out. None: they cannot be read."""
    try:
        jobs, configs, pods = await traces.read_all(client)
    except (errors.Forbidden, errors.NotFound):
        return None
    jobs.sort(key=lambda job: (job.metadata.namespace, job.metadata.name))
    return views.each(map(capabilities.of, jobs), pods=pods, configs=configs)


async def _faults(client: ApiReader) -> list[str]:
    """Return the first fault of each job that stops mpi-operator v0.2.3 for all jobs."""

    def read(raw: bytes) -> str:
        job, (faults, _) = wire.read_stub(raw).metadata, operator_types.judge(raw)
        return f"{job.namespace}/{job.name}: {faults[0]}" if faults else ""

    return [fault for fault in await list_objects(client, MPI_JOBS.path(), read) if fault]


async def _rights(client: ApiReader, found: server.Server, plan: Plan) -> Finding:
    try:
        await installer.check(client, found, plan, uncover=False)
        for check in (scale.check, traces.check):
            await check(client)
    except (Refused, errors.Forbidden) as error:
        return Finding("rights", Advice.NO, str(error))
    return Finding("rights", Advice.GO, "this account has all rights that are needed")


async def _webhook(client: ApiWriter, plan: Plan) -> Finding:
    registered = await registration.read(client)
    if registered is None:
        return findings.unknown("webhook", "read its registration")
    if not registered:
        return Finding("webhook", Advice.GO, "not installed yet")
    namespace = next(iter(plan.jobs_namespaces), "default")
    try:
        answers = await canary.is_webhook_called(client, namespace)
    except errors.ApiError:
        answers = False
    if answers:
        return Finding("webhook", Advice.GO, "installed; it answers")
    why = await registration.trouble(client, registered) or f"it did not answer for a job in {namespace}"
    advice = f"the API server goes on without it: see the logs of deployment/{names.WEBHOOK}"
    return Finding("webhook", Advice.CARE, f"installed; {why}, and {advice}")
