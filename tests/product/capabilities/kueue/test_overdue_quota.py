"""Quota that Kueue wants back comes back within the drain-timeout, whatever the tenant does to keep it."""

from collections.abc import Callable

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.kube.resources import CONFIG_MAPS, PODS
from mpijob_elastic.model.json_parts import timestamp
from tests.doubles.api import Object
from tests.queued_cluster import NAMESPACE, Cluster, holds, running
from tests.queued_histories import ROUND, History

EXTRA = "j0-worker-1"
# Rounds of a drain-timeout of 60 s, and those that the writes before and after it take.
OVER, MORE = int(60 / ROUND), 6


class Stubborn(Cluster):
    """Keeps some pods by a finalizer, by their path."""

    kept: frozenset[str] = frozenset()

    def remove(self, path: str) -> Object:
        """Remove an object; where a finalizer keeps a pod, it only ends."""
        if path in self.kept:
            ended = {"status": {"phase": "Failed"}}
            return self.put(path, {**self.objects[path], **ended})
        return super().remove(path)


class Stubbornness(History):
    KIND = Stubborn


async def trains() -> tuple[Stubbornness, Stubborn]:
    """A job of one worker at least trains with an extra."""
    history = Stubbornness(jobs=1, quota=3)
    cluster = history.cluster
    assert isinstance(cluster, Stubborn)
    for _ in range(12):
        await history._round()
    assert cluster.listed("j0") == {"j0-worker-0", EXTRA}
    return history, cluster


def is_reserved(cluster: Cluster) -> bool:
    found = cluster.get(WORKLOADS, EXTRA)
    return found is not None and holds(found, "QuotaReserved")


async def rounds_until(history: Stubbornness, holds: Callable[[], bool], *, most: int) -> int:
    for number in range(most):
        if holds():
            return number
        await history._round()
    raise AssertionError(f"never within {most} rounds: {history.cluster.writes[-6:]}")


def config_cannot_change(cluster: Stubborn) -> None:
    cluster.frozen = {CONFIG_MAPS.path(NAMESPACE, "j0-config")}


def launcher_cannot_be_touched(cluster: Stubborn) -> None:
    cluster.frozen = {PODS.path(NAMESPACE, "j0-launcher")}


@pytest.mark.parametrize("does", [config_cannot_change, launcher_cannot_be_touched])
async def test_an_extra_goes_although_its_launcher_cannot_be_told(
    does: Callable[[Stubborn], None],
) -> None:
    history, cluster = await trains()
    does(cluster)
    extra = cluster.get(WORKLOADS, EXTRA)
    assert extra is not None
    cluster.quota = 2  # so that Kueue does not grant it again at once
    cluster.judge(extra, Evicted=True)
    taken = await rounds_until(history, lambda: not is_reserved(cluster), most=OVER + MORE)
    assert taken >= OVER
    assert history.wrong == []
    assert running(cluster.get(PODS, "j0-launcher")), "the others train on"
    assert running(cluster.get(PODS, "j0-worker-0"))


@pytest.mark.parametrize("every", [1, 2, 4])
async def test_an_extra_goes_although_the_host_list_is_put_back_all_day(every: int) -> None:
    """Each edit drops our memory as well, so that nobody can count the edits."""
    history, cluster = await trains()
    extra, first = cluster.get(WORKLOADS, EXTRA), cluster.get(CONFIG_MAPS, "j0-config")
    assert extra is not None
    assert first is not None
    script = f"{first['data'][names.KEY_DISCOVER_HOSTS]}#\n"
    cluster.quota = 2
    cluster.judge(extra, Evicted=True)
    for number in range(3 * OVER):
        if not is_reserved(cluster):
            break
        if number % every == 0:
            put_back(cluster, script)
        await history._round()
    assert not is_reserved(cluster)
    assert running(cluster.get(PODS, "j0-launcher")), "the others train on"


def put_back(cluster: Cluster, script: str) -> None:
    """Write discover_hosts.sh as a tenant may."""
    config = cluster.get(CONFIG_MAPS, "j0-config")
    assert config is not None
    written: Object = {"f:data": {f"f:{names.KEY_DISCOVER_HOSTS}": {}}}
    manager = {"manager": "tenant", "time": timestamp(cluster.now), "fieldsV1": written}
    cluster.change(
        CONFIG_MAPS,
        config,
        data={names.KEY_DISCOVER_HOSTS: script},
        metadata={"annotations": {names.MEMORY: None}, "managedFields": [manager]},
    )


async def test_an_extra_that_leaves_in_order_is_gone_sooner() -> None:
    history, cluster = await trains()
    extra = cluster.get(WORKLOADS, EXTRA)
    assert extra is not None
    cluster.quota = 2
    cluster.judge(extra, Evicted=True)
    assert await rounds_until(history, lambda: not is_reserved(cluster), most=OVER) < OVER


async def test_an_extra_that_has_ended_holds_nothing_although_a_finalizer_keeps_its_pod() -> None:
    history, cluster = await trains()
    extra = cluster.get(WORKLOADS, EXTRA)
    assert extra is not None
    cluster.kept = frozenset({PODS.path(NAMESPACE, EXTRA)})
    cluster.quota = 2
    cluster.judge(extra, Evicted=True)
    await rounds_until(history, lambda: not is_reserved(cluster), most=OVER)
    pod = cluster.get(PODS, EXTRA)
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"


async def test_all_quota_comes_back_although_the_config_map_cannot_change() -> None:
    history, cluster = await trains()
    config_cannot_change(cluster)
    base = cluster.get(WORKLOADS, "j0-launcher")
    assert base is not None
    cluster.quota = 0
    cluster.judge(base, Evicted=True)

    def is_free() -> bool:
        return not any(holds(one, "QuotaReserved") for one in cluster.all(WORKLOADS))

    assert await rounds_until(history, is_free, most=OVER + MORE) >= OVER
    assert history.wrong == []
