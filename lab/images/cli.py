"""The commands of `python -m lab images`."""

from typing import Annotated

import typer

from lab.display import progress
from lab.images import build as images

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Container images, built without registry or Docker."
)

Names = Annotated[list[str] | None, typer.Argument(help="As kubectl-delivery; all if left out.", show_default=False)]


@app.command()
def build(names: Names = None) -> None:
    """Build what is missing or out of date, and print where each image is, for `ctr images import`."""
    for name in names or images.REFERENCES:
        with progress() as say:
            path = images.ensure(name, say)
        print(path)


@app.command("list")
def print_list() -> None:
    """Print each image, what pods call it, and where it is."""
    for name, reference in images.REFERENCES.items():
        print(f"{name:<26}{reference:<36}{images.built(name) or 'not built'}")
