"""Pods at a gate of ours hold an installation, and the refusal says what lets them go."""

from collections.abc import Sequence

import pytest

from mpijob_elastic import names
from mpijob_elastic.install import Refused, gated_pods
from mpijob_elastic.install.gated_pods import GatedPod

RESUME = (
    "`mpijob-elastic resume b -n ml` (in a queue of KubeQueue `kubectl annotate mpijob b -n ml "
    "scheduling.x-k8s.io/suspend=false --overwrite`)"
)


def gated(job: str, *gates: str, pod: str = "launcher") -> GatedPod:
    return GatedPod(namespace="ml", name=f"{job}-{pod}", job=job, gates=frozenset(gates))


@pytest.mark.parametrize(
    ("found", "pods", "what"),
    [
        (
            [gated("a", names.GATE_QUEUED), gated("a", names.GATE_QUEUED, pod="worker-0")],
            "ml/a-launcher, ml/a-worker-0",
            "type `kubectl label mpijob a -n ml kueue.x-k8s.io/queue-name-`, or delete the job",
        ),
        (
            [gated("b", names.GATE_SUSPENDED)],
            "ml/b-launcher",
            f"type {RESUME}, or delete the job",
        ),
        (
            [gated("c", names.GATE_PARKED, pod="worker-1")],
            "ml/c-worker-1",
            "type `kubectl annotate mpijob c -n ml mpijob-elastic/parked-`, or delete the job",
        ),
        (
            [gated("b", names.GATE_SUSPENDED), gated("a", names.GATE_QUEUED)],
            "ml/a-launcher, ml/b-launcher",
            "type `kubectl label mpijob a -n ml kueue.x-k8s.io/queue-name-`, "
            f"{RESUME}, or delete the job",
        ),
        ([gated("d", names.GATE_HELD)], "ml/d-launcher", "delete the job"),
    ],
)
def test_what_lets_the_pods_go_is_said(found: Sequence[GatedPod], pods: str, what: str) -> None:
    with pytest.raises(Refused) as refused:
        gated_pods.check_none(found)
    said = str(refused.value)
    assert f"nobody else takes off: {pods}. For each of their jobs, {what}, and run this" in said
    # A deleted pod comes back at once, with its gate.
    assert "does not help to delete the pods" in said


def test_no_pod_at_a_gate_holds_nothing() -> None:
    gated_pods.check_none([])
