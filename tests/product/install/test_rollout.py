"""Waiting for what was applied, also while the API server restarts."""

import pytest

from mpijob_elastic.install import rollout
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Fault, Reset
from tests.faults.proxy import FaultProxy

CONFIG_MAPS = "/api/v1/namespaces/n/configmaps"


@pytest.mark.parametrize(
    ("fault", "said"), [(Reset(), "GET http"), (Answer(status=503), "503"), (Answer(status=500), "500")]
)
async def test_trouble_of_the_api_server_is_waited_for(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, fault: Fault, said: str
) -> None:
    await api.create(CONFIG_MAPS, "a")
    told: list[str] = []

    async def missing() -> str:
        await client.get(f"{CONFIG_MAPS}/a")
        return ""

    with proxy.inject(fault, times=3):
        assert await rollout.until(missing, seconds=60, say=lambda news: told.append(str(news))) == ""
    assert told
    assert all(one.startswith(said) for one in told)


async def test_what_does_not_pass_ends_the_wait(client: ApiWriter) -> None:
    async def missing() -> str:
        await client.get(f"{CONFIG_MAPS}/a")
        return ""

    with pytest.raises(errors.NotFound):
        await rollout.until(missing, seconds=60, say=lambda _: None)


async def test_trouble_that_does_not_pass_is_what_is_missing_in_the_end(proxy: FaultProxy, client: ApiWriter) -> None:
    async def missing() -> str:
        await client.get(f"{CONFIG_MAPS}/a")
        return ""

    with proxy.inject(Answer(status=500)):
        assert "injected" in await rollout.until(missing, seconds=0, say=lambda _: None)
