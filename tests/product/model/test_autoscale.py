"""What the annotation `autoscale` asks for, and the HPA that follows from it."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.model import autoscale, policy
from mpijob_elastic.model.autoscale import Autoscale

BOUNDS = {names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "8"}
QUEUE = Autoscale(name="s0:queue", labels={"a": "1", "b/c": "d"}, value=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu=70", Autoscale(value=70)),
        ("external:queue_length=30", Autoscale(name="queue_length", value=30)),
        ("external:s0:queue{a=1,b/c=d}=30", QUEUE),
    ],
)
def test_it_reads(text: str, expected: Autoscale) -> None:
    assert autoscale.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "cpu", "cpu=0", "cpu=-1", "cpu=70%", "cpu=\uff17", "memory=70", "cpu=70,cpu=80", "external:=1"),
        *("external:q", "external:q=0", "external:q{}=1", "external:q{a}=1", "external:q{a=1=1", "external:q=1\n"),
        "external:q/..=1",
    ],
)
def test_it_does_not_read(text: str) -> None:
    assert autoscale.parse(text) is None


def test_both_bounds_are_needed() -> None:
    asked = {names.AUTOSCALE: "cpu=70"}
    found, problems = policy.parse(asked | BOUNDS)
    assert (found.autoscale, problems) == (Autoscale(value=70), [])
    for bounds in ({}, {names.MIN_REPLICAS: "2"}, {names.MAX_REPLICAS: "8"}, {**BOUNDS, names.MIN_REPLICAS: "9"}):
        found, problems = policy.parse(asked | bounds)
        assert found.autoscale is None
        assert str(problems[-1]) == (
            'metadata.annotations[mpijob-elastic/autoscale]: "cpu=70" is not allowed; use it beside '
            "mpijob-elastic/min-replicas and mpijob-elastic/max-replicas, the bounds of the size"
        )


@pytest.mark.parametrize(
    ("value", "written"), [(30, "30"), (1000, "1k"), (1500, "1500"), (120_000, "120k"), (10**6, "1M"), (10**9, "1G")]
)
def test_a_value_is_written_as_the_api_server_stores_it(value: int, written: str) -> None:
    metric: Any = Autoscale(name="q", value=value).metric
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": written}


def test_the_spec_of_an_external_metric() -> None:
    found = autoscale.spec(QUEUE, "j", least=2, most=8, paused=False)
    assert (found["minReplicas"], found["maxReplicas"]) == (2, 8)
    assert found["scaleTargetRef"] == {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j"}
    metric = {"name": "s0:queue", "selector": {"matchLabels": {"a": "1", "b/c": "d"}}}
    assert found["metrics"][0]["external"]["metric"] == metric


def test_a_paused_one_changes_nothing() -> None:
    found = autoscale.spec(QUEUE, "j", least=2, most=8, paused=True)["behavior"]
    assert [found[way]["selectPolicy"] for way in ("scaleUp", "scaleDown")] == ["Disabled"] * 2


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        ({"a": 1, "default": 2}, {"a": 1}, True),
        ({"a": 2}, {"a": 1}, False),
        ({}, {"a": 1}, False),
        ([{"a": 1, "b": 2}], [{"a": 1}], True),
        ([{"a": 1}, {"a": 1}], [{"a": 1}], False),
        ({"a": None}, {"a": {"b": 1}}, False),
        ("ab", ["a", "b"], False),
    ],
)
def test_defaults_of_the_api_server_are_no_change(found: object, wanted: object, *, expected: bool) -> None:
    assert autoscale.covers(found, wanted) is expected
