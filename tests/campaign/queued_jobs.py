"""Random histories of one and of three jobs in a queue, and of jobs with parked workers, in memory.

See tests/queued_histories.py, tests/free_histories.py, and those of KubeQueue in its room.
"""

import asyncio
import logging

from tests.campaign.part import Options, Outcome
from tests.free_histories import FreeHistory
from tests.product.capabilities.kube_queue.unit_histories import UnitHistory
from tests.queued_histories import History, search

HISTORIES = 25_000
KINDS = (History, History, FreeHistory, History, UnitHistory)


def run(options: Options) -> Outcome:
    """Play the histories."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)  # crashed controllers complain
    runs = 0
    violations: list[str] = []
    for number in options.runs(HISTORIES):
        runs += 1
        kind = KINDS[number % len(KINDS)]
        violations += asyncio.run(search([options.seed + number], kind=kind))
    numbers = "one job and three by turns, every fifth in KubeQueue, every fifth without a queue"
    return Outcome(runs=runs, violations=tuple(violations), numbers=numbers)
