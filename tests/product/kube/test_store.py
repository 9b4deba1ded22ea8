"""All rules of the cache at once, in every order that hypothesis can think of, and three rare ones as examples."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mpijob_elastic.kube.store import Listing, StaleList, Store
from tests.examples import share
from tests.product.kube.watched import Item, item

names = st.sampled_from("ab")


def take_list(store: Store[Item], revision: int, *items: Item) -> None:
    listing = store.begin_list()
    store.list_page(listing, str(revision), items)
    store.end_list(listing)


class Histories(RuleBasedStateMachine):
    """A server, its stream of events, and a store that hears of both in any order that is possible."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store[Item] = Store(self.changed)
        self.mirror: dict[str, Item] = {}
        self.answers: list[tuple[Item, bool]] = []
        self.answered: dict[str, int] = {}
        self.deleted_by_us: set[str] = set()
        self.server: dict[str, Item] = {}
        self.events: list[tuple[Item, bool]] = []
        self.snapshots: list[dict[str, Item]] = [{}]
        self.heard = 0
        self.listing: tuple[Listing, int] | None = None
        take_list(self.store, 0)

    @property
    def now(self) -> int:
        return len(self.events)

    def changed(self, old: Item | None, new: Item | None) -> None:
        """Every change starts from where the last one ended, and goes on from there."""
        one = new or old
        assert one is not None
        name = one.metadata.name
        assert self.mirror.get(name) == old
        if new is None:
            del self.mirror[name]
            return
        reached = int(new.metadata.resource_version)
        assert reached > (int(old.metadata.resource_version) if old else 0)
        self.mirror[name] = new

    def commit(self, new: Item, *, deleted: bool) -> None:
        name = new.metadata.name
        self.events.append((new, deleted))
        self.server = {other: one for other, one in self.server.items() if other != name}
        if not deleted:
            self.server[name] = new
        self.snapshots.append(self.server)

    @rule(name=names, ours=st.booleans())
    def write(self, name: str, ours: bool) -> None:
        uid = self.server[name].metadata.uid if name in self.server else f"u{self.now}"
        new = item(name, self.now + 1, uid=uid)
        self.commit(new, deleted=False)
        if ours:
            self.answers.append((new, False))

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def hear_answer(self, data: st.DataObject) -> None:
        """The answer to a write or deletion of ours comes, however late, in whatever order."""
        answer, deleted = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        if deleted:
            self.take_deletion(answer)
            return
        self.store.written(answer)
        self.answered[answer.metadata.name] = max(
            int(answer.metadata.resource_version), self.answered.get(answer.metadata.name, 0)
        )

    def take_deletion(self, gone: Item) -> None:
        seen = self.mirror.get(gone.metadata.name)
        self.store.forget("n", gone.metadata.name, gone.metadata.uid)
        if seen is not None and seen.metadata.uid == gone.metadata.uid:
            self.deleted_by_us.add(gone.metadata.uid)

    @rule(name=names, ours=st.booleans())
    def delete(self, name: str, ours: bool) -> None:
        if name in self.server:
            gone = item(name, self.now + 1, uid=self.server[name].metadata.uid)
            self.commit(gone, deleted=True)
            if ours:
                self.answers.append((gone, True))

    @rule(behind=st.integers(0, 1))
    def hear_bookmark(self, behind: int) -> None:
        """It moves nothing backward, though it may come from a server that lags behind."""
        assert self.store.bookmark(str(self.heard - behind)) is (behind == 0)

    @precondition(lambda self: self.heard < self.now)
    @rule()
    def hear(self) -> None:
        self.deliver(self.heard)
        self.heard += 1

    def deliver(self, number: int) -> None:
        new, deleted = self.events[number]
        is_news = int(new.metadata.resource_version) > self.store.position
        assert self.store.event(new.metadata, None if deleted else new) is is_news

    @precondition(lambda self: self.heard > 0)
    @rule(data=st.data())
    def hear_again(self, data: st.DataObject) -> None:
        self.deliver(data.draw(st.integers(0, self.heard - 1)))

    @rule()
    def begin_list(self) -> None:
        self.listing = self.store.begin_list(), self.now

    @precondition(lambda self: self.listing is not None)
    @rule(data=st.data())
    def end_list(self, data: st.DataObject) -> None:
        """The answer is of any moment since the list was asked for, one object a page."""
        assert self.listing is not None
        (listing, begun), self.listing = self.listing, None
        taken = data.draw(st.integers(begun, self.now))
        if taken < self.store.position:
            with pytest.raises(StaleList, match=f"version {taken}, .* {self.store.position}"):
                self.store.list_page(listing, str(taken), [])
            return
        for page in [[one] for one in self.snapshots[taken].values()] or [[]]:
            self.store.list_page(listing, str(taken), page)
        self.store.end_list(listing)
        self.heard = max(self.heard, taken)

    @invariant()
    def holds_what_it_told(self) -> None:
        assert {one.metadata.name: one for one in self.store.values()} == self.mirror

    @invariant()
    def remembers_what_we_did(self) -> None:
        assert not {one.metadata.uid for one in self.store.values()} & self.deleted_by_us
        for name, written in self.answered.items():
            seen = self.mirror.get(name)
            deleted_later = any(
                gone and one.metadata.name == name for one, gone in self.events[written:]
            )
            assert deleted_later or (
                seen is not None and int(seen.metadata.resource_version) >= written
            )

    @invariant()
    def is_at_least_as_new_as_the_stream(self) -> None:
        for name, one in self.snapshots[self.heard].items():
            seen = self.mirror.get(name)
            if seen is None:
                later = [
                    event
                    for event in self.events[self.heard :]
                    if event[0].metadata.uid == one.metadata.uid
                ]
                assert any(deleted for _, deleted in later), (
                    "absent though it is there for all we may know"
                )
            else:
                assert int(seen.metadata.resource_version) >= int(one.metadata.resource_version)

    def teardown(self) -> None:
        while self.heard < self.now:
            self.hear()
        for answer, deleted in self.answers:
            self.take_deletion(answer) if deleted else self.store.written(answer)
        assert self.mirror == self.server
        take_list(self.store, self.now, *self.server.values())
        assert not self.store._forgotten, "nothing is remembered for ever"


TestHistories = Histories.TestCase
TestHistories.settings = settings(share(0.5), stateful_step_count=40)


def test_a_list_older_than_the_stream_is_refused() -> None:
    store: Store[Item] = Store(lambda _old, _new: None)
    take_list(store, 10, item("a", 7))
    with pytest.raises(StaleList, match=r"9.*10"):
        store.list_page(store.begin_list(), "9", [])
    assert store.get("n", "a") == item("a", 7)


def test_a_forgotten_object_stays_away_until_its_deletion_is_seen() -> None:
    store: Store[Item] = Store(lambda _old, _new: None)
    store.put(item("a", 5))
    store.forget("n", "a", "u")
    store.event(item("a", 6).metadata, item("a", 6))
    assert store.get("n", "a") is None
    store.event(item("a", 7).metadata, None)
    store.forget("n", "a", "u")
    assert not store._forgotten, "nothing is remembered of what was seen to go"


def test_a_list_begun_before_forgetting_does_not_bring_an_object_back_but_one_begun_after_does() -> (
    None
):
    store: Store[Item] = Store(lambda _old, _new: None)
    store.put(item("a", 5))
    listing = store.begin_list()
    store.forget("n", "a", "u")
    store.list_page(listing, "5", [item("a", 5)])
    store.end_list(listing)
    store.event(item("a", 6).metadata, item("a", 6))
    assert store.get("n", "a") is None
    take_list(store, 7, item("a", 6))
    assert store.get("n", "a") == item("a", 6)
