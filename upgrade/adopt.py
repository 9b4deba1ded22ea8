"""A running job made elastic at the price of its launcher's restart, on request only."""

from __future__ import annotations

from collections.abc import Callable

from mpijob_elastic import names
from mpijob_elastic.install import rollout
from mpijob_elastic.install.changes import Say
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView, Launcher
from mpijob_elastic.observe import live
from upgrade import job_impact, jobs
from upgrade.job_impact import Readiness
from upgrade.refusal import Refused

Ask = Callable[[], bool]


async def adopt(client: ApiWriter, namespace: str, job: str, *, ask: Ask, say: Say, now: float, timeout: float) -> bool:  # noqa: ASYNC109
    """Create the job's launcher anew where it cannot see the host list; whether that was confirmed.

    `now` in seconds since the epoch, `timeout` in seconds. Raises `Refused` and `errors.KubeError`.
    """
    view = await _view(client, namespace, job)
    found = job_impact.adoption(view, now=now)
    if found.readiness in (Readiness.ELASTIC, Readiness.LIVE):
        say(f"{namespace}/{job} needs no restart: {found.why}")
        return True
    if found.readiness is not Readiness.RESTART or view.launcher is None:
        raise Refused(f"{namespace}/{job} cannot be adopted ({found.readiness}): {found.why}")
    await _check_webhook(client)
    say(f"pod {namespace}/{view.launcher.ref.name} is deleted and created anew by mpi-operator")
    say(f"lost: {job_impact.cost(view.launcher, now=now)}; its {len(view.workers)} workers stay, their ranks end")
    if not ask():
        return False
    await _delete(client, namespace, view.launcher)
    await _wait(client, namespace, job, view.launcher, seconds=timeout, say=say)
    say(f"{namespace}/{job} is elastic")
    return True


async def _wait(client: ApiWriter, namespace: str, job: str, old: Launcher, *, seconds: float, say: Say) -> None:
    async def missing() -> str:
        return _missing(await _view(client, namespace, job), old)

    if late := await rollout.until(missing, seconds=seconds, say=say):
        raise Refused(f"after {seconds:.0f} s {late}; `mpijob-elastic get {job} -n {namespace}` says what it waits for")


def _missing(view: JobView, old: Launcher) -> str:
    """What the new launcher lacks, in words; "" where it sees the host list."""
    launcher = view.launcher
    if launcher is None or launcher.ref.uid == old.ref.uid:
        return "mpi-operator has not created the new launcher yet"
    if not launcher.mounts_discovery:
        return f"the new launcher does not mount {names.KEY_DISCOVER_HOSTS}: the webhook was not called"
    if not view.published_pods:
        return f"no worker is in {names.KEY_DISCOVER_HOSTS} yet"
    return ""


async def _view(client: ApiWriter, namespace: str, job: str) -> JobView:
    view = await live.view(client, namespace=namespace, job=job, probes=jobs.never_asked)
    if view is None:
        raise Refused(
            f"there is no MPIJob {namespace}/{job} with its ConfigMap; `mpijob-elastic get -A` lists all jobs"
        )
    return view


async def _check_webhook(client: ApiWriter) -> None:
    try:
        await client.get(MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION))
    except errors.NotFound:
        raise Refused(
            "the webhook is not installed, so a new launcher would be as the old one; "
            "run `mpijob-elastic upgrade apply` first"
        ) from None


async def _delete(client: ApiWriter, namespace: str, launcher: Launcher) -> None:
    try:
        await client.delete_object(PODS.path(namespace, launcher.ref.name), uid=launcher.ref.uid)
    except (errors.NotFound, errors.Conflict):
        return  # gone, or created anew already
