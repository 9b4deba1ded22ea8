"""`mpijob-elastic install` and `uninstall`, and functions that `upgrade` shares with both."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import (
    Context,
    DryRun,
    Kubeconfig,
    Managed,
    Overlays,
    Scale,
    StepTimeout,
    TemplateLabels,
    Yes,
)
from mpijob_elastic.cli.target import kubeconfig_file
from mpijob_elastic.install import Refused
from mpijob_elastic.install.objects import Change, Outcome
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube import errors
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.install.installer import Plan
    from mpijob_elastic.install.objects import Say
    from mpijob_elastic.kube.writer import ApiWriter
    from upgrade.uninstall import Uninstallation

_WRITES = frozenset({Outcome.CREATED, Outcome.CONFIGURED, Outcome.DELETED})
_COLOURS = {Outcome.CREATED: "green", Outcome.CONFIGURED: "yellow", Outcome.DELETED: "red"}


def install(
    *,
    overlay: Overlays = None,
    jobs_namespace: Managed = None,
    uncover: Annotated[
        bool,
        typer.Option(
            "--uncover", help="Release namespaces that are managed now and not given here."
        ),
    ] = False,
    image: Annotated[
        str | None,
        typer.Option(
            help="Image to run; the first installation needs it. Default: the image that runs."
        ),
    ] = None,
    scale: Scale = True,
    template_labels: TemplateLabels = True,
    dry_run: DryRun = False,
    print_manifests: Annotated[
        bool, typer.Option("--print", help="Print the manifests; contact no API server.")
    ] = False,
    force_conflicts: Annotated[
        bool,
        typer.Option(
            "--force-conflicts",
            help="Overwrite fields of our objects that somebody else has changed.",
        ),
    ] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait until all replicas are ready and trusted.")
    ] = True,
    canary: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE",
            help=(
                "Verify the installation with a job in this namespace. The job is removed "
                "afterwards, and the namespace too if it did not exist."
            ),
        ),
    ] = None,
    timeout: StepTimeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Install controller and webhook, or bring them up to date.

    The command can be repeated, and interrupted at any time. It registers the webhook last, when
    the webhook is ready, so the webhook never delays the creation of a pod. Then the definition of
    MPIJobs gets the scale subresource, so that `kubectl scale` and HPAs work. If that is not
    possible, the command says why.

    For example:

    - `mpijob-elastic install --image REPOSITORY/mpijob-elastic:0.4.0.dev0`: for all namespaces

    - `mpijob-elastic install --overlay cert-manager --overlay prometheus --dry-run`: show what would change

    - `mpijob-elastic install --jobs-namespace team-a --jobs-namespace team-b`: for these namespaces only

    - `mpijob-elastic install --no-scale`: leave the definition of MPIJobs as it is

    - `mpijob-elastic install --canary canary`: verify with a job that scaling works

    Exit codes: 0 done; 1 refused (no rights, a conflict); 2 wrong usage; 4 not ready in time (the
    canary included), or no answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.install import image as images  # noqa: PLC0415
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client
    from upgrade import canary as trial  # noqa: PLC0415

    if image is not None and (fault := images.fault(image)):
        raise typer.BadParameter(fault, param_hint="--image")
    wanted = plan(overlay, image, jobs_namespace, template_labels=template_labels)
    if canary and canary not in (wanted.jobs_namespaces or (canary,)):
        raise typer.BadParameter(
            f"name a namespace of --jobs-namespace: jobs in {canary} are not managed",
            param_hint="--canary",
        )
    if print_manifests:
        if not image:
            raise typer.BadParameter(
                "--print contacts no API server to learn the image: name an image",
                param_hint="--image",
            )
        from mpijob_elastic.kube import kubectl_yaml  # noqa: PLC0415 - --help need not load it

        say(*kubectl_yaml.dump_all(wanted.manifests()).splitlines())
        return
    options = installer.Options(
        dry_run=dry_run, force=force_conflicts, uncover=uncover, wait=wait, timeout=timeout
    )
    news = News(prefix="waiting: ", dry_run=dry_run)

    async def work(client: ApiWriter) -> None:
        plan = await installer.with_image(client, wanted)
        if canary:
            await trial.check(client)
        await installer.install(client, plan, options, say=news)
        note = await _offer_scale(client, asked=scale, dry_run=dry_run, seconds=timeout, news=news)
        if canary and plan.image and not dry_run:
            await trial.run(client, canary, image=plan.image, seconds=timeout, say=tell)
        say(*news.summary())
        end(dry_run=dry_run, done="Installed.")
        say(*note.splitlines(), *await _too_old_for(client))

    run(work, kubeconfig, context)


def uninstall(
    *,
    scale: Annotated[
        bool, typer.Option(help="Remove the scale subresource that `install` added, or leave it.")
    ] = True,
    traces: Annotated[
        bool,
        typer.Option(
            "--traces", help="Remove our annotations and keys from the objects of all jobs, too."
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    timeout: StepTimeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Remove controller, webhook and everything else that `install` created. Jobs keep running.

    The scale subresource that `install` added goes too; `--no-scale` leaves it.

    For example:

    - `mpijob-elastic uninstall --dry-run`: show what would be deleted

    - `mpijob-elastic uninstall --traces`: leave nothing of ours on jobs. What a live launcher mounts stays; repeat the
      command when its job has ended

    - `mpijob-elastic uninstall --yes`: without confirmation

    The quota of a queued job without running pods is given back. Repeat the command when other jobs
    have ended.

    A refusal after controller and webhook have gone stops nothing else: the output names each object
    that stays, and why. Remove the cause, and repeat the command.

    Exit codes: 0 done; 1 refused (not confirmed, no rights); 2 wrong usage; 3 done, but the output
    names something that is left to do; 4 not gone in time, or no answer from the API server; 130
    Ctrl-C.
    """
    from upgrade.uninstall import Uninstallation  # noqa: PLC0415 - --help need not load the client

    news = partial(tell, differences=dry_run)

    async def work(client: ApiWriter) -> None:
        planned = await Uninstallation.prepare(client, takes_scale=scale, takes_traces=traces)
        if planned.is_empty:
            say("Nothing is installed.", *(planned.traces.lines() if planned.traces else ()))
            say(*planned.quota.lines())
            return
        if dry_run or not yes:
            await _announce(planned, news)
        say(*planned.stays())
        if not dry_run:
            if not yes:
                typer.confirm(f"Delete this from {client.host}?", abort=True)
            left = await planned.run(seconds=timeout, say=news)
            say(*ending(left))
            if left:
                raise typer.Exit(Exit.OTHERWISE)

    run(work, kubeconfig, context)


def plan(
    overlays: list[Overlay] | None,
    image: str | None,
    namespaces: list[str] | None,
    *,
    template_labels: bool,
) -> Plan:
    """Return the plan for these options. Raises typer.BadParameter if they do not fit together."""
    from mpijob_elastic.install import installer  # noqa: PLC0415 - --help need not load the client

    try:
        return installer.Plan(
            overlays=tuple(overlays or ()),
            image=image,
            jobs_namespaces=tuple(dict.fromkeys(namespaces or ())),
            template_labels=template_labels,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--jobs-namespace") from None


def run(
    work: Callable[[ApiWriter], Awaitable[None]], kubeconfig: Path | None, context: str | None
) -> None:
    """Run `work` with a connected client. After Ctrl-C, say how to finish."""
    from mpijob_elastic.kube.client import connect  # noqa: PLC0415 - --help need not load the client

    async def connected() -> None:
        file = kubeconfig_file(kubeconfig)
        async with await connect(
            user_agent="mpijob-elastic-cli", kubeconfig=file, context=context
        ) as client:
            await work(client)

    try:
        asyncio.run(connected())
    except KeyboardInterrupt:
        say("Interrupted. Run the same command again to finish.", err=True)
        raise typer.Exit(Exit.INTERRUPTED) from None


class News:
    """Prints what happens to each object, and counts the outcomes."""

    def __init__(self, *, prefix: str, dry_run: bool) -> None:
        self._prefix = prefix
        self._dry_run = dry_run
        self._outcomes: Counter[Outcome] = Counter()
        self._unchecked = 0

    def __call__(self, news: Change | str) -> None:
        """Print the change of an object, or a sentence."""
        if isinstance(news, Change):
            self._outcomes[news.outcome] += 1
            self._unchecked += news.unchecked
        tell(news, prefix=self._prefix, differences=self._dry_run, dry_run=self._dry_run)

    def summary(self) -> list[str]:
        """Return the number of objects of each outcome, the most first, and what was not checked."""
        counts = [f"{count} {outcome}" for outcome, count in self._outcomes.most_common()]
        lines = [f"{', '.join(counts)}."] if counts else []
        if self._unchecked:
            lines.append(
                f"Objects that were not checked: {self._unchecked}, because their namespace does "
                "not exist yet."
            )
        return lines


def tell(
    news: Change | str, *, prefix: str = "- ", differences: bool = True, dry_run: bool = False
) -> None:
    """Print the change of an object, or a sentence after `prefix`."""
    if isinstance(news, str):
        say(*(prefix + news).split("\n"))
        return
    notes = ["dry run"] if dry_run and news.outcome in _WRITES else []
    notes += ["not checked"] if news.unchecked else []
    notes += [news.note] if news.note else []
    note = f" ({', '.join(notes)})" if notes else ""
    outcome = typer.style(f"{news.outcome:<11}", fg=_COLOURS.get(news.outcome))
    say(f" {news.identity}{note}", lead=outcome)
    for line in news.difference.splitlines()[2:] if differences else ():
        say(f"    {line}", colour={"+": "green", "-": "red"}.get(line[:1]))


def end(*, dry_run: bool, done: str) -> None:
    """Print how the command ended."""
    say("Dry run: nothing was written." if dry_run else done)


def ending(left: Sequence[str]) -> list[str]:
    """Return how an uninstallation ended, in lines.

    left: what is left to do, in lines.
    """
    return [*left, "Not everything was removed."] if left else ["Uninstalled."]


async def _announce(planned: Uninstallation, news: Say) -> None:
    """Print the objects and fields that would be removed."""
    from upgrade import scale  # noqa: PLC0415 - --help need not load the client

    if planned.found:
        say("To be deleted, with everything in the namespace:")
        say(*(f"  {one.identity}" for one in planned.found))
    if planned.takes_scale:
        say("To become what it was:")
        await scale.take_back(planned.client, dry_run=True, say=news)
    if planned.traces and planned.traces.removals:
        say("To be removed from jobs:", *(f"  {trace}" for trace in planned.traces.removals))


async def _offer_scale(
    client: ApiWriter, *, asked: bool, dry_run: bool, seconds: float, news: Say
) -> str:
    """Offer the scale subresource if `asked`; return what the user must know at the end.

    A refusal never fails an installation.
    """
    from upgrade import scale  # noqa: PLC0415 - --help need not load the client

    if not asked:
        return await scale.left_out(client, "--no-scale was given")
    try:
        return await scale.offer(client, dry_run=dry_run, seconds=seconds, say=news)
    except (Refused, errors.Forbidden) as error:
        return await scale.left_out(client, str(error))


async def _too_old_for(client: ApiWriter) -> list[str]:
    """Return lines on the parts for which this API server is too old; none if it serves all."""
    from mpijob_elastic.install import server  # noqa: PLC0415 - --help need not load the client
    from upgrade import findings  # noqa: PLC0415

    found = await server.examine(client, ())
    judged = findings.kubernetes(found.version, found.minor)
    if judged.verdict is findings.Advice.GO:
        return []
    return [
        f"Left out: {judged.text}.",
        "Run this command again when the cluster has been upgraded.",
    ]
