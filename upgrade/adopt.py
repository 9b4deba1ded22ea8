"""Make a running job elastic at the price of a launcher restart, on request only."""

import contextlib

from mpijob_elastic import capabilities, names
from mpijob_elastic.install import Refused, rollout, webhook_call
from mpijob_elastic.install.objects import Ask, Say
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import live, registration, views
from upgrade import findings
from upgrade.findings import Readiness


async def adopt(
    client: ApiWriter,
    namespace: str,
    job: str,
    *,
    ask: Ask,
    say: Say,
    now: float,
    timeout: float,  # noqa: ASYNC109
) -> bool:
    """Recreate the job's launcher unless it can see the host list.

    Returns False if the user declined. `now` in seconds since the epoch, `timeout` in seconds.
    Raises `Refused` and `errors.KubeError`.
    """
    view = await _view(client, namespace, job)
    found = findings.adoption(view, now=now)
    if found.readiness in (Readiness.ELASTIC, Readiness.LIVE):
        if older := findings.older_command(view):
            raise Refused(f"{namespace}/{job} is not adopted: {older}")
        say(f"{namespace}/{job} needs no restart: {found.why}")
        return True
    if found.readiness is not Readiness.RESTART or view.launcher is None:
        raise Refused(f"{namespace}/{job} cannot be adopted ({found.readiness}): {found.why}")
    if vain := findings.vain_restart(view):
        raise Refused(f"{namespace}/{job} is not adopted: {vain}")
    await _check_webhook(client, namespace)
    say(
        f"pod {namespace}/{view.launcher.ref.name} will be deleted, "
        "and mpi-operator will recreate it"
    )
    say(
        f"lost: {findings.cost(view.launcher, now=now)}; its {len(view.workers)} "
        "workers stay, but their ranks end"
    )
    if not ask():
        return False
    old = view.launcher.ref
    with contextlib.suppress(errors.NotFound, errors.Conflict):  # gone, or already recreated
        # Without a grace period, or the operator would see the launcher end, and fail the job (see
        # DeleteLauncher).
        await client.delete_object(
            PODS.path(namespace, old.name), uid=old.uid, options={"gracePeriodSeconds": 0}
        )

    async def missing() -> str:
        """Return the lack of the new launcher in words; "" once it sees the host list."""
        seen = await _view(client, namespace, job)
        if seen.launcher is None or seen.launcher.ref.uid == old.uid:
            return "mpi-operator has not created the new launcher yet"
        if not seen.launcher.facts.mounts_discovery:
            return (
                "the new launcher does not mount "
                f"{names.KEY_DISCOVER_HOSTS}: the webhook was not called"
            )
        return "" if seen.published_pods else f"no worker is in {names.KEY_DISCOVER_HOSTS} yet"

    advice = f"`mpijob-elastic get {job} -n {namespace}` says what it waits for"
    await rollout.wait(missing, seconds=timeout, say=say, advice=advice)
    say(f"{namespace}/{job} is elastic")
    return True


async def _check_webhook(client: ApiWriter, namespace: str) -> None:
    """Raise Refused if a new launcher would not see the host list either."""
    registered = True if await registration.read(client) else None
    called = await webhook_call.called(client, namespace, registered=registered)
    if doubt := called.doubt(namespace):
        raise Refused(f"{doubt}; an administrator runs {names.INSTALL_AGAIN}")
    if not called.answers:
        raise Refused(
            f"the webhook is not called for jobs in {namespace}, so a new launcher would not see "
            "the host list either; an administrator runs `mpijob-elastic upgrade preflight`, or "
            "`mpijob-elastic install` first"
        )


async def _view(client: ApiReader, namespace: str, job: str) -> JobView:
    view = await live.view(client, namespace=namespace, job=job, read=views.Read(capabilities.read))
    if view is None:
        raise Refused(
            f"there is no MPIJob {namespace}/{job} with a ConfigMap; "
            "`mpijob-elastic get -A` lists jobs"
        )
    return view
