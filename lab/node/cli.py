"""The commands of `python -m lab node`."""

from typing import Annotated

import typer

from lab.cluster import Cluster
from lab.display import progress
from lab.images import build
from lab.node import requirements

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The real nodes of `up --real-nodes`.")

Name = Annotated[str, typer.Option(help="Which lab: several may be up side by side.")]
Image = Annotated[str, typer.Argument(help="One of those that `python -m lab images` lists.")]
Node = Annotated[str, typer.Argument(help="As real-0, real-1.")]


@app.command()
def check() -> None:
    """Say what this machine lacks for a real node; the exit code is 0 if nothing."""
    requirements.check()
    print("a real node can be had here")


@app.command()
def load(image: Image, *, name: Name = "default") -> None:
    """Build an image if need be, and make it known on each real node."""
    cluster = Cluster.attach(name=name)
    with progress() as say:
        archive = build.ensure(image, say)
        say(f"loading {image} into the nodes")
        cluster.load_image(archive)
    print(f"pods can use {build.REFERENCES[image]}")


@app.command()
def kill(node: Node, *, name: Name = "default") -> None:
    """End a real node as if its power failed: no peer gets a FIN or RST. Its Node stays until `kubectl delete node`."""
    Cluster.attach(name=name).kill_node(node)
    print(f"{node} is dead")


@app.command()
def start(node: Node, *, name: Name = "default") -> None:
    """Start a real node that was killed, with its images but nothing else, and return when pods can run on it."""
    Cluster.attach(name=name).start_node(node)
    print(f"{node} is ready")
