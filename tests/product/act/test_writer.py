"""The answers of the API server to a write of the controller: what is taken in, remembered, or an error."""

import contextlib
import math
from unittest import mock

import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic import names
from mpijob_elastic.act.leader_writer import Altered, LeaderWriter
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.capabilities.autoscaling import facts as autoscale
from mpijob_elastic.capabilities.autoscaling.autoscaler import (
    SPEC_DIGEST,
    ChangeAutoscaler,
    DeleteAutoscaler,
    MakeAutoscaler,
)
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALERS
from mpijob_elastic.capabilities.autoscaling.size import Fill, RollBack
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.capabilities.gangs.facts import KUBERNETES_POD_GROUPS, VOLCANO_POD_GROUPS, Gang
from mpijob_elastic.capabilities.gangs.wishes import MakePodGroup
from mpijob_elastic.capabilities.kueue.actions import DeleteWorkload
from mpijob_elastic.capabilities.run_policy import DeleteJob
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import (
    Delete,
    DeleteLauncher,
    DeleteWorkers,
    EndLauncher,
    Patch,
    RefreshLauncher,
    ReleaseWorker,
    Removal,
    TellUser,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import controller
from mpijob_elastic.model.memory import Tries
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, but, config, job, launcher, pods, ref, worker
from tests.doubles.api import Object, TinyApi, merged
from tests.faults.faults import Answer, Reset, writes
from tests.faults.proxy import FaultProxy
from tests.kinds import kinds
from tests.product.act.writes import NOTE, Answered, Everything, Taken, is_there, writer_of
from tests.room_words import rooms

ENDED: Object = {"kind": "Status", "status": "Success"}
LAUNCHER = DeleteLauncher(launcher=launcher(), note=NOTE)
EXPIRED = DeleteJob(ref=job(1).ref, note=NOTE)


def changed(version: str = "8", kind: str = "Pod", **content: object) -> Object:
    return {"kind": kind, "metadata": {"resourceVersion": version}, **content}


@pytest.mark.parametrize(
    ("action", "answer", "versions", "gone"),
    [
        pytest.param(LAUNCHER, changed(), [8], [], id="it ends later"),
        # Seen of a real API server where a kubelet's deletion of the same pod came between.
        pytest.param(
            LAUNCHER,
            {"kind": "Pod", "metadata": {"name": "j-launcher"}},
            [],
            ["j-launcher"],
            id="it ended meanwhile",
        ),
        pytest.param(LAUNCHER, ENDED, [], ["j-launcher"], id="it ended at once"),
        pytest.param(EXPIRED, changed(kind="MPIJob"), [8], [], id="a job with a finalizer"),
        pytest.param(EXPIRED, ENDED, [], ["j"], id="a job without one"),
    ],
)
async def test_a_deletion_is_taken_in_however_it_is_answered(
    proxy: FaultProxy,
    writer: Writer,
    taken: Taken,
    action: DeleteLauncher | DeleteJob,
    answer: Object,
    versions: list[int],
    gone: list[str],
) -> None:
    with proxy.inject(Answered(body=answer), on=writes):
        await writer.perform(job(2), action)
    assert (taken.versions(), taken.gone) == (versions, gone)


def leaves(grace: int | None) -> DeleteWorkers:
    return DeleteWorkers(
        removals=(Removal(worker=worker(1), outcome="drained", note=NOTE, grace=grace),)
    )


@pytest.mark.parametrize(
    ("action", "path", "grace"),
    [
        pytest.param(
            leaves(1), PODS.path("default", "j-worker-1"), 1, id="a worker has the time of the plan"
        ),
        pytest.param(leaves(None), PODS.path("default", "j-worker-1"), None, id="or its own"),
        # At once, or the operator would see it end and fail the job.
        pytest.param(LAUNCHER, PODS.path("default", "j-launcher"), 0, id="a launcher goes at once"),
        pytest.param(
            but(LAUNCHER, suspends=True),
            PODS.path("default", "j-launcher"),
            0,
            id="that of a suspended job too",
        ),
        pytest.param(EXPIRED, MPI_JOBS.path("default", "j"), None, id="an expired job"),
    ],
)
async def test_what_is_deleted_is_as_it_was_decided_on(
    api: TinyApi,
    client: ApiWriter,
    taken: Taken,
    action: DeleteWorkers | DeleteLauncher | DeleteJob,
    path: str,
    grace: int | None,
) -> None:
    is_there(api, path)
    await writer_of(client, taken, Everything()).perform(job(1), action)
    [options] = api.deletions
    assert options.get("gracePeriodSeconds") == grace
    assert options["preconditions"] == {
        "uid": f"uid-of-{path.rpartition('/')[2]}",
        "resourceVersion": "7",
    }
    assert path not in api.objects


async def test_the_launcher_of_a_job_that_is_no_longer_suspended_stays(
    api: TinyApi, writer: Writer
) -> None:
    is_there(api, PODS.path("default", "j-launcher"))
    with pytest.raises(Outdated, match="not suspended any more"):
        await writer.perform(job(1), but(LAUNCHER, suspends=True))
    assert not api.deletions


@pytest.mark.parametrize(
    "action",
    [
        DeleteAutoscaler(ref=ref("x"), note=NOTE),
        DeleteWorkload(ref=ref("x")),
        *(action for words in rooms() for action, _ in words.said if isinstance(action, Delete)),
    ],
    ids=lambda action: type(action).__name__,
)
async def test_what_others_hold_is_deleted_by_its_uid_and_counts_as_gone(
    api: TinyApi, client: ApiWriter, taken: Taken, action: Delete
) -> None:
    name = action.ref.name
    is_there(api, action.resource.path("default", name))
    for _ in range(2):
        await writer_of(client, taken, Everything()).perform(job(1), action)
    assert (taken.gone, taken.answers) == ([name, name], [])
    assert [options["preconditions"] for options in api.deletions] == [{"uid": f"uid-of-{name}"}]


VOLCANO = Gang(scheduler="volcano", queue="team", annotations={"a": "b"})
SIZED = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}}
RULES = {
    "rules": [
        {"resources": ["configmaps"]},
        {"resources": ["pods/exec"], "resourceNames": ["j-worker-0"]},
    ]
}
COUNTED = {"status": {"replicaStatuses": {"Worker": {"active": 3}}}}
OWNED = {"ownerReferences": [controller(ref("j"))]}
DIGEST = {"annotations": {SPEC_DIGEST: autoscale.digest({"maxReplicas": 4})}}
# Each patch, the object that is there, and what of the object then is another.
AT_VERSION: list[tuple[Patch, Object, Object]] = [
    (
        WriteRole(ref=ref("x"), exec_rule=1, exec_names=("j-worker-0", "j-worker-1"), note=NOTE),
        RULES,
        {
            "rules": [
                RULES["rules"][0],
                {"resources": ["pods/exec"], "resourceNames": ["j-worker-0", "j-worker-1"]},
            ]
        },
    ),
    (
        Fill(ref=ref("x"), before=3, after=4, note=NOTE),
        SIZED,
        {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}},
    ),
    (
        RollBack(ref=ref("x"), before=3, after=2, note=NOTE),
        SIZED,
        {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}},
    ),
    (EndLauncher(ref=ref("x"), note=NOTE), {"spec": {}}, {"spec": {"activeDeadlineSeconds": 1}}),
]
BY_UID: list[tuple[Patch, Object, Object]] = [
    (
        RefreshLauncher(ref=ref("x"), text="d", tries=Tries(count=1, at=0.0, uid="u")),
        {},
        {"metadata": {"annotations": {names.REFRESHED: "d"}}},
    ),
    (
        ReleaseWorker(ref=ref("x"), key=EVICTION_MARK, text="d", note=NOTE),
        {},
        {"metadata": {"annotations": {EVICTION_MARK: "d"}}},
    ),
    (
        TellUser(ref=ref("x"), text="d", notes=(NOTE,)),
        {},
        {"metadata": {"annotations": {names.STATUS: "d"}}},
    ),
    (
        TellUser(ref=ref("x"), text="d", marks={names.PHASE: "Scaling", names.CHANGE: ""}),
        {},
        {"metadata": {"annotations": {names.STATUS: "d", names.PHASE: "Scaling"}}},
    ),
    (
        TellUser(ref=ref("x"), text="d", marks={names.PHASE: "Scaling"}, only_marks=True),
        {},
        {"metadata": {"annotations": {names.PHASE: "Scaling"}}},
    ),
    (
        WriteSelector(ref=ref("x"), selector="a=b"),
        COUNTED,
        {"status": {"replicaStatuses": {"Worker": {"active": 3, "selector": "a=b"}}}},
    ),
    (
        ChangeAutoscaler(ref=ref("x"), spec={"maxReplicas": 4}, note=NOTE),
        {"spec": {"minReplicas": 1}},
        {"spec": {"minReplicas": 1, "maxReplicas": 4}, "metadata": DIGEST},
    ),
]
OF_ROOMS = [(*row, row[0].at_version) for words in rooms() for row in words.patches]
PATCHES = (
    [(*found, True) for found in AT_VERSION] + [(*found, False) for found in BY_UID] + OF_ROOMS
)


def kind(value: object) -> str:
    return type(value).__name__ if isinstance(value, Patch) else ""


@pytest.mark.parametrize(("action", "before", "after", "at_version"), PATCHES, ids=kind)
async def test_a_patch_is_taken_only_by_the_object_that_was_decided_on(
    api: TinyApi,
    client: ApiWriter,
    taken: Taken,
    action: Patch,
    before: Object,
    after: Object,
    at_version: bool,
) -> None:
    writer = writer_of(client, taken, Everything())
    path = action.resource.path("default", "x", action.subresource)
    for uid, version, fits in [
        ("uid-of-x", "7", True),
        ("uid-of-x", "8", not at_version),
        ("another", "9", False),
    ]:
        api.objects[path] = {
            "metadata": {"name": "x", "uid": uid, "resourceVersion": version},
            **before,
        }
        with contextlib.nullcontext() if fits else pytest.raises((errors.Conflict, errors.Invalid)):
            await writer.perform(job(3), action)
        found = api.objects[path]
        assert found == merged(found, merged(before, after) if fits else before)


def test_each_patch_shows_its_precondition() -> None:
    assert {type(action) for action, *_ in PATCHES} == {*kinds(Patch)}


@pytest.mark.parametrize(
    ("action", "there"),
    [
        pytest.param(
            AT_VERSION[0][0], {"rules": RULES["rules"][::-1]}, id="another rule of the Role"
        ),
        pytest.param(
            AT_VERSION[1][0],
            {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 5}}}},
            id="another size",
        ),
    ],
)
async def test_what_is_not_as_it_was_decided_on_stays(
    api: TinyApi, writer: Writer, action: Patch, there: Object
) -> None:
    path = action.resource.path("default", "x")
    is_there(api, path)
    api.objects[path] |= there
    with pytest.raises(errors.Invalid):
        await writer.perform(job(3), action)


MADE = MakeAutoscaler(job=ref("j"), spec={"maxReplicas": 4}, note=NOTE)


@pytest.mark.parametrize("action", [*(action for action, *_ in PATCHES), MADE], ids=kind)
async def test_what_admission_changes_back_is_an_error_and_so_not_written_again_at_once(
    proxy: FaultProxy, writer: Writer, taken: Taken, action: Patch | MakeAutoscaler
) -> None:
    with proxy.inject(Answered(body=changed()), on=writes), pytest.raises(Altered):
        await writer.perform(job(3), action)
    assert taken.versions() == [8]


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        pytest.param(
            MADE,
            {"metadata": {**DIGEST, "resourceVersion": "8"}, "spec": {"more": 1}},
            id="defaults of a spec",
        ),
        pytest.param(
            TellUser(ref=ref("j"), text=""), changed(), id="an annotation that is removed"
        ),
    ],
)
async def test_what_the_api_server_adds_is_no_error(
    proxy: FaultProxy,
    writer: Writer,
    taken: Taken,
    action: MakeAutoscaler | TellUser,
    answer: Object,
) -> None:
    with proxy.inject(Answered(body=answer), on=writes):
        await writer.perform(job(3), action)
    assert taken.versions() == [8]


async def test_a_users_hpa_of_our_name_is_not_overwritten(api: TinyApi, writer: Writer) -> None:
    """One that scales something else is not among those of the job, so only the API server knows of it."""
    path = AUTOSCALERS.path("default", "mpijob-j")
    api.objects[path] = {
        "metadata": {"name": "mpijob-j", "uid": "own"},
        "spec": {"scaleTargetRef": {"name": "web"}},
    }
    before = api.objects.text(path)
    with pytest.raises(errors.AlreadyExists):
        await writer.perform(job(3), MADE)
    assert api.objects.text(path) == before


async def test_what_is_made_is_the_jobs(api: TinyApi, writer: Writer) -> None:
    spec: Object = {"minMember": 3, "queue": "team"}
    counted = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    for resource, expected in ((VOLCANO_POD_GROUPS, spec), (KUBERNETES_POD_GROUPS, counted)):
        made = MakePodGroup(resource=resource, job=ref("j"), min_member=3, gang=VOLCANO, note=NOTE)
        await writer.perform(job(3), made)
        found = api.objects[resource.path("default", "j")]
        assert (found["kind"], found["spec"]) == ("PodGroup", expected)
        assert found["metadata"]["ownerReferences"] == OWNED["ownerReferences"]
        assert found["metadata"].get("annotations") == (
            {"a": "b"} if resource is VOLCANO_POD_GROUPS else None
        )
        with pytest.raises(errors.AlreadyExists):
            await writer.perform(job(3), made)
    await writer.perform(job(3), MADE)
    found = api.objects[AUTOSCALERS.path("default", "mpijob-j")]
    assert (found["apiVersion"], found["spec"]) == ("autoscaling/v2", {"maxReplicas": 4})
    assert (
        merged(
            found["metadata"],
            {**OWNED, **DIGEST, "labels": {names.LABEL_MANAGED_BY: names.PROGRAM}},
        )
        == (found["metadata"])
    )


VIEW = job(known=False)
LATER = 120.0  # seconds; longer than any wait between two tries


def touch(view: JobView, *, at: float = NOW) -> RefreshLauncher:
    [found] = [
        action for action in decide(view, now=at).actions if isinstance(action, RefreshLauncher)
    ]
    return found


@pytest.mark.parametrize("status", [400, 403, 422, 500, 504])
async def test_refused_touches_in_a_row_are_counted_and_forgotten_with_the_first_success(
    proxy: FaultProxy, writer: Writer, status: int
) -> None:
    view: JobView = VIEW
    for count in (1, 2):
        reason = "Timeout" if status == 504 else "a policy says no"
        with proxy.inject(Answer(status=status, reason=reason), on=writes):
            await writer.perform(view, touch(view, at=NOW + LATER * count))
        view = writer.informed(VIEW)
        assert view.launcher.refused.tries.count == count
    # An API server that gives up may also close the connection.
    with proxy.inject(Reset(), on=writes), pytest.raises(errors.Unreachable):
        await writer.perform(view, touch(view, at=NOW + LATER * 3))
    assert writer.informed(VIEW) == view
    last = touch(view, at=NOW + LATER * 4)
    shown = {"resourceVersion": "8", "annotations": {names.REFRESHED: last.text}}
    with proxy.inject(Answered(body={"kind": "Pod", "metadata": shown}), on=writes):
        await writer.perform(view, last)
    assert writer.informed(VIEW) == VIEW


async def test_a_second_decision_hears_of_each_touch_that_was_taken(
    proxy: FaultProxy, writer: Writer
) -> None:
    due = touch(VIEW)
    shown = {"resourceVersion": "8", "annotations": {names.REFRESHED: due.text}}
    with mock.patch.object(writer.recheck, "touched") as heard:
        with proxy.inject(Answer(status=403), on=writes):
            await writer.perform(VIEW, due)
        heard.assert_not_called()
        with proxy.inject(Answered(body={"kind": "Pod", "metadata": shown}), on=writes):
            await writer.perform(VIEW, due)
    heard.assert_called_once_with(VIEW, "8")


async def test_a_refusal_is_of_one_launcher_and_one_change_of_the_list_and_ends_with_its_job(
    proxy: FaultProxy, writer: Writer
) -> None:
    with proxy.inject(Answer(status=403), on=writes):
        await writer.perform(VIEW, touch(VIEW))
    successor = but(VIEW, launcher=but(launcher(), ref=ref("j-launcher", uid="another")))
    assert writer.informed(successor) == successor
    # Else the next change would be said to be refused before it was tried.
    after = job(known=False, config=config(pods(0, 1)))
    assert writer.informed(after) == after
    assert writer.informed(VIEW) != VIEW
    writer.forget((VIEW.namespace, VIEW.name))
    assert writer.informed(VIEW) == VIEW


@pytest.mark.parametrize(
    ("status", "error"), [(404, errors.NotFound), (409, errors.Conflict), (429, errors.Throttled)]
)
async def test_what_passes_by_itself_is_no_refusal(
    proxy: FaultProxy, writer: Writer, status: int, error: type[errors.ApiError]
) -> None:
    with proxy.inject(Answer(status=status), on=writes), pytest.raises(error):
        await writer.perform(VIEW, touch(VIEW))
    assert writer.informed(VIEW) == VIEW


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(403, "Forbidden"), (409, "Conflict"), (422, "Invalid"), (500, "500"), (405, "405")],
)
async def test_the_text_of_a_refusal_makes_no_series(
    proxy: FaultProxy, client: ApiWriter, status: int, outcome: str
) -> None:
    """An admission webhook may name the object in its reason."""
    metrics = Metrics(CollectorRegistry())
    leader_writer = LeaderWriter(client, time_left=lambda: math.inf, metrics=metrics)
    for number in range(3):
        refusal = Answer(status=status, reason=f"policy says no to train-{number}")
        with proxy.inject(refusal, on=writes), contextlib.suppress(errors.ApiError):
            await leader_writer.patch_object(PODS, namespace="n", name=f"train-{number}", body={})
    [family] = metrics.writes.collect()
    counted = {
        sample.labels["outcome"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    assert counted == {outcome: 3}
