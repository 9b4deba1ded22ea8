"""Answers to our own writes, which the watch may overtake."""

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.store import Store


class Thing(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


def thing(version: int, uid: str = "u") -> Thing:
    return Thing(metadata=ObjectMeta(name="a", namespace="n", uid=uid, resource_version=str(version)))


def test_an_answer_ahead_of_the_watch_is_taken_in() -> None:
    store: Store[Thing] = Store(lambda old, new: None)
    store.written(thing(5))
    assert store.get("n", "a") == thing(5)


def test_the_answer_to_a_deletion_does_not_bring_back_what_the_watch_has_seen_gone() -> None:
    store: Store[Thing] = Store(lambda old, new: None)
    store.event(thing(5).metadata, thing(5))
    store.event(thing(7).metadata, None)
    store.written(thing(6))
    assert store.get("n", "a") is None


def test_an_answer_older_than_the_watch_changes_nothing() -> None:
    store: Store[Thing] = Store(lambda old, new: None)
    store.event(thing(5).metadata, thing(5))
    store.event(thing(8).metadata, thing(8))
    store.written(thing(6))
    assert store.get("n", "a") == thing(8)
