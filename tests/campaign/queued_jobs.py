"""Random histories of one and of three jobs in a queue, in memory.

See tests/queued_histories.py and tests/queued_units.py.
"""

import asyncio
import logging

from tests.campaign.part import Options, Outcome
from tests.queued_histories import History, search
from tests.queued_units import UnitHistory

# Every fifth is of KubeQueue.
HISTORIES = 25_000


def run(options: Options) -> Outcome:
    """Play the histories."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)  # crashed controllers complain
    runs = 0
    violations: list[str] = []
    for number in options.runs(HISTORIES):
        runs += 1
        kind = UnitHistory if number % 5 == 4 else History
        violations += asyncio.run(search([options.seed + number], kind=kind))
    numbers = "one job and three by turns, every fifth in KubeQueue"
    return Outcome(runs=runs, violations=tuple(violations), numbers=numbers)
