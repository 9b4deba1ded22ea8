"""Replicas that look in any interleaving, crash and meet vandals: a call that would have succeeded goes on succeeding.

Certificates live for one minute here and CAs for three, so that a run of some minutes holds every
kind of change. Two replicas end a look in every round of ten seconds; the third is so slow that
what it read is many rounds old when it writes, and whatever it then does must not hurt the other
two. And whatever stands in the Secret is put right.
"""

from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import share
from tests.product.webhook.certificates.material import NOON, POLICY, authority, healthy
from tests.product.webhook.certificates.replicas import (
    CONFIGURATIONS,
    SECRET,
    TIMING,
    Replica,
    World,
    configuration,
)
from webhook.certificates import decision, pairs
from webhook.certificates.decision import Content
from webhook.certificates.serving import Serving

DILIGENT = 2
SLOW = 2
PARTS = ("ca.crt", "ca.key", "tls.crt", "tls.key", "retired-ca.crt")


@dataclass(frozen=True, kw_only=True)
class Round:
    """In which order the replicas' requests and answers come, and what somebody does meanwhile."""

    turns: list[int]
    broken: str | None = None
    restarted: int | None = None


TURNS = st.lists(st.integers(0, SLOW), max_size=16)
CALM = st.builds(Round, turns=TURNS)
RESTARTS = st.builds(Round, turns=TURNS, restarted=st.sampled_from([None, None, *range(DILIGENT)]))
# Spoiling retired-ca.crt takes trust away, which nothing can undo.
VANDALS = st.builds(
    Round, turns=TURNS, broken=st.sampled_from([None] * 12 + ["deleted", *PARTS[:-1]])
)


def damage(world: World, what: str | None) -> None:
    """Delete the Secret or spoil one of its parts."""
    secret = world.api.objects.get(SECRET)
    if what == "deleted":
        world.api.objects.pop(SECRET, None)
    elif what and secret:
        world.api.put(SECRET, {**secret, "data": {**secret["data"], what: "c3BvaWxlZA=="}})


def play(world: World, replicas: list[Replica], one: Round) -> None:
    world.now += TIMING.look_every
    for number, turn in enumerate(one.turns):
        if number == len(one.turns) // 2:
            damage(world, one.broken)
            if one.restarted is not None:
                replicas[one.restarted].stop()
                replicas[one.restarted] = Replica(world)
        replicas[turn].advance()
        world.record()
    for replica in replicas[:DILIGENT]:
        replica.finish()
        world.record()


def started() -> tuple[World, list[Replica]]:
    world = World()
    world.record()
    return world, [Replica(world) for _ in range(DILIGENT + 1)]


def believed(world: World, replicas: list[Replica]) -> set[int]:
    every = enumerate(replicas[:DILIGENT])
    return {
        number
        for number, one in every
        if world.believes(one.serving.certificate, lag=TIMING.settled)
    }


@share(0.3)
@given(st.lists(VANDALS, min_size=1, max_size=60))
def test_whoever_was_believed_stays_believed(rounds: list[Round]) -> None:
    world, replicas = started()
    before: set[int] = set()
    for one in rounds:
        play(world, replicas, one)
        now = believed(world, replicas)
        assert before <= now
        before = now


# In each round one replica looks, and the other starts anew just then: through the lives of two
# CAs.
APART = [
    Round(turns=[number % DILIGENT] * 20, restarted=1 - number % DILIGENT) for number in range(45)
]


@share(0.3)
@example([Round(turns=[])] * 2, APART)
@given(st.lists(CALM, min_size=2, max_size=4), st.lists(RESTARTS, max_size=60))
def test_once_all_is_well_a_replica_is_believed_from_its_first_look(
    start: list[Round], rounds: list[Round]
) -> None:
    world, replicas = started()
    for one in [*start, *rounds]:
        play(world, replicas, one)
        if world.now > len(start) * TIMING.look_every:
            assert believed(world, replicas) == set(range(DILIGENT))


@share(0.2)
@given(
    st.lists(
        st.tuples(
            VANDALS,
            st.sampled_from(["", "", "restart", "blank", "jump", "retired"]),
            st.integers(-400, 400),
        ),
        max_size=25,
    )
)
def test_after_any_trouble_all_is_well_and_at_rest(troubles: list[tuple[Round, str, int]]) -> None:
    world, replicas = started()
    for one, trouble, number in troubles:
        play(world, replicas, one)
        match trouble:
            case "restart":
                replicas[number % len(replicas)].stop()
                replicas[number % len(replicas)] = Replica(world)
            case "blank":
                path = CONFIGURATIONS[number % 2]
                world.api.put(path, configuration(len(world.api.objects[path]["webhooks"])))
            case "jump":
                world.skew += number
            case "retired":
                damage(world, "retired-ca.crt")
    replicas[SLOW].finish()
    for _ in range(4):
        play(world, replicas, Round(turns=[]))
    assert believed(world, replicas) == set(range(DILIGENT))
    world.api.writes.clear()
    for replica in replicas:
        replica.finish()
    assert world.api.writes == []


LEAF = healthy().leaf
FULL = Content(authority=authority(), leaf=LEAF, retired=(authority().certificate,))
DATA = [data for one in (FULL, healthy()) for data in one.render().values() if data]
SECRET_KEYS = st.sampled_from([*FULL.render()])


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Some part that is right somewhere, with a byte changed or its end cut off."""
    part = bytearray(draw(st.sampled_from(DATA)))
    at = draw(st.integers(0, len(part) - 1))
    if draw(st.booleans()):
        part[at] = draw(st.integers(0, 255))
        return bytes(part)
    return bytes(part[:at])


@share(0.3)
@example({"ca.crt": LEAF.certificate_pem, "ca.key": LEAF.key_pem} if LEAF else {})
@given(st.dictionaries(SECRET_KEYS, st.binary(max_size=50) | st.sampled_from(DATA) | spoiled()))
def test_any_secret_is_put_right(data: dict[str, bytes]) -> None:
    current = Content.parse(data)
    for _ in range(4):
        step = decision.next_step(current, POLICY, now=NOON)
        wanted = decision.carry_out(step, current, POLICY, seen=(), now=NOON) if step else current
        rendered = wanted.render()
        current = Content.parse(
            {key: value for key, value in rendered.items() if value is not None}
        )
        assert current.render() == rendered
    assert decision.next_step(current, POLICY, now=NOON) is None
    assert current.leaf is not None
    Serving().load(current.leaf.certificate_pem, current.leaf.key_pem)
    assert pairs.names_of(current.leaf.certificate) == POLICY.hosts
