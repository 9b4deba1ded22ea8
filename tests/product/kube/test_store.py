"""Examples of the cache's rules; `test_store_histories` has all of them in every order."""

import pytest

from mpijob_elastic.kube.store import StaleList, Store
from tests.product.kube.items import Item, item

Change = tuple[Item | None, Item | None]


def make() -> tuple[Store[Item], list[Change]]:
    changes: list[Change] = []
    return Store(lambda old, new: changes.append((old, new))), changes


def take_list(store: Store[Item], revision: int, *items: Item) -> None:
    listing = store.begin_list()
    store.list_page(listing, str(revision), items)
    store.end_list(listing)


def test_an_event_that_the_stream_has_passed_is_a_repetition() -> None:
    store, changes = make()
    take_list(store, 10, item("a", 3))
    assert not store.event(item("b", 9).metadata, item("b", 9))
    assert store.bookmark("20")
    assert store.bookmark("20")
    assert not store.bookmark("19")
    assert not store.event(item("b", 20).metadata, item("b", 20))
    assert [new for _, new in changes] == [item("a", 3)]
    assert store.position == 20


def test_a_list_older_than_the_stream_is_refused() -> None:
    store, _ = make()
    take_list(store, 10, item("a", 7))
    with pytest.raises(StaleList, match=r"9.*10"):
        store.list_page(store.begin_list(), "9", [])
    assert store.get("n", "a") == item("a", 7)


def test_a_forgotten_object_stays_away_until_its_deletion_is_seen() -> None:
    store, changes = make()
    store.put(item("a", 5))
    store.forget("n", "a", "u")
    store.event(item("a", 6).metadata, item("a", 6))
    assert store.get("n", "a") is None
    assert changes[-1] == (item("a", 5), None)
    store.event(item("a", 7).metadata, None)
    assert not store._forgotten
    store.event(item("a", 8, uid="v").metadata, item("a", 8, uid="v"))
    assert store.get("n", "a") == item("a", 8, uid="v")


def test_an_object_whose_deletion_was_seen_is_not_remembered_when_forgotten_afterwards() -> None:
    store, changes = make()
    store.put(item("a", 5))
    store.event(item("a", 6).metadata, None)
    store.forget("n", "a", "u")
    assert not store._forgotten
    assert len(changes) == 2


def test_forgetting_one_uid_leaves_another_of_its_name() -> None:
    store, _ = make()
    store.put(item("a", 5, uid="new"))
    store.forget("n", "a", "old")
    assert store.get("n", "a") is not None


def test_a_list_begun_before_forgetting_does_not_bring_an_object_back_but_one_begun_after_does() -> None:
    store, _ = make()
    store.put(item("a", 5))
    listing = store.begin_list()
    store.forget("n", "a", "u")
    store.list_page(listing, "5", [item("a", 5)])
    store.end_list(listing)
    store.event(item("a", 6).metadata, item("a", 6))
    assert store.get("n", "a") is None
    take_list(store, 7, item("a", 6))
    assert store.get("n", "a") == item("a", 6)
