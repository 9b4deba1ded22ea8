"""Look at the cluster before an installation, or at an installation that is there.

Nothing is written; a question that cannot be answered is reported as open.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.install import Refused, installer, objects, server, webhook_call
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.server import Server
from mpijob_elastic.install.webhook_call import CalledWebhook
from mpijob_elastic.kube import envelopes, errors, kubectl_yaml
from mpijob_elastic.kube.reader import LARGE_PAGE, ApiReader, list_objects, list_texts, readable
from mpijob_elastic.kube.resources import (
    BUDGETS,
    CONFIG_MAPS,
    MPI_JOBS,
    NETWORK_POLICIES,
    SERVICES,
)
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import mpijob, operator_types, pod_labels, template_fields
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import registration, views
from upgrade import findings, operators, scale, traces
from upgrade.findings import Advice, PreflightFinding, Report
from upgrade.operators import Operator

_KUEUE = "kueue.x-k8s.io"
# The version of Kueue's Workloads that queued jobs need.
_WORKLOADS = f"{_KUEUE}/v1beta2"
# Where Kueue's manifests and its chart put the configuration.
_CONFIGURATION = CONFIG_MAPS.path("kueue-system", "kueue-manager-config")
_KEY = "controller_manager_config.yaml"
# MPIJobs of v1 as Kueue's configuration names them.
# The kinds that select pods by labels, with the readers of their JSON.
_SELECTING = {
    NETWORK_POLICIES: pod_labels.read_network_policy,
    BUDGETS: pod_labels.read_budget,
    SERVICES: pod_labels.read_service,
}
_FRAMEWORK = f"{MPI_JOBS.kind}.{MPI_JOBS.version}.{MPI_JOBS.group}"


T = TypeVar("T")
# The texts of the MPIJobs, which several readers read; None if they cannot be read.
Texts = Sequence[msgspec.Raw] | None


async def look(client: ApiWriter, plan: InstallPlan, *, now: float) -> Report:
    """Look at everything; `now` in seconds since the epoch.

    Raises `errors.KubeError` if nothing can be asked.
    """
    found = await server.examine(client, [*plan.manifests(), *server.every_manifest()])
    found_operators = await operators.operators_in(client)
    seen = await judge(client, found, plan, found_operators, now=now)
    return Report(
        findings=(
            *seen.findings,
            await _rights(client, found, plan),
            await _webhook(client, plan),
            await kueue(client),
        ),
        jobs=seen.jobs,
    )


async def judge(
    client: ApiReader,
    found: Server,
    plan: InstallPlan,
    found_operators: Sequence[Operator] | None,
    *,
    now: float,
) -> Report:
    """Look at the cluster and its jobs, and not at the installation; raises as `look` does.

    found_operators: as `operators.operators_in` returns them.
    """
    texts = await job_texts(client)
    jobs = await _jobs(client, texts)
    adoptions = None if jobs is None else [findings.adoption(view, now=now) for view in jobs]
    return Report(
        findings=(
            findings.kubernetes(found.version, found.minor),
            await _definition(client),
            *findings.operators(found_operators),
            findings.jobs(adoptions),
            *([] if jobs is None else [findings.plain_mpirun(jobs)]),
            *findings.handover(jobs or (), found_operators or ()),
            *([] if jobs is None else findings.faults(await _faults(texts))),
            *await labels(client, plan, texts),
            *([] if jobs is None else findings.template_fields(await _dropped(plan, texts))),
        ),
        jobs=tuple(adoptions or ()),
    )


async def _definition(client: ApiReader) -> PreflightFinding:
    try:
        raw = await client.find(scale.DEFINITION)
    except errors.Forbidden:
        return findings.unknown("definition", "read it")
    return findings.definition(None if raw is None else objects.read(raw))


async def job_texts(client: ApiReader) -> Texts:
    """Return the text of each MPIJob, for several readers; none if jobs cannot be read."""
    try:
        return await list_texts(client, MPI_JOBS.path(), size=LARGE_PAGE)
    except (errors.Forbidden, errors.NotFound):
        return None


async def _read(texts: Texts, read: Callable[[bytes], T]) -> list[T]:
    return await readable(MPI_JOBS.path(), texts or (), read)


async def _jobs(client: ApiReader, texts: Texts) -> list[JobView] | None:
    """Return a view of each job, sorted by namespace and name; Roles are left out.

    None if jobs, or what belongs to them, cannot be read.
    """
    if texts is None:
        return None
    try:
        configs, pods = await traces.read_parts(client)
    except (errors.Forbidden, errors.NotFound):
        return None
    jobs = await _read(texts, mpijob.decode)
    jobs.sort(key=lambda job: (job.metadata.namespace, job.metadata.name))
    return views.each(map(capabilities.of, jobs), pods=pods, configs=configs)


async def _faults(texts: Texts) -> list[str]:
    """Return the first fault of each job that mpi-operator v0.2.3 cannot work with."""

    def read(raw: bytes) -> str:
        job, (faults, _) = envelopes.read_stub(raw).metadata, operator_types.judge(raw)
        return f"{job.namespace}/{job.name}: {faults[0]}" if faults else ""

    return [fault for fault in await _read(texts, read) if fault]


async def labels(client: ApiReader, plan: InstallPlan, texts: Texts) -> list[PreflightFinding]:
    """Name each rule that begins to match pods of jobs by the labels that the webhook puts back.

    texts: of the jobs.
    """
    if not plan.template_labels:
        return [
            PreflightFinding("labels", Advice.GO, "the labels of pod templates are not put back")
        ]
    if texts is None:
        return []
    jobs = await _read(texts, pod_labels.read)
    covered = [job for job in jobs if job.pods and _is_covered(plan, job.metadata.namespace)]
    found = [(job, rule) for job in covered for rule in job.own_rules()]
    for resource, read in _SELECTING.items() if covered else ():
        try:
            rules = await list_objects(client, resource.path(), read)
        except errors.Forbidden:
            return [findings.unknown("labels", f"list {resource.plural} in all namespaces")]
        found += [
            (job, said)
            for job in covered
            for said in pod_labels.rules_in_words(job, resource.kind, rules)
        ]
    return findings.labels(
        f"{job.metadata.namespace}/{job.metadata.name}: {rule}" for job, rule in found
    )


async def _dropped(plan: InstallPlan, texts: Texts) -> list[tuple[str, list[str]]]:
    """Return each job that could get fields back, with their names; jobs that say so are left out.

    Jobs that are created after the installation get such fields back anyway.
    """

    def read(raw: bytes) -> tuple[str, str, list[str]]:
        job = mpijob.decode(raw)
        metadata = job.metadata
        says = template_fields.wanted(job) is not None or job.finished
        found = [] if says else template_fields.names_of(job)
        return metadata.namespace, metadata.name, found

    jobs = await _read(texts, read)
    return [
        (f"{namespace}/{name}", found)
        for namespace, name, found in jobs
        if found and _is_covered(plan, namespace)
    ]


def _is_covered(plan: InstallPlan, namespace: str) -> bool:
    return not plan.jobs_namespaces or namespace in plan.jobs_namespaces


async def _rights(client: ApiReader, found: Server, plan: InstallPlan) -> PreflightFinding:
    try:
        await installer.check(client, found, plan, uncover=False)
        for check in (scale.check, traces.check):
            await check(client)
    except (Refused, errors.Forbidden) as error:
        return PreflightFinding("rights", Advice.NO, str(error))
    return PreflightFinding("rights", Advice.GO, "this account has all rights that are needed")


async def _webhook(client: ApiWriter, plan: InstallPlan) -> PreflightFinding:
    registered = await registration.read(client)
    if registered is None:
        return findings.unknown("webhook", "read its registration")
    namespace = next(iter(plan.jobs_namespaces), "default")
    called = CalledWebhook(checks=False, changes=None)
    with suppress(errors.ApiError):
        called = await webhook_call.called(client, namespace, registered=bool(registered))
    if lacks := called.lacks(namespace):
        return PreflightFinding("webhook", Advice.CARE, f"half installed: {lacks}")
    if not registered:
        return PreflightFinding("webhook", Advice.GO, "not installed yet")
    if called.answers:
        return PreflightFinding("webhook", Advice.GO, "installed; it answers")
    if await registration.is_left_out(client, namespace, registration.home(registered)):
        said = f"installed; namespace {namespace} leaves it out, so it was not asked"
        return PreflightFinding("webhook", Advice.CARE, said)
    why = (
        await registration.trouble(client, registered)
        or f"it did not answer for a job in {namespace}"
    )
    advice = f"the API server goes on without it: see the logs of deployment/{names.WEBHOOK}"
    return PreflightFinding("webhook", Advice.CARE, f"installed; {why}, and {advice}")


async def kueue(client: ApiReader) -> PreflightFinding:
    """Say whether Kueue is there, and whether jobs may be queued.

    Say also whether Kueue takes the pods of MPIJobs for its own.
    """
    if await client.find(f"/apis/{_KUEUE}") is None:
        return PreflightFinding("kueue", Advice.GO, "not installed")
    if await client.find(f"/apis/{_WORKLOADS}") is None:
        said = (
            f"older than 0.15, without {_WORKLOADS}, so MPIJobs with a queue's label are not queued"
        )
        return PreflightFinding("kueue", Advice.CARE, f"installed, but {said}")
    verdict, said = await _integration(client)
    return PreflightFinding("kueue", verdict, f"installed; MPIJobs may be queued; {said}")


async def _integration(client: ApiReader) -> tuple[Advice, str]:
    """Judge Kueue's integration for plain pods."""
    advice = f"add {_FRAMEWORK} to its integrations.externalFrameworks"
    try:
        raw = await client.find(_CONFIGURATION)
        text = objects.read(raw).get("data", {}).get(_KEY, "") if raw else ""
        config: Any = next(iter(kubectl_yaml.read_all(text)), None)
    except (errors.Forbidden, kubectl_yaml.NotYaml):
        return (
            Advice.CARE,
            f"this account cannot read its configuration: if its integration `pod` is on, {advice}",
        )
    found = (config.get("integrations") or {}) if isinstance(config, dict) else None
    if not isinstance(found, dict):
        return (
            Advice.CARE,
            f"its configuration is not in {_CONFIGURATION}: if its "
            f"integration `pod` is on, {advice}",
        )
    if "pod" not in (found.get("frameworks") or ()):
        return Advice.GO, "its integration `pod` is off"
    if _FRAMEWORK in (found.get("externalFrameworks") or ()):
        return Advice.GO, "its integration `pod` leaves the pods of MPIJobs alone"
    twice = (
        "asks for quota for the pods of MPIJobs a second time, if they have a queue, "
        "or if a queue is named default"
    )
    return Advice.CARE, f"its integration `pod` {twice}: {advice}"
