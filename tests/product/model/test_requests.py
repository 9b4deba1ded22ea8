"""What pods ask for is added up as the scheduler does it."""

from typing import Any

import pytest

from mpijob_elastic.model import requests


def container(always: bool = False, **asked: str) -> dict[str, Any]:  # noqa: FBT002
    return {"resources": {"requests": asked}, **({"restartPolicy": "Always"} if always else {})}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        (
            {"containers": [{}, container(cpu="500m"), container(cpu="1", memory="1Gi")]},
            {"cpu": "1500m", "memory": "1073741824"},
        ),
        (
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="3"), container(cpu="2")]},
            {"cpu": "3"},
        ),
        # A sidecar runs beside what comes after it, and beside the main containers.
        ({"containers": [container(cpu="1")], "initContainers": [container(True, cpu="1")]}, {"cpu": "2"}),
        (
            {"containers": [container(cpu="1")], "initContainers": [container(True, cpu="1"), container(cpu="4")]},
            {"cpu": "5"},
        ),
        (
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="4"), container(True, cpu="1")]},
            {"cpu": "4"},
        ),
        (
            {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1M"}},
            {"cpu": "1250m", "memory": "1000000"},
        ),
        (
            {"containers": [container(cpu="1", gpu="2")], "resources": {"requests": {"cpu": "6"}}},
            {"cpu": "6", "gpu": "2"},
        ),
        ({"containers": [container(memory="1e3"), container(memory="2E3")]}, {"memory": "3000"}),
        ({"containers": [container(memory="1E")]}, {"memory": str(10**18)}),
        ({"containers": [container(cpu="1n")]}, {"cpu": "1m"}),
        ({"containers": [container(cpu="1.5"), container(cpu="0.5")]}, {"cpu": "2"}),
    ],
)
def test_a_pod_asks_for(spec: dict[str, Any], expected: dict[str, str]) -> None:
    assert requests.total([(requests.of_pod(spec), 1)]) == expected


def test_pods_are_counted() -> None:
    one = requests.of_pod({"containers": [container(cpu="100m", gpu="1")]})
    other = requests.of_pod({"containers": [container(cpu="1")]})
    assert requests.total([(one, 3), (other, 1), (one, 0)]) == {"cpu": "1300m", "gpu": "3"}


@pytest.mark.parametrize("text", ["", "much", "1Zi", "1 Gi", "1e", "1mm"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        requests.of_pod({"containers": [container(cpu=text)]})


def test_what_anybody_writes_is_read_as_far_as_it_can_be() -> None:
    assert requests.readable(None) == {}
    texts = {"a": "1", "b": 2, "c": "much", "d": "1.2.3", "e": ".", "f": {}, "g": "9" * 33, "h" * 300: "1n"}
    assert requests.readable(texts) == {"a": 10**9, "b": 2 * 10**9, "h" * 253: 1}
    assert len(requests.readable({str(number): "1" for number in range(100)})) == requests.MOST
