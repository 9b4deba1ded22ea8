"""Options of the commands that install, or ask what an installation would meet.

They stand apart because they import the manifests' parser, which a controller has no use for.
"""

from typing import Annotated

import typer

from mpijob_elastic.cli.options import TEMPLATE_LABELS
from mpijob_elastic.install.overlays import EVERYBODY, Overlay

Overlays = Annotated[
    list[Overlay] | None,
    typer.Option("--overlay", help="Variant of the installation; repeatable."),
]
Removed = Annotated[
    list[Overlay] | None,
    typer.Option(
        "--remove-overlay",
        help="Remove what this overlay brought, where somebody loses by it; repeatable.",
    ),
]
Managed = Annotated[
    list[str] | None,
    typer.Option(
        "--jobs-namespace",
        help="Manage the jobs of this namespace; repeatable. Default: the jobs of all namespaces.",
    ),
]
KeptLabels = Annotated[
    bool | None,
    typer.Option(
        "--template-labels/--no-template-labels",
        help=f"{TEMPLATE_LABELS} Default: put them back.",
    ),
]
LeaseReaders = Annotated[
    str | None,
    typer.Option(
        "--lease-readers",
        metavar="GROUP",
        help=(
            "With --overlay user-roles: the group of users who may see whether a controller runs; "
            f'"" for nobody. Default: {EVERYBODY}.'
        ),
    ),
]
Scale = Annotated[
    bool,
    typer.Option(
        help="Add the scale subresource to the definition of MPIJobs, or leave it as it is."
    ),
]
