"""Traces taken off jobs that others write to at the same time."""

from mpijob_elastic import names
from mpijob_elastic.install.refusal import ATTEMPTS
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from upgrade import cleanup

SPEC = {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}


def patches(request: Request) -> bool:
    return request.method == "PATCH"


async def shown(api: TinyApi) -> None:
    """A job with our annotation, as a list over all namespaces has it."""
    await api.create(MPI_JOBS.path(), "train", spec=SPEC)
    await api.update(MPI_JOBS.path(), "train", metadata={"namespace": "ml", "annotations": {names.STATUS: "waiting"}})


async def test_what_somebody_else_changed_at_that_moment_is_looked_at_again(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
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
