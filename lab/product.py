"""The product in a lab that stays, beside stand-in ranks: to type with, as an administrator and as a data scientist."""

import json
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab import kueue
from lab.build import Say
from lab.cluster import Cluster
from lab.demo.stage import staged
from lab.drivers import standing_in
from lab.errors import LabError
from lab.layout import Layout, name_option
from lab.lock import is_held
from lab.processes import Identity
from mpijob_elastic.install.overlays import Overlay

NAMESPACE = "ml"
USER = "data-scientist"
ROLE = "edit"
PATIENCE = 60.0  # seconds until the controllers of Kubernetes have given the role its rights
POLL = 0.1
EVERY = 1.0  # seconds between two looks at what runs
_END = "the {part} has ended, and nobody starts it again: `.venv/bin/python -m lab logs{option}` has its last lines."
_CHANGES = ("auth", "can-i", "patch", "mpijobs.kubeflow.org", "-n", NAMESPACE)


@contextmanager
def running(name: str, say: Say, *, queued: bool = False) -> Iterator[Mapping[str, Identity]]:
    """Keep a lab with the product up for as long as the block lasts; yield its processes by name. Raise LabError.

    queued: with Kueue, and a queue in the namespace of the data scientist.
    """
    program = kueue.program(say) if queued else None
    with (
        Cluster.start(name=name, say=say) as cluster,
        # Webhook and controller look for Kueue's definitions when they start.
        _beside(cluster, program, say) as others,
        staged(cluster, say, also=(Overlay.USER_ROLES,)) as stage,
    ):
        say(f"the namespace {NAMESPACE}, and in it somebody with the role {ROLE}")
        _let_in(cluster)
        if queued:
            kueue.offer_queue(cluster, NAMESPACE)
        with standing_in(cluster) as drivers:
            pids = {
                "operator": stage.operator.pid,
                "webhook": stage.webhook.pid,
                "controller": stage.controller.pid,
                "stand-in for drivers": drivers.pid,
            }
            yield {**others, **{part: Identity.of(pid) for part, pid in pids.items()}}


@contextmanager
def _beside(cluster: Cluster, program: Path | None, say: Say) -> Iterator[Mapping[str, Identity]]:
    """Run Kueue, where its program is given; yield it by name."""
    if program is None:
        yield {}
        return
    say("Kueue")
    with kueue.running(cluster, program) as process:
        yield {kueue.NAME: process}


@contextmanager
def with_queue(name: str, namespace: str, say: Say) -> Iterator[Mapping[str, Identity]]:
    """Keep Kueue beside a lab that is up for as long as the block lasts; yield it by name. Raise LabError.

    It has a queue in the namespace, which is made if it is missing.
    """
    cluster = Cluster.attach(name=name)
    with _beside(cluster, kueue.program(say), say) as parts:
        say(f"the queue {kueue.QUEUE} in the namespace {namespace}")
        _make_namespace(cluster, namespace)
        kueue.offer_queue(cluster, namespace)
        yield parts


def _make_namespace(cluster: Cluster, namespace: str) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made))


def stay(name: str, parts: Mapping[str, Identity]) -> None:
    """Return once somebody has ended the lab; say of each process once that it has ended."""
    alive = set(parts)
    while is_held(Layout.of(name)):
        for part in sorted(alive):
            if not parts[part].alive():
                alive.remove(part)
                print(_END.format(part=part, option=name_option(name)), file=sys.stderr, flush=True)
        time.sleep(EVERY)


def environment(name: str, *, as_user: bool) -> list[str]:
    """Return lines for a shell: the kubeconfig, and where kubectl and our programs are.

    as_user: that of the data scientist instead of the administrator's. Raise LabError.
    """
    if as_user and not is_held(Layout.of(name)):
        raise LabError(
            f"no lab {name!r} is up; `.venv/bin/python -m lab product{name_option(name)}` starts one with a data scientist."
        )
    cluster = Cluster.attach(name=name)
    kubeconfig = _of_user(cluster) if as_user else cluster.kubeconfig
    programs = (cluster.binaries.kubectl.parent, Path(sys.executable).parent)
    path = ":".join(map(shlex.quote, map(str, programs)))
    return [f"export KUBECONFIG={shlex.quote(str(kubeconfig))}", f"export PATH={path}:$PATH"]


def _of_user(cluster: Cluster) -> Path:
    path = Layout(cluster.state_dir).kubeconfigs / f"{NAMESPACE}.{USER}"
    if not path.exists():
        raise LabError(
            f"lab {cluster.name!r} has no data scientist; end it, and start one that has by "
            f"`.venv/bin/python -m lab product{name_option(cluster.name)}`."
        )
    return path


def _let_in(cluster: Cluster) -> None:
    """Make the namespace and the account, and wait until the account may change jobs. Raise LabError."""
    here = ("-n", NAMESPACE)
    account = f"{NAMESPACE}:{USER}"
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("create", "serviceaccount", USER, *here)
    who = (f"--clusterrole={ROLE}", f"--serviceaccount={account}")
    cluster.kubectl("create", "rolebinding", USER, *here, *who)
    cluster.service_account_kubeconfig(NAMESPACE, USER)
    deadline = time.monotonic() + PATIENCE
    while not _may_change(cluster, account):
        if time.monotonic() > deadline:
            raise LabError(f"{account} may not change jobs after {PATIENCE:.0f} s.")
        time.sleep(POLL)


def _may_change(cluster: Cluster, account: str) -> bool:
    try:
        cluster.kubectl(*_CHANGES, f"--as=system:serviceaccount:{account}")
    except LabError:
        return False
    return True
