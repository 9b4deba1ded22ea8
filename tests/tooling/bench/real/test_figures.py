"""Tables of the jobs that train."""

from bench.figures import Figure
from bench.real import figures
from bench.real.timeline import Course
from bench.real.touch import Delays
from bench.real.transcript import Round

DELAYS = Delays(touched=(0.4, 0.6, 0.5), untouched=(60.0, 80.0))
GOOD = Course(title="1→3", visible=0.5, listed=3.0, trained=6.0, pause=2.0)
NEVER = Course(title="1→3", visible=None, listed=None, trained=None, pause=40.0)


def shown(ours: list[Round], peer: list[Round]) -> dict[tuple[str, str], Figure]:
    return {(one.group, one.name): one for one in figures.figures(DELAYS, ours=ours, peer=peer)}


def test_a_change_has_its_times_beside_the_peers() -> None:
    ours = [Round(courses=[GOOD], killed=0, blacklisted=0)] * 2
    found = shown(ours, [Round(courses=[NEVER], killed=2, blacklisted=1)])
    trained = found["1→3", "edit to first step of all ranks"]
    assert (trained.ours, trained.peer, trained.verdict) == ((6.0, 6.0), (), True)
    assert found["1→3", "longest time without a step"].peer == (40.0,)
    whole = "2→3→1→3→4→2"
    assert (found[whole, "ranks killed"].ours, found[whole, "ranks killed"].peer) == ((0, 0), (2,))
    assert found[whole, "hosts blacklisted"].peer == (1,)
    assert found[whole, "changes without training after 150 s"].peer == (1,)
    assert found[whole, "95th percentile of these, 2 changes"].verdict is True


def test_without_a_peer_there_are_no_samples_of_it() -> None:
    found = shown([Round(courses=[NEVER], killed=1, blacklisted=0)], [])
    assert not any(one.peer for one in found.values())
    assert found["2→3→1→3→4→2", "ranks killed"].verdict is False


def test_what_was_taken_is_shown_where_one_side_has_no_round() -> None:
    bad = Round(courses=[NEVER], killed=2, blacklisted=1)
    only_peer, neither = shown([], [bad]), shown([], [])
    assert only_peer["1→3", "longest time without a step"].peer == (40.0,)
    assert not any(one.peer or (one.topic == figures.TRAINING and one.ours) for one in neither.values())
    assert neither["touched, 3 changes", "95th percentile"].ours == (0.6,)


def test_the_touch_is_told_with_how_many_changes_there_were() -> None:
    found = shown([Round(courses=[GOOD], killed=0, blacklisted=0)], [])
    assert found["touched, 3 changes", "95th percentile"].ours == (0.6,)
    assert found["not touched, 2 pods", "seen"].ours == (60.0, 80.0)
