"""Tables of the jobs that train; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench import targets
from bench.figures import Figure, Target
from bench.real.timeline import Course
from bench.real.touch import Delays
from bench.real.transcript import LIMIT, SIZES, Round
from bench.statistics import percentile

TOUCH = "From a change of a mounted ConfigMap until the container sees it"
TRAINING = "A job that trains"
WHOLE = "→".join(map(str, SIZES))


def figures(delays: Delays, *, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    """All of them; samples are rounds, of which a side may have none."""
    titles = [one.title for any_round in (*ours, *peer)[:1] for one in any_round.courses]
    changes = [figure for index, title in enumerate(titles) for figure in _change(index, title, ours, peer)]
    return [*_touch(delays), *changes, *_whole(ours, peer)]


def notes(peer: Sequence[Round]) -> list[str]:
    """Return notes on how to read the figures."""
    begun = "Real pods and Elastic Horovod: steps of 0.25 s, a commit every 4; times from the edit's arrival on."
    return [begun, f"The peer was given {LIMIT:.0f} s a change, in one round."] if peer else [begun]


def _touch(delays: Delays) -> list[Figure]:
    def figure(group: str, name: str, samples: tuple[float, ...], target: Target | None = None) -> Figure:
        return Figure(topic=TOUCH, group=group, name=name, unit="s", ours=samples, target=target)

    touched, untouched = f"touched, {len(delays.touched)} changes", f"not touched, {len(delays.untouched)} pods"
    return [
        figure(touched, "seen", delays.touched),
        figure(touched, "95th percentile", (percentile(delays.touched, 95),), targets.VISIBLE),
        figure(untouched, "seen", delays.untouched),
        figure(untouched, "95th percentile", (percentile(delays.untouched, 95),)),
    ]


def _change(index: int, title: str, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def samples(rounds: Sequence[Round], read: Callable[[Course], float | None]) -> tuple[float, ...]:
        values = [read(one.courses[index]) for one in rounds]
        return tuple(value for value in values if value is not None)

    def figure(name: str, read: Callable[[Course], float | None], target: Target | None = None) -> Figure:
        return Figure(
            topic=TRAINING,
            group=title,
            name=name,
            unit="s",
            ours=samples(ours, read),
            peer=samples(peer, read),
            target=target,
        )

    return [
        figure("edit to host list seen by the launcher", lambda one: one.listed),
        figure("edit to first step of all ranks", lambda one: one.trained, targets.TRAINED.get(title)),
        figure("longest time without a step", lambda one: one.pause),
    ]


def _whole(ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def figure(
        name: str, unit: str, read: Callable[[Sequence[Round]], tuple[float, ...]], target: Target | None = None
    ) -> Figure:
        return Figure(
            topic=TRAINING, group=WHOLE, name=name, unit=unit, ours=read(ours), peer=read(peer), target=target
        )

    count = sum(len(_visible([one])) for one in ours)
    return [
        figure("host list written to seen by the launcher", "s", _visible),
        figure(f"95th percentile of these, {count} changes", "s", _slowest, targets.VISIBLE),
        figure("ranks killed", "", lambda rounds: tuple(one.killed for one in rounds), targets.RANKS_KILLED),
        figure("hosts blacklisted", "", lambda rounds: tuple(one.blacklisted for one in rounds), targets.RANKS_KILLED),
        figure(f"changes not trained with after {LIMIT:.0f} s", "", _never, targets.RANKS_KILLED),
    ]


def _visible(rounds: Sequence[Round]) -> tuple[float, ...]:
    return tuple(one.visible for each in rounds for one in each.courses if one.visible is not None)


def _slowest(rounds: Sequence[Round]) -> tuple[float, ...]:
    samples = _visible(rounds)
    return (percentile(samples, 95),) if samples else ()


def _never(rounds: Sequence[Round]) -> tuple[float, ...]:
    return tuple(sum(one.trained is None for one in each.courses) for each in rounds)
