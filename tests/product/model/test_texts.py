"""Texts that users and nodes write, as values: durations, marks of evictions, quantities."""

import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import RETRIED_WITHIN, Eviction
from mpijob_elastic.model import phrases, requests
from mpijob_elastic.model.json_parts import shared


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("90s", 90.0), ("1.5m", 90.0), ("500ms", 0.5), ("1h1m1s1ms", 3661.001)],
)
def test_a_duration_is_read_as_seconds(text: str, seconds: float) -> None:
    assert phrases.parse_duration(text) == pytest.approx(seconds)


NOT_READ_BY_GO = (
    "",
    " ",
    "90",
    "s",
    "-1s",
    "+1s",
    "1 s",
    "1s ",
    "1s\n",
    "1d",
    "1S",
    "1.s",
    ".5s",
    "1e3s",
    "NaN",
    "٣s",
)


@pytest.mark.parametrize("text", [*NOT_READ_BY_GO, "9" * 10_000 + "h"])
def test_what_go_would_not_read_or_is_too_long_is_no_duration(text: str) -> None:
    assert phrases.parse_duration(text) is None


@given(st.text() | st.from_regex(r"[0-9.]{1,40}(ms|s|m|h)?"))
def test_any_text_gives_a_finite_duration_or_none(text: str) -> None:
    seconds = phrases.parse_duration(text)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


SHOWN = [
    (0.0, "0s"),
    (4.2, "4.2s"),
    (59.94, "59.9s"),
    (59.96, "1m"),
    (90.4, "1m30s"),
    (3599.7, "1h"),
    (7500.0, "2h5m"),
]


@pytest.mark.parametrize(("seconds", "text"), SHOWN)
def test_seconds_are_shown_for_people(seconds: float, text: str) -> None:
    assert phrases.duration(seconds) == text


@given(st.integers(0, 59) | st.integers(1, 59).map(lambda minutes: minutes * 60))
def test_what_is_shown_is_read_back(seconds: int) -> None:
    assert phrases.parse_duration(phrases.duration(seconds)) == seconds


NOW = 1_700_000_000.0


@given(st.booleans(), st.integers(min_value=0, max_value=10**10), st.integers(RETRIED_WITHIN, 9999))
def test_what_is_written_is_read(released: bool, at: int, kept: int) -> None:
    asked = Eviction(released=released, at=at, kept=kept)
    assert eviction.parse(eviction.text(asked)) == asked


@pytest.mark.parametrize(
    "text", [None, "", "requested", "requested 2026-13-01T00:00:00", "later 2026-11-23T00:00:00Z"]
)
def test_bad_marks_do_not_count(text: str | None) -> None:
    assert eviction.parse(text) is None


@pytest.mark.parametrize(
    ("released", "age", "live"),
    [
        (False, 30 + RETRIED_WITHIN - 1, True),
        (False, 30 + RETRIED_WITHIN, False),
        (True, RETRIED_WITHIN - 1, True),
        (True, RETRIED_WITHIN, False),
        (False, -5, True),
        (False, -6, False),
    ],
)
def test_a_mark_ends_by_its_time_and_one_from_the_future_does_not_count(
    released: bool, age: float, live: bool
) -> None:
    assert Eviction(released=released, at=NOW - age).is_live(drain_timeout=30.0, now=NOW) is live


def container(**asked: str) -> dict[str, Any]:
    return {"resources": {"requests": asked}}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"containers": [*containers], **spec}


CPU = container(cpu="1")
SIDECAR = {**CPU, "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        (
            pod({}, container(cpu="500m"), container(cpu="1", memory="1Gi")),
            {"cpu": "1500m", "memory": "1073741824"},
        ),
        (pod(CPU, initContainers=[container(cpu="3"), container(cpu="2")]), {"cpu": "3"}),
        # A sidecar runs beside what comes after it, and beside the main containers.
        (pod(CPU, initContainers=[SIDECAR]), {"cpu": "2"}),
        (pod(CPU, initContainers=[SIDECAR, container(cpu="4")]), {"cpu": "5"}),
        (pod(CPU, initContainers=[container(cpu="4"), SIDECAR]), {"cpu": "4"}),
        (pod(CPU, overhead={"cpu": "250m", "memory": "1M"}), {"cpu": "1250m", "memory": "1000000"}),
        (
            pod(container(cpu="1", gpu="2"), resources={"requests": {"cpu": "6"}}),
            {"cpu": "6", "gpu": "2"},
        ),
        (pod(container(memory="1e3"), container(memory="2E3")), {"memory": "3000"}),
        (pod(container(memory="1E")), {"memory": str(10**18)}),
        (pod(container(cpu="1n")), {"cpu": "1m"}),
        (pod(container(cpu="1.5"), container(cpu="0.5")), {"cpu": "2"}),
    ],
)
def test_a_pod_asks_for(spec: dict[str, Any], expected: dict[str, str]) -> None:
    assert requests.total([(requests.of_pod(spec), 1)]) == expected


def test_pods_are_counted() -> None:
    one, other = requests.of_pod(pod(container(cpu="100m", gpu="1"))), requests.of_pod(pod(CPU))
    assert requests.total([(one, 3), (other, 1), (one, 0)]) == {"cpu": "1300m", "gpu": "3"}


@pytest.mark.parametrize("text", ["", "much", "1Zi", "1 Gi", "1e", "1mm"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        requests.of_pod(pod(container(cpu=text)))


def test_what_anybody_writes_is_read_as_far_as_it_can_be() -> None:
    assert requests.readable(None) == {}
    texts = {
        "a": "1",
        "b": 2,
        "c": "much",
        "d": "1.2.3",
        "e": ".",
        "f": {},
        "g": "9" * 33,
        "h" * 300: "1n",
    }
    assert requests.readable(texts) == {"a": 10**9, "b": 2 * 10**9, "h" * 253: 1}
    assert len(requests.readable({str(number): "1" for number in range(100)})) == requests.MOST


def test_equal_texts_are_one_and_those_that_are_gone_do_not_stay() -> None:
    """Of 100,000 long names at most a third stays, and nothing of a text longer than any name."""
    assert shared(b"node-1".decode()) is shared(b"node-1".decode())
    tracemalloc.start()
    try:
        for index in range(100_000):
            shared(f"{index:0200}")
        shared("x" * 2**25)
        assert tracemalloc.get_traced_memory()[0] < 2**24
    finally:
        tracemalloc.stop()
