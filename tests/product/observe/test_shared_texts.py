"""What the pods of a job keep together is bounded, and what they share is kept once."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.capabilities import live
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.kube.meta import TooLarge
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.model import bounds
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe.caches import Caches

OWNER = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MPIJob",
    "name": "train",
    "uid": "u",
    "controller": True,
}
# As long as the API server lets a name be, and much longer than a node or a container says
# anything.
NAME, LONG = "x" * 253, "y" * 2**20


def raw(
    index: int,
    version: int = 1,
    annotations: dict[str, str] | None = None,
    owner: dict[str, str] | None = None,
    **parts: Any,
) -> bytes:
    metadata = {
        "name": f"train-worker-{index}",
        "namespace": "n",
        "uid": f"{index:036}",
        "resourceVersion": str(version),
        "labels": {names.LABEL_JOB_ROLE: names.ROLE_WORKER},
        "annotations": annotations or {},
        "ownerReferences": [OWNER | (owner or {})],
    }
    return msgspec.json.encode({"metadata": metadata, **parts})


def templated(*texts: str) -> dict[str, Any]:
    return {
        "spec": {
            "containers": [{"name": text} for text in texts],
            "tolerations": [{"key": texts[0]}],
        }
    }


def caches() -> Caches:
    return Caches(None, namespaces=(), enqueue=lambda _: None, random=Random(1), read=live.READ)  # type: ignore[arg-type]


def texts_of(pods: list[PodFacts]) -> int:
    """The bytes of the texts that are kept: each object once."""
    kept = {
        id(part): part for pod in pods for part in (pod.containers, pod.tolerations, pod.mounting)
    }
    return sum(len(msgspec.json.encode(part)) for part in kept.values())


def see(seen: Caches, *pods: bytes) -> int:
    """Keep what may be kept; return how many pods were not."""
    refused = 0
    for pod in pods:
        try:
            seen.see(PODS, pod)
        except TooLarge:
            refused += 1
    return refused


def test_workers_that_differ_keep_little_together() -> None:
    """1,000 workers of 3 KiB each kept 6 MiB."""
    seen = caches()
    refused = see(
        seen,
        *(
            raw(index, **templated(*(f"{index}-{one}" * 10 for one in range(40))))
            for index in range(1000)
        ),
    )
    assert 900 < refused < 1000, "those before the bound are there"
    assert texts_of([*seen.pods.store.values()]) <= bounds.LARGEST_FACTS


def test_workers_of_one_template_keep_it_once() -> None:
    seen = caches()
    long = templated(*(f"{one}" * 10 for one in range(100)))
    assert not see(seen, *(raw(index, **long) for index in range(1000)))
    assert len(seen.pods.store.values()) == 1000
    assert texts_of([*seen.pods.store.values()]) < bounds.LARGEST_POD


def test_a_text_that_others_have_is_kept_once_beside_one_that_none_has() -> None:
    seen = caches()
    long = {"containers": [{"name": "a" * 3000}, {"name": "b" * 3000}]}
    defaults = [{names.DEFAULT_CONTAINER: f"c{index}"} for index in range(100)]
    assert not see(
        seen, *(raw(index, annotations=one, spec=long) for index, one in enumerate(defaults))
    )
    assert texts_of([*seen.pods.store.values()]) < bounds.LARGEST_POD


def test_a_pod_that_loses_its_gate_is_always_read() -> None:
    """Our own write takes it away, and the job's pods may have all the texts that they may have."""
    seen = caches()
    differ = [templated(f"{index:02}" * 1000)["spec"] for index in range(30)]
    gated = {"schedulingGates": [{"name": names.GATE_SUSPENDED}]}
    alike = {"containers": [{"name": "a" * 5000}]}
    assert not see(seen, raw(30, spec=alike | gated), raw(31, spec=alike | gated))
    assert see(seen, *(raw(index, spec=one | gated) for index, one in enumerate(differ))) > 0
    there = [*seen.pods.store.values()]
    for pod in there:
        number = int(pod.metadata.uid)
        assert not see(seen, raw(number, version=2, spec=alike if number >= 30 else differ[number]))
    assert not any(pod.gates for pod in seen.pods.store.values())


def test_a_pod_that_moves_to_another_job_takes_its_texts_along() -> None:
    seen = caches()
    alike = templated("a" * 3000)
    moved = raw(0, version=2, **alike).replace(b'"train",', b'"other",')
    assert not see(seen, raw(0, **alike), raw(1, **alike), moved)
    for pod in [*seen.pods.store.values()]:
        seen.see_gone(PODS, "n", pod.metadata)
    assert seen._texts._of == {}


@pytest.mark.parametrize(("before", "after"), ["ab", "ba"])
def test_a_pod_that_gets_other_texts_gives_the_former_ones_back(before: str, after: str) -> None:
    seen = caches()
    versions = [
        raw(0, version, **templated(text * 3000)) for version, text in ((1, before), (2, after))
    ]
    assert not see(seen, *versions)
    [pod] = seen.pods.store.values()
    seen.see_gone(PODS, "n", pod.metadata)
    assert seen._texts._of == {}


def test_workers_that_differ_and_keep_less_than_the_bound_together_are_read() -> None:
    different = [raw(index, **templated(f"{index:02}" * 1000)) for index in range(9)]
    assert not see(caches(), *different)


def test_room_is_free_again_once_a_pod_is_gone() -> None:
    seen = caches()
    many = [raw(index, **templated(f"{index:04}" * 700)) for index in range(20)]
    assert see(seen, *many) > 0
    for pod in [*seen.pods.store.values()]:
        seen.see_gone(PODS, "n", pod.metadata)
    assert not see(seen, many[-1])


@pytest.mark.parametrize(
    "parts",
    [
        {"annotations": {f"{names.PREFIX}{index}": "x" * 60 for index in range(500)}},
        {"annotations": {EVICTION_MARK: LONG}},
        {
            "status": {
                "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": LONG}]
            }
        },
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": LONG}]}},
        {"spec": {"nodeName": NAME}, "status": {"reason": LONG}},
        {"owner": {"uid": LONG}},
        {"owner": {"name": LONG}},
        {"owner": {"apiVersion": f"kubeflow.org/{LONG}"}},
    ],
    ids=[
        "marks",
        "an eviction",
        "a reason",
        "an obstacle",
        "an end",
        "an owner's uid",
        "its name",
        "its version",
    ],
)
def test_a_pod_keeps_little_of_its_own(parts: dict[str, Any]) -> None:
    assert bounds.size(live.READ.pod(raw(0, **parts))) <= bounds.LARGEST_POD / 4


def test_of_a_workers_annotations_those_that_a_capability_reads_are_kept() -> None:
    found = live.READ.pod(raw(0, annotations={EVICTION_MARK: "x", f"{names.PREFIX}other": "y"}))
    assert found.marks == {EVICTION_MARK: "x"}


def test_gates_have_512_bytes_as_json() -> None:
    gates: dict[str, Any] = {
        "spec": {"schedulingGates": [{"name": "g" * 253}, {"name": "h" * 252}]}
    }
    assert bounds.size(live.READ.pod(raw(0, **gates)).gates) == 512
    gates["spec"]["schedulingGates"][1]["name"] += "h"
    with pytest.raises(TooLarge, match="512 bytes"):
        live.READ.pod(raw(0, **gates))


def test_a_pod_with_long_gates_is_not_read() -> None:
    with pytest.raises(TooLarge, match="512 bytes"):
        live.READ.pod(
            raw(
                0,
                spec={
                    "schedulingGates": [
                        {"name": f"{index}.example.com/gate"} for index in range(50)
                    ]
                },
            )
        )


TEMPLATES = [
    templated("main"),
    templated("a" * 3000),
    templated("b" * 7000),
    templated("c" * 5000, "d"),
]


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from([*TEMPLATES, None]), st.integers(0, 9)),
        max_size=80,
    )
)
def test_pods_that_come_and_go_keep_little_together(
    changes: list[tuple[int, dict[str, Any] | None, int]],
) -> None:
    seen = caches()
    for version, (index, parts, salt) in enumerate(changes, start=2):
        if parts is None:
            known = seen.pods.store.get("n", f"train-worker-{index}")
            if known is not None:
                seen.see_gone(PODS, "n", known.metadata)
        else:
            salted = msgspec.json.decode(
                msgspec.json.encode(parts).replace(b'"name":"', b'"name":"%d' % salt)
            )
            see(seen, raw(index, version=version, **salted).replace(b"0" * 20, b"%020d" % version))
        assert texts_of([*seen.pods.store.values()]) <= bounds.LARGEST_FACTS
