"""`mpijob-elastic upgrade scale`."""

from functools import partial
from typing import Annotated

import typer

from mpijob_elastic import names
from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster import INTERRUPTED, connected, end, tell
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.options import DryRun, StepTimeout
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.telemetry.terminal import say


@cluster_command(namespace=False, interrupted=INTERRUPTED)
async def scale(
    *,
    remove: Annotated[
        bool, typer.Option("--remove", help="Bring the recorded definition back.")
    ] = False,
    dry_run: DryRun = False,
    timeout: StepTimeout = 120.0,
    where: Where,
) -> None:
    """Add the scale subresource and columns to the definition of MPIJobs.

    With the subresource, `kubectl scale` and HPAs work. `install` adds it too. This command is for
    installations by kustomize, and for clusters where `install` left the subresource out.

    For example:

    - `mpijob-elastic upgrade scale`: record the definition, and add the subresource

    - `mpijob-elastic upgrade scale --remove`: bring the recorded definition back

    Exit codes: 0 done; 1 refused (no rights); 2 wrong usage; 4 not served in time, or no answer
    from the API server; 130 Ctrl-C.
    """
    news = partial(tell, dry_run=dry_run)

    async with connected(where) as client:
        if not remove:
            note = await work.scale.offer(client, dry_run=dry_run, seconds=timeout, say=news)
            say(*filter(None, [note]))
        elif await work.scale.is_recorded(client):
            await work.scale.take_back(client, dry_run=dry_run, say=news)
        else:
            secret = f"{names.NAMESPACE}/{work.record.NAME}"
            raise Refused(
                f"there is no record of the definition (Secret {secret}), "
                "so nothing is known to be ours; `kubectl edit crd mpijobs.kubeflow.org` changes "
                "it by hand"
            )
    end(dry_run=dry_run, done="Removed." if remove else "MPIJobs can be scaled.")
