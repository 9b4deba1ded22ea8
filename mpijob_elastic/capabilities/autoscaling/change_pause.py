"""The pause between two changes of size that a program asks for, by what a change costs.

Under Horovod a change costs a few seconds. elastic.sh starts all ranks again, and each reads its
checkpoint: the last changes show how long that takes, so that changes cost at most a twentieth of
the time. The history of the job has these durations (model/history).
"""

from statistics import mean

from mpijob_elastic.model import history
from mpijob_elastic.model.job import JobView

# Seconds of the pause if a change costs little, if nobody knows its cost yet, and at most.
SHORTEST, UNMEASURED, LONGEST = 60.0, 300.0, 1800.0
# The pause is so many times as long as what a change costs, which is the mean of so many changes.
TIMES, CHANGES = 20.0, 3


def pause(view: JobView) -> float:
    """Return the seconds from a change of size to the next one that a program asks for."""
    if view.driver.keeps_ranks:
        return SHORTEST
    costs = _costs(view)
    if not costs:
        return UNMEASURED
    return min(max(TIMES * mean(costs), SHORTEST), LONGEST)


def _costs(view: JobView) -> list[float]:
    """Return what the last changes cost: the seconds from their list to the last rank's start."""
    text = view.config.facts.history.decode(errors="replace") if view.config else ""
    costs: list[float] = []
    for change in history.entries(text):
        if change.listed is not None and change.trained is not None:
            costs.append(max(change.trained - change.listed, 0.0))
    return costs[-CHANGES:]
