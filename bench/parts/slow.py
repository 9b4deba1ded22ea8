"""A job whose ranks start slowly, and whose size changes meanwhile, with the peer and with us."""

from collections.abc import Callable, Sequence

from bench import targets
from bench.figures import Figure, Target, measured
from bench.parts.context import Findings, Setting
from bench.parts.real import real_node, rounds, turns_with_us
from bench.real import slow
from bench.real.slow import START, TWICE, Second, SlowRound
from bench.real.transcript import LIMIT
from bench.sides import Ours

SLOWLY = "Ranks that start slowly"
WHOLE = "both"


async def run(setting: Setting) -> Findings:
    """Run both changes once with the peer and `repeat` times with us, as processes.

    A failure keeps the results before it.

    Raises LabError if no real node is possible, or nothing could be measured.
    """
    with real_node(setting) as cluster:
        ours, without_us = rounds(cluster, setting, Ours().start, turns_with_us(setting), slow.run)
        peer, without_peer = rounds(
            cluster, setting, setting.peer.start, ["with the peer"], slow.run
        )
    notes = [
        f"Elastic Horovod on a real node; a rank sleeps {START} s before it imports Horovod. The "
        "second change comes when Horovod's driver starts the newcomer of the first. Times count "
        "from the second edit."
    ]
    return Findings(
        figures=_figures(ours, peer), notes=notes, failures=[*without_us, *without_peer]
    )


def _figures(ours: Sequence[SlowRound], peer: Sequence[SlowRound]) -> list[Figure]:
    """Return all figures. Each round is a sample; a side may have none."""
    changes = [figure for index in range(len(TWICE)) for figure in _change(index, ours, peer)]
    return [*changes, *_whole(ours, peer)]


def _change(index: int, ours: Sequence[SlowRound], peer: Sequence[SlowRound]) -> list[Figure]:
    title = "→".join(map(str, TWICE[index]))
    mine, others = ([turn.changes[index] for turn in side] for side in (ours, peer))

    def figure(name: str, read: Callable[[Second], float | None]) -> Figure:
        return measured((SLOWLY, title), name, "s", read, ours=mine, peer=others)

    return [
        figure("edit to first step of all ranks", lambda second: second.trained),
        figure("edit to last surplus gone, too", lambda second: second.settled),
    ]


def _whole(ours: Sequence[SlowRound], peer: Sequence[SlowRound]) -> list[Figure]:
    def figure(
        name: str, read: Callable[[SlowRound], float], target: Target | None = None
    ) -> Figure:
        return measured((SLOWLY, WHOLE), name, "", read, ours=ours, peer=peer, target=target)

    return [
        figure("ranks killed", lambda turn: turn.killed, targets.RANKS_KILLED),
        figure("hosts blacklisted", lambda turn: turn.blacklisted),
        figure(
            f"changes that did not settle within {LIMIT:.0f} s",
            lambda turn: sum(second.settled is None for second in turn.changes),
            targets.NONE_LOST,
        ),
    ]
