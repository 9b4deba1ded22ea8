"""Queues that assign nodes: what is asked of Kueue, and which of its nodes a pod gets."""

import json
from collections import Counter
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.act.writer import Outdated
from mpijob_elastic.capabilities.kueue import Kueue, facts, topology, wishes
from mpijob_elastic.capabilities.kueue import actions as of_kueue
from mpijob_elastic.capabilities.kueue.actions import CreateWorkload
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS, Workload
from mpijob_elastic.capabilities.kueue.live import Workloads
from mpijob_elastic.capabilities.kueue.topology import (
    DOMAIN,
    GROUP,
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    SLICE,
    SLICE_SIZE,
    SLICES,
    UNCONSTRAINED,
    Domain,
)
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import PodSet, Ungate
from mpijob_elastic.kube import resources
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, job, pending, ref, worker
from tests.doubles.api import Object, TinyApi
from tests.product.capabilities.kueue.test_live import conditions
from tests.product.decide.plans import does
from tests.queues import GATES, granted, queue, training, waiting, workload

RACK = "example.com/rack"
PODS, OF_KUEUE = resources.PODS.path("default"), WORKLOADS.path("default")
NODES = resources.NODES.path()


@pytest.mark.parametrize(
    ("annotations", "base", "extra"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param({REQUIRED: RACK}, {"required": RACK}, {"required": RACK}, id="one rack"),
        pytest.param(
            {PREFERRED: RACK}, {"preferred": RACK}, {"preferred": RACK}, id="better one rack"
        ),
        pytest.param(
            {REQUIRED: RACK, PREFERRED: HOSTNAME, UNCONSTRAINED: "true"},
            {"required": RACK},
            {"required": RACK},
            id="the strictest counts",
        ),
        pytest.param(
            {UNCONSTRAINED: "true"},
            {"unconstrained": True},
            {"unconstrained": True},
            id="anywhere",
        ),
        pytest.param(
            {UNCONSTRAINED: "no"}, {"unconstrained": False}, {"unconstrained": False}, id="a typo"
        ),
        pytest.param(
            {REQUIRED: RACK, GROUP: "all"},
            {"required": RACK, "podSetGroupName": "all"},
            {"required": RACK},
            id="together with the launcher",
        ),
        pytest.param({GROUP: "all"}, {}, {}, id="a group without a level"),
        pytest.param(
            {SLICE: HOSTNAME, SLICE_SIZE: "2"},
            {"podSetSliceRequiredTopology": HOSTNAME, "podSetSliceSize": 2},
            {},
            id="slices",
        ),
        pytest.param({SLICE: HOSTNAME, SLICE_SIZE: "two"}, {}, {}, id="slices of no size"),
        pytest.param(
            {SLICES: '[{"topology": "x", "size": 2}]'},
            {"podsetSliceRequiredTopologyConstraints": [{"topology": "x", "size": 2}]},
            {},
            id="slices of slices",
        ),
        pytest.param({SLICES: "["}, {}, {}, id="slices that are no JSON"),
        pytest.param({SLICES: '{"topology": "x"}'}, {}, {}, id="slices that are no list"),
        pytest.param({SLICE: HOSTNAME, SLICE_SIZE: "1" * 12}, {}, {}, id="slices of no int32"),
        pytest.param({SLICE: HOSTNAME, SLICE_SIZE: "0"}, {}, {}, id="slices of nobody"),
        pytest.param({SLICES: '[{"topology": "x", "size": 0}]'}, {}, {}, id="layers of nobody"),
        pytest.param({SLICES: "[]"}, {}, {}, id="no layers"),
    ],
)
def test_a_workload_asks_for_what_the_annotations_of_the_template_say(
    annotations: dict[str, str], base: Object, extra: Object
) -> None:
    pod: Object = {"metadata": {"annotations": annotations}, "spec": {"containers": []}}
    for name, wanted in (("j-launcher", base), ("j-worker-2", extra)):
        sets = (PodSet(name="workers", count=2, like=ref("j-worker-0")),)
        asked = CreateWorkload(name=name, queue="team", pods=sets)
        [made] = of_kueue.created(job(), asked, pods=[pod], priority=0)["spec"]["podSets"]
        assert made.get("topologyRequest", {}) == wanted


def host(name: str, pods: int) -> Domain:
    return Domain(labels={HOSTNAME: name}, pods=pods)


def individual(*roots: str, **parts: str) -> Object:
    return {"individual": {"roots": list(roots), **parts}}


@pytest.mark.parametrize(
    ("assignment", "found"),
    [
        pytest.param(
            {
                "levels": [HOSTNAME],
                "slices": [
                    {
                        "domainCount": 2,
                        "valuesPerLevel": [individual("1", "2", prefix="a-", suffix="-z")],
                        "podCounts": {"individual": [4, 1]},
                    },
                    {
                        "domainCount": 1,
                        "valuesPerLevel": [{"universal": "b"}],
                        "podCounts": {"universal": 2},
                    },
                ],
            },
            [host("a-1-z", 4), host("a-2-z", 1), host("b", 2)],
            id="two slices",
        ),
        pytest.param(
            {
                "levels": ["block", RACK],
                "slices": [
                    {
                        "domainCount": 2,
                        "valuesPerLevel": [{"universal": "b1"}, individual("r1", "r2")],
                        "podCounts": {"universal": 3},
                    }
                ],
            },
            [
                Domain(labels={"block": "b1", RACK: "r1"}, pods=3),
                Domain(labels={"block": "b1", RACK: "r2"}, pods=3),
            ],
            id="two levels",
        ),
        pytest.param(None, [], id="none"),
        pytest.param({"levels": [HOSTNAME], "slices": []}, [], id="no slice"),
        pytest.param({"slices": [{"podCounts": 1}]}, [], id="not of this kind"),
    ],
)
def test_an_assignment_is_read_as_kueue_packs_it(
    assignment: Object | None, found: list[Domain]
) -> None:
    assert topology.domains(json.dumps(assignment).encode()) == found


A_AND_B = [host("a", 2), host("b", 2)]


@pytest.mark.parametrize(
    ("ranks", "taken", "closed", "placed"),
    [
        pytest.param([0, 1, 2, 3], "", "", "0a 1a 2b 3b", id="by rank"),
        pytest.param([1], "abb", "", "1a", id="a replacement"),
        pytest.param([0], "abb", "", "0a", id="the same domain again"),
        pytest.param([0], "aab", "", "0b", id="its domain is full"),
        pytest.param([0], "aabb", "", "", id="all are full"),
        pytest.param([0, 2], "ab", "a", "2b", id="a node has failed"),
        pytest.param([0, 1], "cc", "", "0a 1a", id="others run where Kueue assigns nothing now"),
        pytest.param([4, 9], "", "", "4a 9a", id="ranks beyond the assignment"),
    ],
)
def test_a_pod_gets_the_domain_of_its_rank_or_a_free_one(
    ranks: list[int], taken: str, closed: str, placed: str
) -> None:
    names = {str(rank): rank for rank in ranks}
    found = topology.places(A_AND_B, names, taken=taken, closed=closed)
    assert " ".join(f"{pod}{domain.node}" for pod, domain in sorted(found.items())) == placed


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    seed=st.randoms(use_true_random=False),
)
def test_no_domain_ever_takes_more_pods_than_kueue_counts_there(
    counts: list[int], seed: Any
) -> None:
    """Workers start, end and start again, and Kueue puts another node in the place of one that failed."""
    assigned = [host(f"n{index}", count) for index, count in enumerate(counts)]
    size, running = sum(counts), dict[int, str]()
    for step in range(12):
        if seed.random() < 0.3:
            place = seed.randrange(len(assigned))
            gone = assigned[place].mark
            assigned[place] = host(f"m{step}", assigned[place].pods)
            running = {rank: mark for rank, mark in running.items() if mark != gone}
        for rank in [rank for rank in running if seed.random() < 0.3]:
            del running[rank]
        waits = {str(rank): rank for rank in range(size) if rank not in running}
        some = {pod: rank for pod, rank in waits.items() if seed.random() < 0.8}
        found = topology.places(assigned, some, taken=running.values(), closed=())
        assert found.keys() == some.keys()
        running |= {int(pod): domain.mark for pod, domain in found.items()}
        room = {domain.mark: domain.pods for domain in assigned}
        assert all(count <= room[mark] for mark, count in Counter(running.values()).items())


def test_a_long_domain_has_a_short_mark_of_its_own() -> None:
    long = [Domain(labels={"block": "b" * 60, RACK: f"rack-{index}"}, pods=1) for index in (1, 2)]
    marks = {domain.mark for domain in long}
    assert len(marks) == 2
    assert all(len(mark) <= 63 for mark in marks)


def assignment(**pods: int) -> bytes:
    """An assignment of so many pods to each of these nodes."""
    names, counts = list(pods), list(pods.values())
    part = {"valuesPerLevel": [individual(*names)], "podCounts": {"individual": counts}}
    return json.dumps({"levels": [HOSTNAME], "slices": [part]}).encode()


def placed_on(**pods: int) -> dict[str, bytes]:
    return {"launcher": assignment(a=1), "workers": assignment(**pods)}


def on(index: int, domain: str, **facts: Any) -> Any:
    return worker(index, marks={DOMAIN: domain}, node=domain, **facts)


def nodes(view: JobView) -> str:
    kueue = view.of(Kueue)
    assert kueue
    assert kueue.queue
    found = wishes.assigned(view, kueue.queue, now=NOW)
    return " ".join(f"{pod.removeprefix('j-')}={one.node}" for pod, one in sorted(found.items()))


BASE = granted(workers=2, topology=placed_on(a=1, b=1), flavors={"workers": ("gpu",)}, ready=True)
EXTRA = granted("j-worker-2", workers=1, topology={"workers": assignment(c=1)})
GATED = (pending(0, gates=GATES), on(1, "b"))


@pytest.mark.parametrize(
    ("view", "where", "plan"),
    [
        pytest.param(
            waiting(2, BASE),
            "launcher=a worker-0=a worker-1=b",
            "start launcher; start 0 1 on gpu",
            id="a new job",
        ),
        pytest.param(
            training(*GATED, found=(BASE,), size=2),
            "worker-0=a",
            "start 0 on gpu",
            id="a replacement goes to the free node",
        ),
        pytest.param(
            training(pending(0, gates=GATES), on(1, "a"), found=(BASE,), size=2),
            "worker-0=b",
            "start 0 on gpu",
            id="the other node is free, since Kueue has assigned anew",
        ),
        pytest.param(
            training(
                *GATED, found=(granted(workers=2, topology=placed_on(b=2), ready=True),), size=2
            ),
            "worker-0=b",
            "start 0",
            id="another node instead of the first",
        ),
        pytest.param(
            training(
                *GATED,
                found=(
                    granted(workers=2, topology=placed_on(a=1, b=1), unhealthy=("a",), ready=True),
                ),
                size=2,
            ),
            "",
            "nothing",
            id="its node has failed",
        ),
        pytest.param(
            training(
                pending(0, gates=GATES),
                on(1, "a", disruption="node a: taint x"),
                found=(granted(workers=2, topology=placed_on(a=2), ready=True),),
                size=2,
            ),
            "",
            None,
            id="another worker is about to leave its node",
        ),
        pytest.param(
            training(
                pending(0, gates=GATES),
                on(1, "a", disruption="node a: condition x", disruption_from=NOW + 1800),
                found=(granted(workers=2, topology=placed_on(a=2), ready=True),),
                size=2,
            ),
            "worker-0=a",
            "start 0",
            id="a sign on its node does not count yet",
        ),
        pytest.param(
            training(
                worker(0),
                worker(1),
                pending(2, gates=GATES),
                found=(granted(workers=2, ready=True), EXTRA),
                size=3,
            ),
            "worker-2=c",
            "start 2",
            id="an extra",
        ),
        pytest.param(
            training(on(0, "a"), on(1, "b"), found=(BASE,), size=2), "", None, id="nothing waits"
        ),
    ],
)
def test_pods_start_when_kueue_has_a_node_for_them(
    view: JobView, where: str, plan: str | None
) -> None:
    assert nodes(view) == where
    if plan is not None:
        assert does(view, but="publish hostfile remember touch delete say probe allow wake") == plan


def kept(*, unhealthy: tuple[str, ...] = (), **pods: int) -> Object:
    """The status of a Workload as the API server has it."""
    sets = [
        {"name": name, "flavors": {"cpu": "gpu"}, "topologyAssignment": json.loads(raw)}
        for name, raw in placed_on(**pods).items()
    ]
    found = conditions(QuotaReserved=True, Admitted=True)
    return {
        **found,
        "admission": {"clusterQueue": "team", "podSetAssignments": sets},
        "unhealthyNodes": [{"name": name} for name in unhealthy],
    }


def test_the_assignment_is_read_from_a_workload() -> None:
    body = {"metadata": {"name": "j-launcher"}, "status": kept(a=1, b=1, unhealthy=("b",))}
    found = facts.read(json.dumps(body).encode())
    assert topology.domains(found.topology["workers"]) == [host("a", 1), host("b", 1)]
    assert found.unhealthy == ("b",)
    assert facts.read(b'{"metadata": {"name": "j-launcher"}}').topology == {}


@pytest.mark.parametrize(
    ("now", "node"),
    [
        pytest.param(kept(a=1, b=1), "b", id="as last seen"),
        pytest.param(kept(a=1, c=1), "c", id="assigned anew since"),
        pytest.param(kept(a=1, b=1, unhealthy=("b",)), None, id="failed since"),
    ],
)
async def test_a_pod_is_bound_to_the_node_that_it_has_live(
    api: TinyApi,
    written: Workloads,
    now: Object,
    node: str | None,
) -> None:
    sets = [{"name": "launcher", "count": 1}, {"name": "workers", "count": 2}]
    await api.create(OF_KUEUE, "j-launcher", spec={"podSets": sets}, status=now)
    await api.create(facts.FLAVORS.path(), "gpu", spec={"nodeLabels": {"pool": "g"}})
    await api.create(PODS, "j-worker-1", spec={})
    view = training(on(0, "a"), pending(1, gates=GATES), found=(BASE,), size=2)
    [freed] = [one for one in decide(view, now=NOW).actions if isinstance(one, Ungate)]
    add = await written.starting(view, freed)
    with nullcontext() if node else pytest.raises(Outdated, match="yet to assign it another node"):
        *_, annotations, selector = await add(ref("j-worker-1"))
        assert annotations["value"] == {
            topology.WORKLOAD: "j-launcher",
            DOMAIN: node,
            UNCONSTRAINED: "true",
        }
        assert selector["value"] == {"pool": "g", HOSTNAME: node}


def test_a_pod_that_asks_itself_for_a_topology_is_not_said_to_ask_for_none() -> None:
    found = topology.additions(host("a", 1), workload="w", annotations={REQUIRED: RACK})
    assert found["annotations"] == {topology.WORKLOAD: "w", DOMAIN: "a"}


@pytest.mark.parametrize(
    ("base", "node", "selector"),
    [
        pytest.param(BASE, {RACK: "r1"}, {RACK: "r1"}, id="the rack of the base"),
        pytest.param(BASE, {"other": "x"}, None, id="a node without that label"),
        pytest.param(BASE, None, None, id="the node is gone"),
        pytest.param(workload(), {RACK: "r1"}, None, id="a queue that assigns nothing"),
    ],
)
async def test_an_extra_asks_for_the_domain_in_which_the_base_has_to_be(
    api: TinyApi,
    written: Workloads,
    base: Workload,
    node: Object | None,
    selector: Object | None,
) -> None:
    if node is not None:
        await api.create(NODES, "a", metadata={"labels": node})
    await api.create(PODS, "j-worker-2", metadata={"annotations": {REQUIRED: RACK}}, spec={})
    view = job(3, policy=Policy(min_replicas=2), queue=queue(base))
    pods = (PodSet(name="workers", count=1, like=ref("j-worker-2")),)
    await written.perform(view, CreateWorkload(name="j-worker-2", queue="team", pods=pods))
    [asked] = api.objects[f"{OF_KUEUE}/j-worker-2"]["spec"]["podSets"]
    assert asked["topologyRequest"] == {"required": RACK}
    assert asked["template"]["spec"].get("nodeSelector") == selector
