"""The faults that other tests rely upon do what they say."""

import pytest

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Call, Delay, Request, writes
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually

PODS = "/api/v1/namespaces/n/pods"


async def create(client: ApiWriter, name: str, *, seconds: float = 10) -> None:
    await client.create_object(
        PODS, body={"metadata": {"name": name}}, limits=Timeouts(attempt=seconds)
    )


@pytest.mark.parametrize(("after", "done"), [(False, ["a"]), (True, ["a", "b"])])
async def test_a_client_can_be_killed_at_its_second_write_before_or_after_that_is_done(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, done: list[str], *, after: bool
) -> None:
    killed: list[Request] = []

    async def kill(request: Request) -> None:
        killed.append(request)

    with proxy.inject(
        Call(callback=kill, after=after), on=lambda request: request.write_number == 2
    ):
        await create(client, "a")
        await client.get(f"{PODS}/a")
        with pytest.raises(errors.Unreachable):
            await create(client, "b")
    assert [request.number for request in killed] == [3]
    assert [path.rsplit("/", 1)[1] for path in api.objects] == done


async def test_a_write_that_its_sender_gave_up_still_arrives(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    with proxy.inject(Delay(seconds=0.2), on=writes):
        with pytest.raises(errors.Unreachable):
            await create(client, "late", seconds=0.05)
        assert not api.objects
        await eventually(lambda: api.objects)
