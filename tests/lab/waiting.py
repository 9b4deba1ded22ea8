"""Waits for what `kubectl wait` cannot: an object that is yet to be created, a right, a condition of our own."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic.kube.reader import Timeouts

# Seconds; far above what anything takes on an idle machine. The operator waits up to 328 s after 16
# failures in a row, and writes of a test may make it fail.
PATIENCE = 400.0
# Of a request: the API server asks webhooks about most writes, and gives up after 60 s by itself.
LIMITS = Timeouts(attempt=60.0)
POLL = 0.1  # seconds

T = TypeVar("T")


def create_namespace(cluster: Cluster, namespace: str) -> None:
    """Create a namespace; wait until pods can be created in it, and all is there that the controller manager makes.

    Admission refuses pods before it has its ServiceAccount.
    """
    cluster.kubectl("create", "namespace", namespace)
    for made in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
        kubectl_until_done(cluster, "get", made, "--namespace", namespace, patience=PATIENCE)


def may(cluster: Cluster, account: str, verb: str, resource: str, *, namespace: str) -> None:
    """Wait until a ServiceAccount of a namespace has a right: an API server learns of a new binding by a watch.

    resource: as in a Role, so `pods/exec` is the subresource, which kubectl would take for a pod's
    name.
    """
    kind, _, subresource = resource.partition("/")
    what = [kind, f"--subresource={subresource}"] if subresource else [kind]
    who = f"--as=system:serviceaccount:{namespace}:{account}"
    kubectl_until_done(
        cluster, "auth", "can-i", verb, *what, who, "--namespace", namespace, patience=PATIENCE
    )


def kubectl_until_done(
    cluster: Cluster, *arguments: str, patience: float, stdin: str | None = None
) -> None:
    """Run kubectl again and again until it succeeds, for so many seconds at most."""
    deadline = time.monotonic() + patience
    while True:
        try:
            cluster.kubectl(*arguments, stdin=stdin)
        except LabError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL)
        else:
            return


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(LabError):
            if holds():
                return
        time.sleep(POLL)
    raise AssertionError("it never came true")


async def seen(
    look: Callable[[], Awaitable[T]],
    holds: Callable[[T], bool],
    what: str,
    *,
    patience: float = PATIENCE,
    show: Callable[[T], str] = repr,
) -> T:
    """Look until it holds, and return what was seen then; fail after so many seconds and show what was seen last."""
    deadline = time.monotonic() + patience
    while not holds(found := await look()):
        assert time.monotonic() < deadline, f"never seen: {what}; last: {show(found)}"
        await asyncio.sleep(POLL)
    return found
