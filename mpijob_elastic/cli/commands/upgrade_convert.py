"""`mpijob-elastic upgrade convert`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.cluster import INTERRUPTED, connected
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.target import Where
from mpijob_elastic.telemetry.terminal import say


@cluster_command(interrupted=INTERRUPTED)
async def convert(
    *,
    source: Annotated[
        Path | None,
        typer.Argument(help="A file, a folder, or - for standard input.", show_default=False),
    ] = None,
    live: Annotated[
        str | None,
        typer.Option(metavar="KIND/NAME", help="A job in the cluster instead of a file."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write to; files keep their names.")
    ] = None,
    where: Where,
) -> Exit:
    """Turn MPIJobs v1alpha2 and et-operator's TrainingJobs into elastic MPIJobs v1, as YAML.

    Objects of other kinds stay as they are. What became of a field, and what is left to do, is a
    line on standard error and a comment. In a folder, a file without objects is skipped, and so
    is a patch for kustomize of a job of an old kind.

    For example:

    - `mpijob-elastic upgrade convert job.yaml > new.yaml`: convert a file

    - `mpijob-elastic upgrade convert jobs/ --output new/`: convert a folder and its subfolders

    - `mpijob-elastic upgrade convert --live trainingjob/mnist -n ml`: convert a job in the cluster

    Exit codes: 0 done; 1 refused (no YAML, not readable, no such job); 2 wrong usage; 3 done, but
    the lines with `to do` need you; 4 no answer from the API server; 130 Ctrl-C.
    """
    if (source is None) == (live is None):
        raise typer.BadParameter(
            "give either a file, a folder or -, or --live KIND/NAME", param_hint="SOURCE"
        )
    if source is not None:
        found = work.conversion_files.convert(source)
    else:
        assert live is not None
        namespace = work.connection.namespace_of(where)
        async with connected(where) as client:
            found = [await work.conversion_files.convert_live(client, live, namespace)]
    is_done = work.conversion_files.write(found, output, say=partial(say, err=True))
    return Exit.DONE if is_done else Exit.OTHERWISE
