"""The product in a lab that stays, beside stand-in ranks: to type with, as an administrator and as a data scientist."""

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.build import Say
from lab.cluster import Cluster
from lab.demo.stage import set_up
from lab.drivers import standing_in
from lab.errors import LabError
from lab.layout import Layout
from lab.lock import is_held
from mpijob_elastic.install.overlays import Overlay

NAMESPACE = "ml"
USER = "data-scientist"
ROLE = "edit"
PATIENCE = 60.0  # seconds until the controllers of Kubernetes have given the role its rights
POLL = 0.1
_CHANGES = ("auth", "can-i", "patch", "mpijobs.kubeflow.org", "-n", NAMESPACE)


@contextmanager
def running(name: str, say: Say) -> Iterator[Cluster]:
    """Keep a lab with the product up for as long as the block lasts. Raise LabError."""
    with set_up(name, say, also=(Overlay.USER_ROLES,)) as stage:
        say(f"the namespace {NAMESPACE}, and in it somebody with the role {ROLE}")
        _let_in(stage.cluster)
        with standing_in(stage.cluster):
            yield stage.cluster


def stay(name: str) -> None:
    """Return once somebody has ended the lab."""
    while is_held(Layout.of(name)):
        time.sleep(1.0)


def environment(name: str, *, as_user: bool) -> list[str]:
    """Return lines for a shell: the kubeconfig, and where kubectl and our programs are.

    as_user: that of the data scientist instead of the administrator's. Raise LabError.
    """
    cluster = Cluster.attach(name=name)
    kubeconfig = _of_user(cluster) if as_user else cluster.kubeconfig
    programs = (cluster.binaries.kubectl.parent, Path(sys.executable).parent)
    path = ":".join(map(shlex.quote, map(str, programs)))
    return [f"export KUBECONFIG={shlex.quote(str(kubeconfig))}", f"export PATH={path}:$PATH"]


def _of_user(cluster: Cluster) -> Path:
    path = Layout(cluster.state_dir).kubeconfigs / f"{NAMESPACE}.{USER}"
    if not path.exists():
        raise LabError(
            f"lab {cluster.name!r} has no data scientist; `python -m lab product` starts one that has."
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
