"""Looks, one after the other and against one another, on an API server in memory."""

import asyncio
import re

import pytest

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from tests.doubles.api import Object
from tests.product.webhook.certificates.replicas import (
    CONFIGURATIONS,
    SECRET,
    Replica,
    World,
    advance,
    configuration,
    look,
)
from webhook.certificates import pairs
from webhook.certificates.messages import Timing


@pytest.fixture
def world() -> World:
    return World()


def settle(world: World, *replicas: Replica, looks: int = 3) -> None:
    for _ in range(looks):
        world.now += 10
        for replica in replicas:
            look(world, replica)


def test_the_first_look_makes_everything_and_serves(world: World) -> None:
    replica = Replica(world)
    look(world, replica)

    content = world.content()
    assert replica.serving.certificate == content.leaf.certificate
    assert world.bundles() == (frozenset({content.authority.certificate}),) * 3
    assert world.api.writes == [("POST", SECRET), *(("PATCH", path) for path in CONFIGURATIONS)]


def test_a_certificate_is_renewed_and_taken_over_by_the_other_replica(world: World) -> None:
    one, two = Replica(world), Replica(world)
    settle(world, one, two)
    before = one.serving.certificate
    settle(world, one, two, looks=9)
    assert one.serving.certificate == two.serving.certificate != before
    assert len(set(world.bundles())) == 1


def test_a_rotation_trusts_before_it_signs_and_forgets_late(world: World) -> None:
    replica = Replica(world)
    settle(world, replica)
    old = world.content().authority.certificate
    while world.content().authority.certificate == old:
        settle(world, replica, looks=1)
    content = world.content()
    new = content.authority.certificate
    assert content.trusted == (new, old)
    assert world.bundles() == (frozenset({old, new}),) * 3
    assert pairs.signed(content.leaf.certificate, by=old)

    settle(world, replica, looks=3)
    assert replica.serving.certificate == content.leaf.certificate
    settle(world, replica, looks=1)
    after = world.content().leaf.certificate
    assert replica.serving.certificate == after
    assert pairs.signed(after, by=new)
    assert world.bundles() == (frozenset({old, new}),) * 3

    settle(world, replica, looks=5)
    assert world.bundles() == (frozenset({new}),) * 3


@pytest.mark.parametrize("path", CONFIGURATIONS)
def test_a_blanked_bundle_is_put_back_by_the_next_look(world: World, path: str) -> None:
    replica = Replica(world)
    settle(world, replica)
    before = world.bundles()
    world.api.put(path, configuration(len(world.api.objects[path]["webhooks"])))
    world.api.writes.clear()
    look(world, replica)
    assert (world.bundles(), world.api.writes) == (before, [("PATCH", path)])


SERVICE, URL = {"name": "w", "namespace": "n"}, "https://10.0.0.1:9443"


@pytest.mark.parametrize(
    "installed", [{"service": SERVICE}, {"url": URL}, {"url": f"{URL}/evict/old"}]
)
def test_the_path_for_evictions_is_secret_the_same_for_all_and_changes_with_the_authority(
    world: World, installed: Object
) -> None:
    path = CONFIGURATIONS[1]
    hooks = [
        {"name": "other", "clientConfig": {}},
        {"name": names.EVICTIONS_HOOK, "clientConfig": installed},
    ]
    world.api.put(path, {**configuration(0), "webhooks": hooks})
    one, two = Replica(world), Replica(world)
    settle(world, one, two)
    secret = one.rotation.secret_path
    assert re.fullmatch(r"/evict/[0-9a-f]{64}", secret)
    assert two.rotation.secret_path == secret

    def check(secret: str) -> None:
        other, ours = (hook["clientConfig"] for hook in world.api.objects[path]["webhooks"])
        assert other.keys() == {"caBundle"}
        called = (
            {"service": {**SERVICE, "path": secret}}
            if "service" in installed
            else {"url": f"{URL}{secret}"}
        )
        assert {field: ours[field] for field in installed} == called

    check(secret)
    world.api.writes.clear()
    settle(world, one, two, looks=1)
    assert not world.api.writes
    del world.api.objects[SECRET]
    settle(world, one, two)
    assert one.rotation.secret_path == two.rotation.secret_path != secret
    check(one.rotation.secret_path)


def test_the_path_for_evictions_is_told_before_the_api_server_has_it(world: World) -> None:
    """Told and not written is harmless: the path follows from the Secret, and the next look writes it."""
    replica = Replica(world)
    while ("PATCH", CONFIGURATIONS[0]) not in world.api.writes:
        replica.advance()
    secret_path = world.content().secret_path
    assert [news.secret_path for news in replica.told] == [secret_path]
    replica.stop()
    again = Replica(world)
    again.finish()
    assert again.told[0].secret_path == secret_path


async def test_each_look_is_told(world: World) -> None:
    """So the webhook sees that the process is alive."""
    replica = Replica(world, timing=Timing(look_every=0.0, settled=5.0))
    world.read_only.add(CONFIGURATIONS[0])
    rotating = asyncio.create_task(replica.rotation.run())
    for looks in range(1, 4):
        async with asyncio.timeout(10):
            while len(replica.told) < 2 * looks:
                await asyncio.sleep(0)
    rotating.cancel()
    assert len({news.secret_path for news in replica.told}) == 1


def test_configurations_may_be_installed_later(world: World) -> None:
    configurations = {path: world.api.objects.pop(path) for path in CONFIGURATIONS}
    replica = Replica(world)
    look(world, replica)
    assert replica.serving.valid(now=world.wall())

    for path, one in configurations.items():
        world.api.put(path, one)
    look(world, replica)
    world.now += 10
    assert world.believes(replica.serving.certificate, lag=5)


def test_a_secret_that_somebody_keeps_changing_is_reported_not_fought(world: World) -> None:
    under_way = Replica(world).rotation.look()
    with pytest.raises(errors.KubeError, match="changed 8 times"):  # noqa: PT012
        while advance(under_way):
            world.api.put(SECRET, {"metadata": {"name": "x"}, "data": {"ca.crt": ""}})


async def test_trouble_with_the_api_server_is_over_with_the_next_look(world: World) -> None:
    replica = Replica(world, timing=Timing(look_every=0.01, settled=5.0))
    world.read_only.add(SECRET)
    running = asyncio.create_task(replica.rotation.run())
    await asyncio.sleep(0.05)
    assert replica.serving.certificate is None
    world.read_only.clear()
    while not replica.serving.valid(now=world.wall()):
        await asyncio.sleep(0.01)
    running.cancel()


def test_a_new_replica_serves_what_may_not_be_renewed(world: World) -> None:
    settle(world, Replica(world))
    before = world.content().leaf
    world.read_only = {SECRET}
    world.now += 50  # in its last third
    replica = Replica(world)
    with pytest.raises(errors.Forbidden):
        look(world, replica)
    assert replica.serving.certificate == before.certificate


def test_without_the_right_to_write_bundles_a_certificate_is_served_all_the_same(
    world: World,
) -> None:
    replica = Replica(world)
    world.read_only.update(CONFIGURATIONS)
    with pytest.raises(errors.Forbidden):
        look(world, replica)
    assert replica.serving.valid(now=world.wall())
