"""The commands of `python -m lab node`."""

from typing import Annotated

import typer

from lab.cluster import Cluster
from lab.display import progress
from lab.images import build
from lab.node import requirements

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The real node of `up --real-node`.")

Name = Annotated[str, typer.Option(help="Which lab: several may be up side by side.")]
Image = Annotated[str, typer.Argument(help="One of those that `python -m lab images` lists.")]


@app.command()
def check() -> None:
    """Say what this machine lacks for a real node; the exit code is 0 if nothing."""
    requirements.check()
    print("a real node can be had here")


@app.command()
def load(image: Image, *, name: Name = "default") -> None:
    """Build an image if need be, and make it known on the node."""
    cluster = Cluster.attach(name=name)
    with progress() as say:
        archive = build.ensure(image, say)
        say(f"loading {image} into the node")
        cluster.load_image(archive)
    print(f"pods can use {build.REFERENCES[image]}")
