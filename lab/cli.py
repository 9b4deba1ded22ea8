"""The commands of `python -m lab`."""

import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from lab import control
from lab.build import Say, ensure_compared, ensure_peers, ensure_programs
from lab.cluster import Cluster
from lab.control import Lifeline
from lab.display import progress, report, run_app
from lab.errors import LabError
from lab.images import build, delivery
from lab.images import operator as operator_image
from lab.layout import Layout, name_option
from lab.node import requirements
from lab.operator import deployment
from lab.options import DEFAULT_NODES, Options
from lab.programs import ALL, OF_REAL_NODE, PEERS
from lab.versions import DEFAULT_KUBERNETES, KubernetesVersion
from mpijob_elastic import loading

# Needs the product, which takes a second to import.
_PRODUCT = "lab.product"


def examples(*lines: str) -> str:
    """Return the end of a help text; click joins lines unless a backspace stands before them."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A real Kubernetes control plane with pretended nodes, on loopback ports of this machine.",
    epilog=examples(
        ".venv/bin/python -m lab up",
        "export KUBECONFIG=$(.venv/bin/python -m lab kubeconfig)",
        "kubectl get nodes",
        ".venv/bin/python -m lab down",
    ),
)

images = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Container images, built without registry or Docker.",
)
node = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The real nodes of `up --real-nodes`."
)
app.add_typer(images, name="images")
app.add_typer(node, name="node")

Name = Annotated[str, typer.Option(help="Which lab: several may be up side by side.")]
Nodes = Annotated[
    int | None,
    typer.Option(help=f"How many nodes to pretend: {DEFAULT_NODES}, or none beside a real one."),
]
RealNodes = Annotated[
    int, typer.Option(help="How many nodes to add that run pods; needs root, see `node check`.")
]
RealNode = Annotated[bool, typer.Option("--real-node", help="As --real-nodes 1.")]
Version = Annotated[
    str, typer.Option(help="Kubernetes release; others than the default are built at first use.")
]
WithOperator = Annotated[
    bool,
    typer.Option("--operator", help="With mpi-operator v0.2.3 as its users install it."),
]
Foreground = Annotated[
    bool, typer.Option("--foreground", help="Stay, and end the lab with Ctrl-C.")
]
DataScientist = Annotated[
    bool,
    typer.Option("--data-scientist", help="The user of `product` instead of an administrator."),
]
Queued = Annotated[
    bool,
    typer.Option("--kueue", help="With Kueue, and in ml its queue `team` of docs/examples/kueue."),
]
Namespace = Annotated[str, typer.Option(help="Which namespace gets the queue.")]
Peers = Annotated[list[str] | None, typer.Argument(help="Their names; all if left out.")]
Component = Annotated[str | None, typer.Argument(help="As kube-apiserver; all if left out.")]
Lines = Annotated[
    int, typer.Option("--lines", "-n", min=0, help="How many of the last lines to print.")
]
Images = Annotated[
    list[str] | None,
    typer.Argument(help="As kubectl-delivery; all if left out.", show_default=False),
]
Image = Annotated[
    str, typer.Argument(help="One of those that `.venv/bin/python -m lab images` lists.")
]
Node = Annotated[str, typer.Argument(help="As real-0, real-1.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Print what is added too, until Ctrl-C.")
]


@app.command(
    epilog=examples(
        ".venv/bin/python -m lab up",
        ".venv/bin/python -m lab up --name second --nodes 10",
        ".venv/bin/python -m lab up --foreground",
        "sudo .venv/bin/python -m lab up --real-nodes 1 --operator",
    )
)
def up(
    *,
    name: Name = "default",
    nodes: Nodes = None,
    real_node: RealNode = False,
    real_nodes: RealNodes = 0,
    kubernetes_version: Version = str(DEFAULT_KUBERNETES),
    operator: WithOperator = False,
    foreground: Foreground = False,
) -> None:
    """Start a lab and return when it is ready.

    Programs that are not built yet are built first, once; how long that takes is said.
    """
    real_nodes = real_nodes or int(real_node)
    if operator and not real_nodes:
        raise LabError("--operator needs a node that runs its pod: add --real-nodes 1.")
    if nodes is None:
        nodes = 0 if real_nodes else DEFAULT_NODES
    options = Options(nodes=nodes, real_nodes=real_nodes, kubernetes_version=kubernetes_version)
    with progress() as say:
        request = control.request(name, options, say)
    with Lifeline(request) as lifeline:
        with progress() as say:
            state = lifeline.ready(say)
            if operator:
                _install_operator(Cluster.attach(name=name), say)
        print(f"lab {name} is ready after {state.ready_after:.1f} s: {state.server}")
        _print_next(name)
        if foreground:
            control.stay(name, lifeline)
        else:
            lifeline.detach()


@app.command(
    epilog=examples(
        ".venv/bin/python -m lab product",
        'eval "$(.venv/bin/python -m lab env --data-scientist)"',
        "kubectl mpijob-elastic get",
    )
)
def product(*, name: Name = "default", kueue: Queued = False) -> None:
    """Start a lab with operator, webhook, controller and stand-in ranks; it stays until Ctrl-C or `down`.

    Namespace ml has somebody with the role edit, as whom `env --data-scientist` lets you type.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    offer = loading.load(_PRODUCT)
    with ExitStack() as stack:
        with progress() as say:
            parts = stack.enter_context(offer.running(name, say, queued=kueue))
        chosen = name_option(name)
        print(f"lab {name} has the product. Type in another terminal, until Ctrl-C here:")
        print(
            f'  eval "$(.venv/bin/python -m lab env{chosen})"                     # an administrator'
        )
        print(
            f'  eval "$(.venv/bin/python -m lab env{chosen} --data-scientist)"    # the role edit in ml'
        )
        print("  kubectl mpijob-elastic status", flush=True)
        offer.stay(name, parts)


@app.command("kueue", epilog=examples(".venv/bin/python -m lab kueue --namespace ml"))
def run_kueue(*, name: Name = "default", namespace: Namespace = "default") -> None:
    """Run Kueue beside a lab that is up, with the queue `team` of docs/examples/kueue, until Ctrl-C or `down`."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    offer = loading.load(_PRODUCT)
    with ExitStack() as stack:
        with progress() as say:
            parts = stack.enter_context(offer.with_queue(name, namespace, say))
        print(f"namespace {namespace} has the queue team, until Ctrl-C here", flush=True)
        offer.stay(name, parts)


@app.command(
    epilog=examples(
        'eval "$(.venv/bin/python -m lab env)"',
        'eval "$(.venv/bin/python -m lab env --data-scientist)"',
    )
)
def env(*, name: Name = "default", data_scientist: DataScientist = False) -> None:
    """Print what a shell needs: KUBECONFIG, and a PATH with kubectl and our plugin."""
    print("\n".join(loading.load(_PRODUCT).environment(name, as_user=data_scientist)))


@app.command(epilog=examples(".venv/bin/python -m lab status"))
def status(*, name: Name = "default") -> None:
    """Show a lab and its parts; the exit code is 0 only if it is ready."""
    found = control.status(name)
    print("\n".join(report(Layout.of(name), found)))
    raise typer.Exit(0 if found.summary == "ready" else 1)


@app.command(epilog=examples(".venv/bin/python -m lab down"))
def down(*, name: Name = "default") -> None:
    """End a lab and remove its files; no error if there is none."""
    print(f"lab {name} is {'down' if control.down(name) else 'not up'}")


@app.command(
    "logs",
    epilog=examples(
        ".venv/bin/python -m lab logs",
        ".venv/bin/python -m lab logs kube-apiserver -n 100",
        ".venv/bin/python -m lab logs kwok -f",
    ),
)
def print_logs(
    component: Component = None,
    *,
    name: Name = "default",
    lines: Lines = 20,
    follow: Follow = False,
) -> None:
    """Print the end of the logs."""
    there = sorted(Layout.of(name).logs.glob("*.log"))
    chosen = [path for path in there if component in (None, path.stem)]
    if not chosen:
        raise LabError(
            f"lab {name!r} has no such log; there are {', '.join(path.stem for path in there) or 'none'}."
        )
    subprocess.run(
        ["tail", "--verbose", f"--lines={lines}", *["-F"] * follow, *chosen], check=False
    )


@app.command(epilog=examples("export KUBECONFIG=$(.venv/bin/python -m lab kubeconfig)"))
def kubeconfig(*, name: Name = "default") -> None:
    """Print the path of the administrator's kubeconfig."""
    path = Layout.of(name).kubeconfig
    if not path.exists():
        raise LabError(
            f"lab {name!r} is not up; start it with `.venv/bin/python -m lab up --name {name}`."
        )
    print(path)


@app.command(
    epilog=examples(
        ".venv/bin/python -m lab binaries",
        ".venv/bin/python -m lab binaries --kubernetes-version v1.36.3",
    )
)
def binaries(
    *, kubernetes_version: Version = str(DEFAULT_KUBERNETES), real_node: RealNode = False
) -> None:
    """Build the programs of a lab and of its tests, start nothing, and print where they are."""
    version = KubernetesVersion.parse(kubernetes_version)
    with progress() as say:
        programs = ensure_programs(version, say, real_node=real_node)
        compared = ensure_compared(version, say)
    found = {
        one.name: getattr(programs, one.field)
        for one in (*ALL, *(OF_REAL_NODE if real_node else ()))
    }
    for name, path in {**found, **compared}.items():
        print(f"{name:<24}{path}")


@app.command(
    epilog=examples(
        ".venv/bin/python -m lab peers", ".venv/bin/python -m lab peers kueue volcano-scheduler"
    )
)
def peers(names: Peers = None) -> None:
    """Build the programs of other projects beside which `make test-peers` tests, and print where they are."""
    unknown = set(names or ()) - {one.name for one in PEERS}
    if unknown:
        raise LabError(
            f"no peer is called {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PEERS)}."
        )
    with progress() as say:
        built = ensure_peers(say, [one for one in PEERS if not names or one.name in names])
    for name, path in built.items():
        print(f"{name:<24}{path}")


@images.command("build")
def build_images(names: Images = None) -> None:
    """Build what is missing or out of date, and print where each image is, for `ctr images import`."""
    for name in names or build.REFERENCES:
        with progress() as say:
            path = build.ensure(name, say)
        print(path)


@images.command("list")
def list_images() -> None:
    """Print each image, what pods call it, and where it is."""
    for name, reference in build.REFERENCES.items():
        print(f"{name:<26}{reference:<36}{build.built(name) or 'not built'}")


@node.command()
def check() -> None:
    """Say what this machine lacks for a real node; the exit code is 0 if nothing."""
    requirements.check()
    print("a real node can be had here")


def _install_operator(cluster: Cluster, say: Say) -> None:
    """Install mpi-operator as its release says, with its images on each real node. Raise LabError."""
    for image in (delivery.NAME, operator_image.NAME):
        cluster.load_image(build.ensure(image, say))
    say("mpi-operator v0.2.3")
    deployment.install(cluster)


@node.command()
def load(image: Image, *, name: Name = "default") -> None:
    """Build an image if need be, and make it known on each real node."""
    cluster = Cluster.attach(name=name)
    with progress() as say:
        archive = build.ensure(image, say)
        say(f"loading {image} into the nodes")
        cluster.load_image(archive)
    print(f"pods can use {build.REFERENCES[image]}")


@node.command()
def kill(node: Node, *, name: Name = "default") -> None:
    """End a real node as if its power failed: no peer gets a FIN or RST.

    Its Node stays until `kubectl delete node`.
    """
    Cluster.attach(name=name).kill_node(node)
    print(f"{node} is dead")


@node.command()
def start(node: Node, *, name: Name = "default") -> None:
    """Start a real node that was killed, with its images but nothing else, and return when pods can run on it."""
    Cluster.attach(name=name).start_node(node)
    print(f"{node} is ready")


def _print_next(name: str) -> None:
    chosen = name_option(name)
    print(f"  export KUBECONFIG=$(.venv/bin/python -m lab kubeconfig{chosen})")
    print(f"  .venv/bin/python -m lab down{chosen}")


def main() -> None:
    """Run a command."""
    run_app(app)
