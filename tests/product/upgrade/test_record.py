"""What was there before is recorded and put back, and traces are taken off, while others write, too."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.install.changes import Outcome
from mpijob_elastic.install.objects import Identity
from mpijob_elastic.install.refusal import ATTEMPTS, Refused
from mpijob_elastic.install.server import Server
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES, Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Meanwhile, Request
from tests.faults.proxy import FaultProxy
from upgrade import cleanup, namespaces, record
from upgrade.record import Record
from upgrade.restore import restore

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ours"}}
RECORD = Record(
    taken_at="2026-01-01T00:00:00+00:00", version="0.1.0", crd={"spec": {"x": [1, True, None]}}, objects=(NAMESPACE,)
)


def sent(method: str) -> Callable[[Request], bool]:
    return lambda request: request.method == method


creations, puts, patches = sent("POST"), sent("PUT"), sent("PATCH")


def test_there_and_back_and_the_same_again() -> None:
    assert record.unpack(record.pack(RECORD)) == RECORD
    assert record.pack(RECORD) == record.pack(RECORD)


def test_objects_are_found_by_what_they_are() -> None:
    assert RECORD.find(Identity(api_version="v1", kind="Namespace", namespace="", name="ours")) == NAMESPACE
    assert RECORD.find(Identity(api_version="v1", kind="Namespace", namespace="", name="other")) is None


@pytest.mark.parametrize("key", [record.KEY, record.CHECKSUM])
@pytest.mark.parametrize("value", [None, "", "!", "of another record"])
def test_damage_is_noticed(key: str, value: str | None) -> None:
    if value == "of another record":
        value = record.pack(Record(taken_at="", version="", crd={}))[key]
    data = {name: text for name, text in (record.pack(RECORD) | {key: value}).items() if text is not None}
    with pytest.raises(Refused, match="changed or damaged"):
        record.unpack(data)


def test_what_no_secret_holds_is_refused() -> None:
    noise = random.Random(0).randbytes(2**21).hex()
    with pytest.raises(Refused, match="a Secret holds"):
        record.pack(Record(taken_at="", version="", crd={"noise": noise}))


async def test_a_namespace_that_ends_would_take_it_along(api: TinyApi, client: ApiWriter, applier: Applier) -> None:
    await api.create(NAMESPACES.path(), names.NAMESPACE)
    await api.update(NAMESPACES.path(), names.NAMESPACE, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    before = dict(api.objects)
    with pytest.raises(Refused, match="still ending"):
        await record.keep(client, applier, [], {})
    assert api.objects == before


async def test_a_namespace_that_somebody_else_makes_will_do(proxy: FaultProxy, client: ApiWriter) -> None:
    with proxy.inject(Answer(status=409, reason="AlreadyExists"), on=creations):
        await namespaces.ensure(client, names.NAMESPACE, namespaces.FOR_RECORD, labels=record.LABELS)
    assert proxy.count(creations) == 1


DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")
SERVED = {(DEPLOYMENTS.api_version, DEPLOYMENTS.kind): DEPLOYMENTS}
COLLECTION = DEPLOYMENTS.path("n")
OLD, NEW = {"image": "old"}, {"image": "new"}


@pytest.fixture
def applier(client: ApiWriter) -> Applier:
    return Applier(client=client, server=Server(version="v1.34.4", minor=34, served=SERVED))


async def deployed(api: TinyApi) -> dict[str, Any]:
    """A Deployment as it was before it was changed."""
    typed = {"apiVersion": DEPLOYMENTS.api_version, "kind": DEPLOYMENTS.kind}
    before = await api.create(COLLECTION, "webhook", **typed, spec=OLD)
    await api.update(COLLECTION, "webhook", spec=NEW)
    return before


def status_written(api: TinyApi) -> Meanwhile:
    async def write_status() -> None:
        await api.update(COLLECTION, "webhook", status={"at": api.revision})

    return Meanwhile(callback=write_status)


async def test_a_status_written_between_does_no_harm(api: TinyApi, proxy: FaultProxy, applier: Applier) -> None:
    before = await deployed(api)
    with proxy.inject(status_written(api), on=puts, times=1):
        change = await restore(applier, before)
    assert (change.outcome, proxy.count(puts)) == (Outcome.CONFIGURED, 2)
    assert api.objects[f"{COLLECTION}/webhook"]["spec"] == OLD


async def test_who_makes_it_anew_between_keeps_it(api: TinyApi, proxy: FaultProxy, applier: Applier) -> None:
    before = await deployed(api)

    async def make_anew() -> None:
        await api.delete(COLLECTION, "webhook")
        await api.create(COLLECTION, "webhook", spec=NEW)

    with proxy.inject(Meanwhile(callback=make_anew), on=puts, times=1):
        change = await restore(applier, before)
    assert change.outcome is Outcome.SKIPPED
    assert api.objects[f"{COLLECTION}/webhook"]["spec"] == NEW


async def test_whoever_writes_all_the_time_is_complained_of(api: TinyApi, proxy: FaultProxy, applier: Applier) -> None:
    before = await deployed(api)
    somebody = "somebody else 5 times"
    with proxy.inject(status_written(api), on=puts), pytest.raises(Refused, match=somebody):
        await restore(applier, before)
    assert proxy.count(puts) == ATTEMPTS


SPEC = {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}


async def shown(api: TinyApi) -> None:
    """A job with our annotation, as a list over all namespaces has it."""
    await api.create(MPI_JOBS.path(), "train", spec=SPEC)
    await api.update(MPI_JOBS.path(), "train", metadata={"namespace": "ml", "annotations": {names.STATUS: "waiting"}})


async def test_what_changed_meanwhile_is_looked_at_again(api: TinyApi, proxy: FaultProxy, client: ApiWriter) -> None:
    await shown(api)
    with (
        proxy.inject(Answer(status=409, reason="Conflict"), on=patches, times=1),
        proxy.inject(Answer(status=404, reason="NotFound"), on=patches),
    ):
        await cleanup.sweep(client, say=lambda _: None)
    assert proxy.count(patches) == 2


async def test_whoever_writes_all_the_time_is_given_way_to(api: TinyApi, proxy: FaultProxy, client: ApiWriter) -> None:
    await shown(api)
    with proxy.inject(Answer(status=422, reason="Invalid"), on=patches):
        await cleanup.sweep(client, say=lambda _: None)
    assert proxy.count(patches) == ATTEMPTS
