"""`mpijob-elastic install`."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic import names
from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster import (
    INTERRUPTED,
    News,
    connected,
    end,
    plan,
    removed_overlays,
    tell,
)
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.install_options import (
    KeptLabels,
    LeaseReaders,
    Managed,
    Overlays,
    Removed,
    Scale,
)
from mpijob_elastic.cli.options import DryRun, StepTimeout
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors, kubectl_yaml
from mpijob_elastic.telemetry.terminal import say

if TYPE_CHECKING:
    from mpijob_elastic.install.objects import Say
    from mpijob_elastic.kube.writer import ApiWriter


@cluster_command(namespace=False, interrupted=INTERRUPTED)
async def install(
    *,
    overlay: Overlays = None,
    jobs_namespace: Managed = None,
    uncover: Annotated[
        bool,
        typer.Option(
            "--uncover", help="Release namespaces that are managed now and not given here."
        ),
    ] = False,
    remove_overlay: Removed = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Image to run; the first installation needs it. Default: the image that runs."
        ),
    ] = None,
    scale: Scale = True,
    template_labels: KeptLabels = None,
    lease_readers: LeaseReaders = None,
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
        bool,
        typer.Option(help="Wait until all replicas are ready, run this version, and are trusted."),
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
    where: Where,
) -> None:
    """Install controller and webhook, or bring them up to date.

    The command can be repeated, and interrupted at any time. It registers the webhook last, when
    the webhook is ready, so the webhook never delays the creation of a pod. Before that it asks
    each pod for its version, because a node may keep an older image under a tag that was moved.
    Then the definition of MPIJobs gets the scale subresource, so that `kubectl scale` and HPAs
    work. If that is not possible, the command says why.

    For example:

    - `mpijob-elastic install --image REPOSITORY/mpijob-elastic:0.4.0`: for all namespaces

    - `mpijob-elastic install --overlay cert-manager --overlay prometheus --dry-run`: show what would change

    - `mpijob-elastic install --jobs-namespace team-a --jobs-namespace team-b`: for these namespaces only

    - `mpijob-elastic install --no-scale`: leave the definition of MPIJobs as it is

    - `mpijob-elastic install --canary canary`: verify with a job that scaling works

    Exit codes: 0 done; 1 refused (no rights, a conflict, pods of another version); 2 wrong usage;
    4 not ready in time (the canary included), or no answer from the API server; 130 Ctrl-C.
    """
    if image is not None and (fault := work.image.fault(image)):
        raise typer.BadParameter(fault, param_hint="--image")
    wanted = plan(
        overlay,
        image,
        jobs_namespace,
        template_labels=template_labels is not False,
        lease_readers=lease_readers,
    )
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
        say(*kubectl_yaml.dump_all(wanted.manifests()).splitlines())
        return
    options = work.installer.InstallOptions(
        dry_run=dry_run,
        force=force_conflicts,
        uncover=uncover,
        choices=work.optional_parts.TypedChoices(
            command=shlex.join([names.PROGRAM, *sys.argv[1:]]),
            removed=removed_overlays(remove_overlay, wanted),
            names_readers=lease_readers is not None,
            names_labels=template_labels is not None,
        ),
        wait=wait,
        timeout=timeout,
    )
    news = News(prefix="waiting: ", dry_run=dry_run)

    async with connected(where) as client:
        await work.installer.check_address(client)
        complete = await work.installer.with_image(client, wanted)
        if canary:
            await work.canary.check(client)
        unknown = await work.installer.install(client, complete, options, say=news)
        note = await _offer_scale(client, asked=scale, dry_run=dry_run, seconds=timeout, news=news)
        if canary and complete.image and not dry_run:
            await work.canary.run(client, canary, image=complete.image, seconds=timeout, say=tell)
        say(*news.summary())
        end(dry_run=dry_run, done="Installed.")
        say(*unknown.splitlines(), *note.splitlines(), *await _too_old_for(client))


async def _offer_scale(
    client: ApiWriter, *, asked: bool, dry_run: bool, seconds: float, news: Say
) -> str:
    """Offer the scale subresource if `asked`; return what the user must know at the end.

    A refusal never fails an installation.
    """
    if not asked:
        return await work.scale.left_out(client, "--no-scale was given")
    try:
        return await work.scale.offer(client, dry_run=dry_run, seconds=seconds, say=news)
    except (Refused, errors.Forbidden) as error:
        return await work.scale.left_out(client, str(error))


async def _too_old_for(client: ApiWriter) -> list[str]:
    """Return lines on the parts for which this API server is too old; none if it serves all."""
    found = await work.api_server.examine(client, ())
    judged = work.findings.kubernetes(found.version, found.minor)
    if judged.verdict is work.findings.Advice.GO:
        return []
    return [
        f"Left out: {judged.text}.",
        "Run this command again when the cluster has been upgraded.",
    ]
