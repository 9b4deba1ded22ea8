"""Workers whose main process a kubelet or a reboot ends, without a deletion: they fail, and are replaced."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller
from mpijob_elastic import names
from tests.real.mpijob import job
from tests.real.pods import await_phase, until

POD = "train-worker-1"

pytestmark = pytest.mark.usefixtures("own_node")


@pytest.mark.parametrize("what", ["its main process", "its sandbox"])
def test_a_worker_that_is_ended_without_a_deletion_is_replaced(
    what: str, cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    made, here = job("sleep 600"), ("--namespace", namespace)
    made["metadata"]["annotations"] = {names.ENABLED: "true"}
    made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2
    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(made))

    def uid() -> str:
        return cluster.kubectl(
            "get", "pod", POD, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}", *here
        )

    before = until("the operator creates the worker", lambda: uid() or None)
    await_phase(cluster, namespace, POD, "Running")
    main = next(_processes(before))
    if what == "its main process":
        os.kill(int(main.name), signal.SIGTERM)
    else:
        os.kill(int(_sandbox(main).name), signal.SIGKILL)
    until("the operator creates it again", lambda: uid() not in ("", before) or None)
    await_phase(cluster, namespace, POD, "Running")
    told = cluster.kubectl(
        "get", "events", "-o", "jsonpath={.items[?(@.reason=='WorkerReplaced')].message}", *here
    )
    assert f"{POD} is being deleted: it failed" in told


def _processes(pod_uid: str) -> Iterator[Path]:
    """Yield the main process of that pod's container, by the mounts that its kubelet made."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_main = names.MAIN_BEGINS.encode() in (process / "cmdline").read_bytes()
            if is_main and f"/pods/{pod_uid}/" in (process / "mountinfo").read_text():
                yield process
        except OSError:
            continue


def _sandbox(main: Path) -> Path:
    """Return the process that holds the network of the pod."""
    network = (main / "ns" / "net").readlink()
    return next(
        one for one in Path("/proc").glob("[0-9]*") if _is_pause(one) and _network(one) == network
    )


def _is_pause(process: Path) -> bool:
    try:
        return (process / "comm").read_text() == "pause\n"
    except OSError:
        return False


def _network(process: Path) -> Path | None:
    try:
        return (process / "ns" / "net").readlink()
    except OSError:
        return None
