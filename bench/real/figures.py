"""Figures of jobs that really train. Pure."""

from collections.abc import Callable, Sequence

from bench import targets
from bench.figures import Figure, Target, measured, percentile
from bench.real.timeline import Course
from bench.real.touch import Delays
from bench.real.transcript import LIMIT, SIZES, Round

TOUCH = "From a change of a mounted ConfigMap until the container sees it"
TRAINING = "A job that trains"
WHOLE = "→".join(map(str, SIZES))


def figures(delays: Delays, *, ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    """Return all figures. Each round is a sample; a side may have none."""
    titles = [course.title for turn in (*ours, *peer)[:1] for course in turn.courses]
    changes = [figure for index, title in enumerate(titles) for figure in _change(index, title, ours, peer)]
    return [*_touch(delays), *changes, *_whole(ours, peer)]


def notes(peer: Sequence[Round]) -> list[str]:
    """Return what a reader must know about the figures."""
    begun = "Real pods and Elastic Horovod: steps of 0.25 s, a commit every 4. Times count from the edit's arrival."
    return [begun, f"The peer ran one round, with {LIMIT:.0f} s for each change."] if peer else [begun]


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
    def figure(name: str, read: Callable[[Course], float | None], target: Target | None = None) -> Figure:
        courses, others = ([turn.courses[index] for turn in rounds] for rounds in (ours, peer))
        return measured((TRAINING, title), name, "s", read, ours=courses, peer=others, target=target)

    return [
        figure("edit to host list seen by the launcher", lambda course: course.listed),
        figure("edit to first step of all ranks", lambda course: course.trained, targets.TRAINED.get(title)),
        figure("longest time without a step", lambda course: course.pause),
    ]


def _whole(ours: Sequence[Round], peer: Sequence[Round]) -> list[Figure]:
    def figure(name: str, read: Callable[[Round], float]) -> Figure:
        return measured((TRAINING, WHOLE), name, "", read, ours=ours, peer=peer, target=targets.RANKS_KILLED)

    def seen(name: str, mine: Sequence[float], others: Sequence[float], target: Target | None = None) -> Figure:
        return measured((TRAINING, WHOLE), name, "s", float, ours=mine, peer=others, target=target)

    mine, others = _visible(ours), _visible(peer)
    slowest = f"95th percentile of these, {len(mine)} changes"
    return [
        seen("host list written to seen by the launcher", mine, others),
        seen(slowest, _slowest(mine), _slowest(others), targets.VISIBLE),
        figure("ranks killed", lambda turn: turn.killed),
        figure("hosts blacklisted", lambda turn: turn.blacklisted),
        figure(
            f"changes without training after {LIMIT:.0f} s",
            lambda turn: sum(course.trained is None for course in turn.courses),
        ),
    ]


def _visible(rounds: Sequence[Round]) -> list[float]:
    return [course.visible for turn in rounds for course in turn.courses if course.visible is not None]


def _slowest(samples: Sequence[float]) -> list[float]:
    return [percentile(samples, 95)] if samples else []
