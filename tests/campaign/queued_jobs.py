"""Random histories of one and of three jobs in a queue of Kueue, in memory: see tests/queued_histories.py."""

import asyncio
import logging

from tests import queued_histories
from tests.campaign.part import Options, Outcome

HISTORIES = 20_000


def run(options: Options) -> Outcome:
    """Play the histories."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)  # crashed controllers complain
    runs = 0
    violations: list[str] = []
    for number in options.runs(HISTORIES):
        runs += 1
        violations += asyncio.run(queued_histories.search([options.seed + number]))
    return Outcome(runs=runs, violations=tuple(violations), numbers="one job and three by turns")
