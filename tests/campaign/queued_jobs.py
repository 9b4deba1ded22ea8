"""Random histories of one and of three jobs in a queue, in memory.

See tests/queued_histories.py and tests/queued_units.py.
"""

import asyncio
import logging

from tests import queued_histories, queued_units
from tests.campaign.part import Options, Outcome

# Every fifth is of KubeQueue.
HISTORIES = 25_000


def run(options: Options) -> Outcome:
    """Play the histories."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)  # crashed controllers complain
    runs = 0
    violations: list[str] = []
    for number in options.runs(HISTORIES):
        runs += 1
        of = queued_units if number % 5 == 4 else queued_histories
        violations += asyncio.run(of.search([options.seed + number]))
    numbers = "one job and three by turns, every fifth in KubeQueue"
    return Outcome(runs=runs, violations=tuple(violations), numbers=numbers)
