"""A decision made once more: what the API server says now counts, whatever the caches said."""

import copy
import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities.gangs import Gangs
from mpijob_elastic.capabilities.gangs.facts import PodGroup
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue.actions import ClearWorkload, DeleteWorkload, FinishWorkload
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, NO_QUEUE
from mpijob_elastic.capabilities.live import READ
from mpijob_elastic.controller import recheck
from mpijob_elastic.controller.recheck import LiveRecheck
from mpijob_elastic.decide import config_map, next_memory
from mpijob_elastic.decide.actions import (
    DeleteWorkers,
    EndExecs,
    Gated,
    RefreshLauncher,
    Removal,
    Ungate,
    normal,
)
from mpijob_elastic.decide.derive import derive
from mpijob_elastic.kube.meta import MOST_VALUES
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import Attached, JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint, render_memory
from mpijob_elastic.model.pod import PodFacts, Probe, Worker
from mpijob_elastic.names import SUSPEND
from mpijob_elastic.observe.live import view as view_of
from tests.builders import NOW, but, ref
from tests.counted import calls
from tests.doubles.api import TinyApi
from tests.doubles.direct import Sent
from tests.product.observe.operator_worlds import World, created, look, pods_of
from tests.queues import granted, preempted, queue

JOB = MPI_JOBS.path("default", "scale")


def serve(api: TinyApi, live: World) -> None:
    api.objects[JOB] = live["MPIJob/scale"]
    api.objects[CONFIG_MAPS.path("default", "scale-config")] = live["ConfigMap/scale-config"]
    api.objects |= {PODS.path("default", pod["metadata"]["name"]): pod for pod in pods_of(live)}


def rechecking(
    client: ApiWriter,
    cut: dict[str, bool],
    *,
    timed: Callable[[JobView], JobView] = lambda view: view,
    seen: Iterable[Attached] = (),
) -> LiveRecheck:
    """Return the recheck where these nodes were seen to be deleted, with True where a live read agrees.

    seen: what the capabilities know of the job by other objects.
    """

    def judge(pods: Iterable[PodFacts]) -> list[PodFacts]:
        return [structs.replace(pod, node_gone_at=NOW if pod.node in cut else 0.0) for pod in pods]

    async def is_gone(node: str) -> bool:
        return cut[node]

    caches: Any = SimpleNamespace(
        judge=judge, told=lambda view: capabilities.told(view, seen=seen), is_node_gone=is_gone
    )
    return LiveRecheck(
        client,
        caches,
        probes=lambda _job, _pod, _at: Probe(),
        acknowledged=lambda _job, _uid: Acknowledgement(),
        timed=timed,
        read=READ,
        now=lambda: NOW,
    )


def twin() -> World:
    """The world with a pod of scale-worker-2, which the caches have not seen yet."""
    live = created()
    text = json.dumps(live["Pod/scale-worker-1"]).replace("scale-worker-1", "scale-worker-2")
    return {**live, "Pod/scale-worker-2": json.loads(text)}


def with_metadata(name: str, **change: str) -> World:
    live = created()
    live[name]["metadata"].update(change)
    return live


def with_another_driver() -> World:
    live = created()
    launcher = live["Pod/scale-launcher"]
    running = {"running": {"startedAt": "2026-01-01T01:00:00Z"}}
    launcher["status"]["containerStatuses"] = [
        {"name": launcher["spec"]["containers"][0]["name"], "state": running}
    ]
    return live


NODE = created()["Pod/scale-worker-1"]["spec"]["nodeName"]
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("live", "cut", "ended"),
    [
        pytest.param(created(), {}, [2], id="a pod that is gone live too"),
        pytest.param(twin(), {}, [], id="a pod that the caches have not seen yet"),
        pytest.param(created(), {NODE: True}, [1, 2], id="a pod whose node is gone live too"),
        pytest.param(created(), {NODE: False}, [2], id="a pod whose node is there live"),
        pytest.param(with_metadata("MPIJob/scale", uid="another's"), {}, [], id="another job"),
        pytest.param(with_metadata("MPIJob/scale", **GOING), {}, [], id="a job that goes"),
        pytest.param(
            with_metadata("Pod/scale-launcher", uid="another's"), {}, [], id="another launcher"
        ),
        pytest.param(
            with_metadata("Pod/scale-launcher", **GOING), {}, [], id="a launcher that goes"
        ),
        pytest.param(
            with_another_driver(), {}, [], id="a launcher whose container was started anew"
        ),
    ],
)
async def test_execs_are_ended_only_into_what_is_gone_live_too(
    api: TinyApi, client: ApiWriter, live: World, cut: dict[str, bool], ended: list[int]
) -> None:
    """The caches show two workers, and what is live is `live`."""
    serve(api, live)
    view = look(created())
    at = view.workers[1].facts.created_at + 10.0
    execs = tuple(Exec(pid=41, pod=f"scale-worker-{index}", started_at=at) for index in (1, 2))
    assert view.launcher is not None
    found = await rechecking(client, cut).execs(view, EndExecs(launcher=view.launcher, execs=execs))
    assert [exec_.pod for exec_ in found] == [f"scale-worker-{index}" for index in ended]


async def test_the_pod_group_that_the_caches_have_is_decided_on_again(
    api: TinyApi, client: ApiWriter
) -> None:
    """A worker that its gang scheduler has forgotten is deleted for what the PodGroup says."""
    serve(api, created())
    view = but(look(created()), pod_group=PodGroup(metadata=ref("scale"), min_member=3, queue=""))
    judged: list[JobView] = []

    def timed(fresh: JobView) -> JobView:
        judged.append(fresh)
        return fresh

    recheck = rechecking(client, {}, timed=timed, seen=view.capabilities)
    found = await recheck.removals(view, DeleteWorkers(removals=()))
    assert found.removals == []
    assert [fresh.of(Gangs) for fresh in judged] == [view.of(Gangs)]


@pytest.mark.parametrize("waits", [True, False])
async def test_quota_is_given_back_only_for_a_pod_that_waits_live_too(
    api: TinyApi, client: ApiWriter, waits: bool
) -> None:
    """The caches of a new leader may lag: its pods wait there, and were freed by the leader before."""
    live, seen = created(), created()
    for world in (live, seen) if waits else (seen,):
        world["Pod/scale-worker-1"]["spec"]["schedulingGates"] = [{"name": names.GATE_HELD}]
    serve(api, live)
    extra = preempted("scale-worker-1")
    view = but(look(seen), queue=queue(granted("scale-launcher", workers=1), extra))
    judged: list[JobView] = []

    def timed(fresh: JobView) -> JobView:
        judged.append(fresh)
        return fresh

    recheck = rechecking(client, {}, timed=timed, seen=view.capabilities)
    for action in (ClearWorkload(workload=extra), DeleteWorkload(ref=extra.metadata)):
        assert await recheck.due(view, action) == (waits and isinstance(action, ClearWorkload))
    assert len(judged) == 1, "all writes of a plan are decided again at once"
    assert await recheck.due(but(view), ClearWorkload(workload=extra)) == waits
    assert len(judged) == 2


@pytest.mark.parametrize(
    ("changed", "free"),
    [
        pytest.param({}, True, id="as it was seen"),
        pytest.param({"labels": {LABEL_QUEUE: "team"}}, False, id="it has joined a queue"),
        pytest.param({"annotations": {SUSPEND: "true"}}, False, id="it is suspended"),
        pytest.param({"uid": "another's"}, False, id="another job"),
        pytest.param(GOING, False, id="a job that goes"),
        pytest.param(None, False, id="a job that is gone"),
    ],
)
async def test_pods_start_only_while_the_mpijob_lets_them_live_too(
    api: TinyApi, client: ApiWriter, changed: dict[str, object] | None, free: bool
) -> None:
    """The caches show a job without a queue, whose last worker waits."""
    live = created()
    live["Pod/scale-worker-1"]["spec"]["schedulingGates"] = [{"name": names.GATE_QUEUED}]
    view = look(live)
    live["MPIJob/scale"]["metadata"].update(changed or {})
    serve(api, live)
    if changed is None:
        del api.objects[JOB]
    action = Ungate(
        pods=(Gated(ref=view.workers[1].ref),), note=normal("Resumed", "nothing holds it back")
    )
    told: list[Attached] = [] if changed and "labels" in changed else [Kueue(NO_QUEUE)]
    assert await rechecking(client, {}, seen=told).free(view, action) is free


def test_whatever_gives_quota_back_is_decided_again() -> None:
    given_back = (ClearWorkload, DeleteWorkload, FinishWorkload)
    assert [one.__name__ for one in given_back if not one.rechecked] == []


@pytest.mark.parametrize("agrees", [True, False])
async def test_a_worker_is_deleted_for_its_node_only_if_a_live_read_agrees(
    api: TinyApi, client: ApiWriter, agrees: bool
) -> None:
    live = created()
    script = names.discover_hosts(["scale-worker-0"], slots=1)
    live["ConfigMap/scale-config"]["data"][names.KEY_DISCOVER_HOSTS] = script
    memory = render_memory(next_memory.signed(Memory(), script=script))
    live["ConfigMap/scale-config"]["metadata"]["annotations"] = {names.MEMORY: memory}
    items = [{"key": names.KEY_DISCOVER_HOSTS, "path": names.KEY_DISCOVER_HOSTS}]
    for volume in live["Pod/scale-launcher"]["spec"]["volumes"]:  # as the webhook gives it the list
        if volume["name"] == names.CONFIG_VOLUME:
            volume["configMap"]["items"] = items
    serve(api, live)
    view, node = look(live), live["Pod/scale-worker-1"]["spec"]["nodeName"]
    note = normal("WorkerReplaced", "its node is gone")
    action = DeleteWorkers(
        removals=(Removal(worker=view.workers[1], outcome="lost", note=note, grace=0),)
    )
    found = await rechecking(client, {node: agrees}).removals(view, action)
    assert [(one.worker.name, one.grace) for one in found.removals] == (
        [("scale-worker-1", 0)] if agrees else []
    )


def leaving() -> World:
    """Return what is live of a job whose second worker has left the list, without time to drain."""
    live = created()
    job = live["MPIJob/scale"]
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 1
    job["metadata"].setdefault("annotations", {})[names.DRAIN_TIMEOUT] = "0s"
    script = names.discover_hosts(["scale-worker-0"], slots=1)
    left = Left(at=NOW - 1.0, pod=pod_fingerprint(live["Pod/scale-worker-1"]["metadata"]["uid"]))
    memory = Memory(left={"scale-worker-1": left}, removed_at=NOW - 1.0)
    config = live["ConfigMap/scale-config"]
    config["data"][names.KEY_DISCOVER_HOSTS] = script
    signed = render_memory(next_memory.signed(memory, script=script))
    config["metadata"]["annotations"] = {names.MEMORY: signed}
    items = [{"key": names.KEY_DISCOVER_HOSTS, "path": names.KEY_DISCOVER_HOSTS}]
    launcher = live["Pod/scale-launcher"]
    for volume in launcher["spec"]["volumes"]:  # as the webhook gives it the list
        if volume["name"] == names.CONFIG_VOLUME:
            volume["configMap"]["items"] = items
    launcher["status"]["containerStatuses"] = [
        {
            "name": launcher["spec"]["containers"][0]["name"],
            "state": {"running": {"startedAt": "2026-01-01T00:00:10Z"}},
        }
    ]
    return live


def touch_of(view: JobView) -> RefreshLauncher:
    """Return the touch that is due."""
    assert view.config is not None
    touch = config_map.refresh(derive(view, now=NOW), view.config).write
    assert touch is not None
    return touch


def touched(live: World, touch: RefreshLauncher) -> World:
    """Return what is live once the launcher is touched."""
    after = copy.deepcopy(live)
    after["Pod/scale-launcher"]["metadata"]["annotations"] = {names.REFRESHED: touch.text}
    return after


def removal_of(view: JobView, outcome: str = "timeout") -> DeleteWorkers:
    note = normal("SurplusDeleted", "it has left")
    return DeleteWorkers(removals=(Removal(worker=view.workers[1], outcome=outcome, note=note),))


def edited_back() -> World:
    live = leaving()
    live["MPIJob/scale"]["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2
    return live


NEWEST: dict[str, str] = {}


def as_of(version: str) -> dict[str, str]:
    """The query for pods that are not older."""
    return {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}


@pytest.mark.parametrize(
    ("live", "waits", "deleted", "asked"),
    [
        pytest.param(leaving(), None, [1], NEWEST, id="not touched"),
        pytest.param(leaving(), 0.0, [1], as_of("77"), id="touched"),
        pytest.param(leaving(), 0.09, [1], as_of("77"), id="a moment ago"),
        pytest.param(leaving(), 0.1, [1], NEWEST, id="long ago"),
        pytest.param(edited_back(), 0.0, [], as_of("77"), id="edited back meanwhile"),
    ],
)
async def test_just_after_a_touch_pods_as_of_the_touch_are_new_enough(
    api: TinyApi,
    client: ApiWriter,
    live: World,
    waits: float | None,
    deleted: list[int],
    asked: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The MPIJob and the ConfigMap are read as they are now. waits: seconds since the touch."""
    clock, queries = [1000.0], list[dict[str, str]]()
    monkeypatch.setattr(recheck, "_now", lambda: clock[0])

    def note(sent: Sent) -> None:
        if sent.path == PODS.path("default"):
            versions = {key: text for key, text in sent.query.items() if "Version" in key}
            queries.append(versions)

    api.hook = note
    view = look(leaving())
    touch = touch_of(view)
    serve(api, touched(live, touch))
    again = rechecking(client, {})
    if waits is not None:
        again.touched(view, "77")
        clock[0] += waits
    view = look(touched(leaving(), touch))
    for query in (asked, NEWEST):
        found = await again.removals(view, removal_of(view))
        assert [one.worker.index for one in found.removals] == deleted
        assert queries.pop() == query


async def test_a_pod_that_takes_long_to_read_costs_the_others_nothing(
    api: TinyApi, client: ApiWriter
) -> None:
    live = twin()
    live["Pod/scale-worker-1"]["spec"]["containers"] *= MOST_VALUES
    serve(api, live)
    with calls() as counted:
        fresh = await view_of(client, namespace="default", job="scale", read=READ)
    assert fresh is not None
    assert [worker.index for worker in fresh.workers] == [0, 2]
    assert counted["shared"] < MOST_VALUES


def hidden_and_over(**changed: Any) -> tuple[World, JobView]:
    """What is live, and the view of a job whose second worker cannot be read, and that has to stop at last."""
    live = created()
    live["MPIJob/scale"]["metadata"].setdefault("annotations", {})[SUSPEND] = "true"
    pod = live["Pod/scale-worker-1"]
    view = look(live)
    seen = view.workers[1].facts
    pod["metadata"]["annotations"] = {str(number): "" for number in range(MOST_VALUES + 1)}
    pod["metadata"].update(changed)
    unread = {"Pod scale-worker-1": "it has too many fields"}
    return live, but(
        view, workers=view.workers[:1], unread=unread, hidden={seen.metadata.name: seen}
    )


@pytest.mark.parametrize(
    ("changed", "deleted"),
    [
        pytest.param({}, ["scale-worker-1"], id="as it was seen"),
        pytest.param({"resourceVersion": "9999"}, ["scale-worker-1"], id="edited all day"),
        pytest.param({"uid": "another's"}, [], id="another pod of its name"),
        pytest.param({"ownerReferences": []}, [], id="a pod of nobody"),
        pytest.param(GOING, [], id="a pod that goes"),
        pytest.param(None, [], id="a pod that is gone"),
    ],
)
@pytest.mark.parametrize("seen_for", [59.0, 60.0])
async def test_a_pod_that_cannot_be_read_is_deleted_as_it_is_live(
    api: TinyApi,
    client: ApiWriter,
    changed: dict[str, object] | None,
    deleted: list[str],
    seen_for: float,
) -> None:
    live, view = hidden_and_over(**(changed or {}))
    serve(api, live)
    if changed is None:
        del api.objects[PODS.path("default", "scale-worker-1")]
    worker = Worker(facts=view.hidden["scale-worker-1"], index=1, containers=())
    note = normal("DrainTimeout", "it has to go")
    action = DeleteWorkers(removals=(Removal(worker=worker, outcome="timeout", note=note),))
    recheck = rechecking(client, {}, timed=lambda fresh: but(fresh, hindered_for=seen_for))
    found = await recheck.removals(view, action)
    assert [one.worker.name for one in found.removals] == (deleted if seen_for >= 60.0 else [])
    for one in found.removals:
        assert (
            one.worker.ref.resource_version
            == live["Pod/scale-worker-1"]["metadata"]["resourceVersion"]
        )


async def test_no_quota_is_free_live_while_a_pod_cannot_be_read(
    api: TinyApi, client: ApiWriter
) -> None:
    """A list leaves such a pod out, so the pods that are listed may all wait."""
    live, view = hidden_and_over()
    for name in ("scale-launcher", "scale-worker-0"):
        live[f"Pod/{name}"]["spec"]["schedulingGates"] = [{"name": names.GATE_QUEUED}]
    serve(api, live)
    base = granted("scale-launcher", evicted=True)
    view = but(view, queue=queue(base))
    recheck = rechecking(client, {}, seen=view.capabilities)
    assert not await recheck.due(view, ClearWorkload(workload=base))
    unknown = but(view, unread={}, hidden={})
    assert not await recheck.due(unknown, ClearWorkload(workload=base)), "whatever the caches know"
    live["Pod/scale-worker-1"]["spec"]["schedulingGates"] = [{"name": names.GATE_QUEUED}]
    serve(api, live)
    assert await recheck.due(but(view), ClearWorkload(workload=base))


@pytest.mark.parametrize("config", [None, {str(n): "" for n in range(MOST_VALUES + 1)}])
async def test_a_job_whose_config_map_is_missing_or_cannot_be_read_can_stop(
    api: TinyApi, client: ApiWriter, config: dict[str, str] | None
) -> None:
    live, view = hidden_and_over()
    live["ConfigMap/scale-config"]["data"] = config
    serve(api, live)
    if config is None:
        del api.objects[CONFIG_MAPS.path("default", "scale-config")]
    assert await rechecking(client, {}).suspended(view)
