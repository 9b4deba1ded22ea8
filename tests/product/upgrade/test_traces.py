import copy
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from lab.operator import objects
from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.capabilities import POD_MARKS
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.install import ATTEMPTS
from mpijob_elastic.kube.errors import KubeError
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import elastic_script, kubexec, mpijob
from mpijob_elastic.model.memory import Memory, render_memory
from mpijob_elastic.observe import facts_config, facts_pod
from tests.builders import KUBEXEC
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from tests.product.upgrade.definitions import applied
from upgrade import traces
from upgrade.traces import Traces

SCRIPT = names.discover_hosts(["train-worker-0"], slots=1)
EMPTY = names.discover_hosts([], slots=1)


def job(annotations: dict[str, str] | None = None, **fields: Any) -> Object:
    return {**objects.mpi_job(namespace="ml", replicas=1, annotations=annotations), **fields}


def config_map(*, script: str | None = SCRIPT, managed: bool = True, owner: bool = True) -> Object:
    made = objects.stored(objects.config_map(job()))
    memory = {names.MEMORY: render_memory(Memory())} if managed else {}
    made["metadata"] |= {"annotations": memory | {"theirs": "1"}} | (
        {} if owner else {"ownerReferences": []}
    )
    made["data"] |= {names.KEY_DISCOVER_HOSTS: script} if script is not None else {}
    return made


def launcher(*, mounts: bool = True, phase: str = "Running", refreshed: bool = True) -> Object:
    made = objects.stored(objects.launcher(job()), phase=phase)
    made["metadata"]["annotations"] = {names.REFRESHED: "x"} if refreshed else {}
    if mounts:
        objects.mounted(made).append(
            {"key": names.KEY_DISCOVER_HOSTS, "path": names.KEY_DISCOVER_HOSTS}
        )
    return made


def worker(index: int, *, phase: str = "Running") -> Object:
    return objects.stored(objects.worker(job(), index), phase=phase)


def find(
    *, jobs: Iterable[Object] = (), config_maps: Iterable[Object] = (), pods: Iterable[Object] = ()
) -> Traces:
    return traces.find(
        jobs=[mpijob.decode(msgspec.json.encode(one)) for one in jobs],
        configs=[facts_config.read_config(msgspec.json.encode(one)) for one in config_maps],
        pods=[facts_pod.read(msgspec.json.encode(one), marks=POD_MARKS) for one in pods],
    )


def without(config: Object) -> Object:
    [removal] = find(config_maps=[config]).removals
    return applied(copy.deepcopy(config), removal.patch)


def driven(config: Object, text: str = elastic_script.TEXT) -> Object:
    """The ConfigMap of a job that names elastic.sh."""
    return {**config, "data": {**config["data"], names.KEY_ELASTIC: text}}


@pytest.mark.parametrize(
    "config",
    [driven(config_map()), driven(config_map(managed=False))],
    ids=["elastic", "switched off, so that nobody remembers anything"],
)
def test_the_driver_goes_with_the_list(config: Object) -> None:
    assert sorted(without(config)["data"]) == ["hostfile", "kubexec.sh"]
    assert find(config_maps=[config], pods=[launcher(refreshed=False)]).removals == ()


def with_hydra(config: Object) -> Object:
    """The ConfigMap of a plain job."""
    return {**config, "data": {**config["data"], names.KEY_HYDRA_HOSTFILE: "train-worker-0:1\n"}}


@pytest.mark.parametrize("managed", [True, False])
def test_a_driver_of_another_version_goes(managed: bool) -> None:
    config = driven(config_map(managed=managed), "other")
    assert without(config)["data"] == objects.config_map(job())["data"]


def test_the_hostfile_of_a_plain_job_goes_once_no_launcher_may_read_it() -> None:
    config = with_hydra(config_map(script=EMPTY, managed=False))
    assert without(config)["data"] == objects.config_map(job())["data"]
    found = find(config_maps=[config], pods=[launcher(mounts=False, refreshed=False)])
    [removal] = found.removals
    data = applied(copy.deepcopy(config), removal.patch)["data"]
    assert data == with_hydra(objects.config_map(job()))["data"]
    [said] = found.lines()
    assert said.startswith("ml/train: hostfile.hydra stays")


def test_a_list_that_another_wrote_beside_the_hostfile_stays() -> None:
    config = with_hydra(config_map(managed=False))
    assert without(config)["data"][names.KEY_DISCOVER_HOSTS] == SCRIPT
    assert names.KEY_HYDRA_HOSTFILE not in without(config)["data"]


@pytest.mark.parametrize(
    "config", [config_map(), config_map(script=EMPTY, managed=False)], ids=["our", "an empty"]
)
def test_key_and_memory_go_from_a_job_without_a_launcher(config: Object) -> None:
    after = without(config)
    assert after["data"] == objects.config_map(job())["data"]
    assert after["metadata"]["annotations"] == {"theirs": "1"}


def test_kubexec_becomes_the_operators_again() -> None:
    config = config_map()
    config["data"][names.KEY_KUBEXEC] = kubexec.mapped(KUBEXEC)
    assert without(config)["data"][names.KEY_KUBEXEC] == KUBEXEC


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(config_map(managed=False), id="a list without our memory"),
        pytest.param(config_map(owner=False), id="of no job"),
        pytest.param(config_map(script=None, managed=False), id="no list"),
    ],
)
def test_what_others_wrote_stays(config: Object) -> None:
    assert find(config_maps=[config]) == Traces()


@pytest.mark.parametrize(
    ("pod", "kept", "removed"),
    [
        pytest.param(launcher(refreshed=False), ("ml/train",), set(), id="mounts it and lives"),
        pytest.param(
            launcher(mounts=False), (), {"train-launcher", "train-config"}, id="does not mount it"
        ),
        pytest.param(
            launcher(phase="Succeeded"), (), {"train-launcher", "train-config"}, id="has succeeded"
        ),
    ],
)
def test_a_live_launcher_keeps_what_it_mounts(
    pod: Object, kept: tuple[str, ...], removed: set[str]
) -> None:
    found = find(config_maps=[config_map()], pods=[pod])
    assert (found.kept, {one.ref.name for one in found.removals}) == (kept, removed)


@pytest.mark.parametrize("pods", [[], [launcher(refreshed=False)]])
def test_the_key_of_a_job_that_was_handed_over_is_anothers(pods: list[Object]) -> None:
    found = find(
        jobs=[job({names.STATUS: "HandedOver: to another"})], config_maps=[config_map()], pods=pods
    )
    first, last = found.removals
    assert applied(copy.deepcopy(config_map()), first.patch)["data"] == config_map()["data"]
    assert str(first).endswith(f": {names.MEMORY}, {names.HISTORY}")
    # What tells that it was goes last, should this be interrupted.
    assert (last.resource.kind, found.kept) == ("MPIJob", ())


def test_our_annotations_go_from_this_very_object_and_users_stay() -> None:
    one = job(
        {
            names.STATUS: "waiting",
            names.PHASE: "Scaling",
            names.CHANGE: "{}",
            names.SCALED_BY: "u",
            names.MIN_REPLICAS: "1",
        }
    )
    [removal] = find(jobs=[one]).removals
    assert applied(copy.deepcopy(one), removal.patch)["metadata"]["annotations"] == {
        names.MIN_REPLICAS: "1"
    }
    gone = (names.STATUS, names.PHASE, names.CHANGE, names.SCALED_BY)
    assert str(removal) == f"MPIJob ml/train: {', '.join(gone)}"
    assert {"op": "test", "path": "/metadata/uid", "value": one["metadata"]["uid"]} in removal.patch


@pytest.mark.parametrize(
    ("pod", "mark"),
    [
        pytest.param(launcher(), {names.REFRESHED: "x"}, id="of a touched launcher"),
        pytest.param(worker(0), {EVICTION_MARK: "requested y"}, id="of an evicted worker"),
    ],
)
def test_our_annotations_go_from_a_pod(pod: Object, mark: dict[str, str]) -> None:
    one = copy.deepcopy(pod)
    one["metadata"]["annotations"] = mark | {"theirs": "1"}
    [removal] = find(pods=[one]).removals
    assert applied(one, removal.patch)["metadata"]["annotations"] == {"theirs": "1"}


def test_our_selector_goes_from_the_status() -> None:
    one = job(
        status={
            "replicaStatuses": {"Worker": {"active": 1, "selector": names.worker_selector("train")}}
        }
    )
    [removal] = find(jobs=[one]).removals
    assert removal.path.endswith("/namespaces/ml/mpijobs/train/status")
    assert applied(copy.deepcopy(one), removal.patch)["status"] == {
        "replicaStatuses": {"Worker": {"active": 1}}
    }


THEIRS = {"replicaStatuses": {"Worker": {"active": 1, "selector": "theirs=1"}}}


@pytest.mark.parametrize("status", [THEIRS, None, {"conditions": None, "replicaStatuses": None}])
def test_any_other_status_stays(status: Object | None) -> None:
    assert find(jobs=[job(status=status)]).removals == ()


def test_surplus_are_running_workers_beyond_the_size() -> None:
    pods = [launcher(), worker(0), worker(1), worker(2, phase="Failed")]
    assert find(jobs=[job()], pods=pods).surplus == ("ml/train-worker-1",)
    assert find(pods=pods).surplus == ()


def patches(request: Request) -> bool:
    return request.method == "PATCH"


SPEC = {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}


async def shown(api: TinyApi) -> None:
    """A job with our annotation, as a list over all namespaces has it."""
    await api.create(MPI_JOBS.path(), "train", spec=SPEC)
    await api.update(
        MPI_JOBS.path(),
        "train",
        metadata={"namespace": "ml", "annotations": {names.STATUS: "waiting"}},
    )


async def test_what_changed_meanwhile_is_looked_at_again(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await shown(api)
    with (
        proxy.inject(Answer(status=409, reason="Conflict"), on=patches, times=1),
        proxy.inject(Answer(status=404, reason="NotFound"), on=patches),
    ):
        assert await traces.sweep(client, say=lambda _: None) == []
    assert proxy.count(patches) == 2


async def test_whoever_writes_all_the_time_is_given_way_to(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await shown(api)
    with proxy.inject(Answer(status=422, reason="Invalid"), on=patches):
        [left] = await traces.sweep(client, say=lambda _: None)
    assert proxy.count(patches) == ATTEMPTS
    assert left.startswith(f"Not removed from MPIJob ml/train: {names.STATUS}: 422 Invalid")


@pytest.mark.parametrize("status", [403, 422, 500])
async def test_a_refusal_holds_up_no_other_object_and_is_told_with_its_reason(
    api: TinyApi, client: ApiWriter, status: int
) -> None:
    """Admission policies answer with 403 or 422, and a webhook in trouble is a 500."""

    def forbidding(sent: Sent) -> None:
        if sent.method == "PATCH" and sent.path.endswith("/b"):
            raise refused(status, "Denied", "the platform team forbids it")

    for name in ("a", "b", "c"):
        await api.create(
            MPI_JOBS.path("ml"), name, spec=SPEC, metadata={"annotations": {names.STATUS: "x"}}
        )
    api.hook = forbidding
    removed: list[str] = []
    left = await traces.sweep(client, say=lambda news: removed.append(str(news)))
    assert left == [
        f"Not removed from MPIJob ml/b: {names.STATUS}: {status} Denied: the platform team forbids it"
    ]
    assert [line.split(":")[0] for line in removed] == [
        "removed from MPIJob ml/a",
        "removed from MPIJob ml/c",
    ]


@pytest.mark.parametrize("is_read", [False, True])
async def test_what_stays_is_said_once(
    client: ApiWriter, monkeypatch: pytest.MonkeyPatch, *, is_read: bool
) -> None:
    """`uninstall` says it before it asks."""
    found = traces.Traces(kept=("default/late",))

    async def look(_: ApiWriter) -> traces.Traces:
        return found

    monkeypatch.setattr(traces, "look", look)
    news: list[str] = []
    said = found.lines() if is_read else []
    await traces.sweep(client, say=lambda line: news.append(str(line)), said=said)
    assert [*said, *news] == found.lines()


async def test_what_cannot_be_looked_for_is_told(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await shown(api)
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=lambda one: one.method == "GET"):
        [left] = await traces.sweep(client, say=lambda _: None)
    assert left.startswith("Our annotations and keys on jobs were not removed: 403 Forbidden")


async def test_a_server_that_is_away_ends_it(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await shown(api)
    with (
        proxy.inject(Answer(status=503, reason="ServiceUnavailable"), on=patches),
        pytest.raises(KubeError),
    ):
        await traces.sweep(client, say=lambda _: None)
