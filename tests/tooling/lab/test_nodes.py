"""A node is used once it is ready and the taint it was created with is gone."""

from datetime import UTC, datetime

import pytest

from lab.nodes import PRETENDED, heard, node, usable

READY = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("conditions", "taints", "expected"),
    [
        (READY, [], True),
        ([], [], False),
        ([{"type": "Ready", "status": "Unknown"}], [], False),
        (READY, [{"key": "node.kubernetes.io/not-ready"}], False),
    ],
)
def test_usable(conditions: list[dict[str, str]], taints: list[dict[str, str]], expected: bool) -> None:
    one = node(0, kubernetes_version="v1.34.4", kubelet_port=None)
    one["status"]["conditions"] = conditions
    one["spec"]["taints"] = taints
    assert usable(one) is expected


def test_only_a_kubelet_that_is_there_is_announced() -> None:
    without, with_one = (node(0, kubernetes_version="v1.34.4", kubelet_port=port) for port in (None, 1234))
    assert "daemonEndpoints" not in without["status"]
    assert with_one["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 1234}}


def test_beside_a_real_node_pods_do_not_go_to_a_pretended_one() -> None:
    one = node(0, kubernetes_version="v1.34.4", kubelet_port=None, beside_real=True)
    one["status"]["conditions"] = READY
    (taint,) = one["spec"]["taints"]
    assert (taint["effect"], {taint["key"]: taint["value"]}) == ("NoSchedule", PRETENDED)
    assert PRETENDED.items() <= one["metadata"]["labels"].items()
    assert usable(one)


def test_what_a_kubelet_said_last_is_known_by_its_time() -> None:
    said = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}
    one = {"status": {"conditions": [{"type": "DiskPressure", "status": "False"}, said]}}
    assert heard(one) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
