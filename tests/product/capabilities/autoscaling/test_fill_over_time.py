"""A job that fills idle nodes, for hours beside workers of others: what is given back helps them, or is taken again."""

from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.capabilities.autoscaling.size import Fill
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE
from mpijob_elastic.decide import decide
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, config, job, pods, role
from tests.rooms.autoscaling import grown

LEAST, MOST = 2, 5
HOUR, EVERY = 3600.0, 60.0  # seconds


def filling(size: int, waits: tuple[float, ...], *, at: float) -> JobView:
    """A job that trains on all of its workers, resized then, beside pods that wait since those times."""
    listed = config(
        pods(*range(size)), memory=Memory(own=grown(size, asked=size, at=at), added_at=LONG_AGO)
    )
    facts: dict[str, Any] = {
        "policy": Policy(min_replicas=LEAST, max_replicas=MOST),
        "scaling": Scaling(autoscale=Autoscale(fill=True)),
    }
    return job(
        size, others_wait=waits, queue=NO_QUEUE, config=listed, role=role(*range(MOST)), **facts
    )


# A smaller seed is no simpler history.
@settings(phases=(Phase.explicit, Phase.generate), max_examples=12)
@given(seed=st.integers(0, 2**40))
def test_nodes_are_not_kept_idle_for_whom_they_do_not_help(seed: int) -> None:
    """Some workers of others are taken by any node that is idle, some by none, ever."""
    random = Random(seed)
    hopeless = [NOW + random.uniform(0, HOUR) for _ in range(random.randint(0, 12))]
    helped = {NOW + random.uniform(0, 2 * HOUR) for _ in range(random.randint(0, 4))}
    size, at, now, idle = MOST, LONG_AGO, NOW, 0.0
    while now < NOW + 3 * HOUR:
        waits = tuple(one for one in (*hopeless, *helped) if one <= now)
        due = [
            action
            for action in decide(filling(size, waits, at=at), now=now).actions
            if isinstance(action, Fill)
        ]
        for action in due:
            size, at = action.after, now
        for one in [one for one in sorted(helped) if one <= now][: MOST - size]:
            helped.discard(
                one
            )  # a node that was given back took it, and its own worker ends at once
        now += EVERY
        idle += EVERY * (size < MOST) * (now > NOW + HOUR)
    assert not helped, "given back too late"
    assert idle < 0.8 * HOUR, f"nodes were idle for {idle:.0f} s of two hours"
