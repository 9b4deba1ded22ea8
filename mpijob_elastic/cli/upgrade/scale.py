"""`mpijob-elastic upgrade scale`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpijob_elastic import names
from mpijob_elastic.cli import change_commands as common
from mpijob_elastic.cli.options import Context, Kubeconfig
from mpijob_elastic.install import Refused
from mpijob_elastic.telemetry import terminal

if TYPE_CHECKING:
    from mpijob_elastic.kube.writer import ApiWriter


def scale(
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Take back what was added.")] = False,
    dry_run: common.DryRun = False,
    timeout: common.Timeout = 120.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Make `kubectl scale` and HPAs work: add the scale subresource and columns to the definition of MPIJobs.

    `install` does this too. This is for installations by kustomize, and for what `install` left out.

    For example:

    - `mpijob-elastic upgrade scale`: record the definition, and add the subresource

    - `mpijob-elastic upgrade scale --remove`: bring the recorded definition back

    Exit codes: 0 done; 1 refused (no rights); 2 wrong usage; 4 not served in time, or no answer of the API server; 130
    Ctrl-C.
    """
    from upgrade import record  # noqa: PLC0415 - --help need not load the client
    from upgrade import scale as subresource  # noqa: PLC0415

    async def work(client: ApiWriter) -> None:
        if not remove:
            note = await subresource.offer(client, dry_run=dry_run, seconds=timeout, say=common.tell)
            terminal.say(*filter(None, [note]))
        elif await subresource.is_recorded(client):
            await subresource.take_back(client, dry_run=dry_run, say=common.tell)
        else:
            raise Refused(
                f"there is no record of the definition (Secret {names.NAMESPACE}/{record.NAME}), so nothing is "
                "known to be ours; `kubectl edit crd mpijobs.kubeflow.org` changes it by hand"
            )

    common.run(work, kubeconfig, context)
    common.end(dry_run=dry_run, done="Removed." if remove else "MPIJobs can be scaled.")
