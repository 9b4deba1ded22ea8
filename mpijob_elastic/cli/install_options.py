"""Options of the commands that install, or ask what an installation would meet.

They stand apart because they import the manifests' parser, which a controller has no use for.
"""

from typing import Annotated

import typer

from mpijob_elastic.install.overlays import Overlay

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
LeaseReaders = Annotated[
    str,
    typer.Option(
        "--lease-readers",
        metavar="GROUP",
        help=(
            "With --overlay user-roles: the group of users who may see whether a controller runs; "
            '"" for nobody.'
        ),
    ),
]
Scale = Annotated[
    bool,
    typer.Option(
        help="Add the scale subresource to the definition of MPIJobs, or leave it as it is."
    ),
]
