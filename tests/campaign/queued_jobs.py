"""Random histories of one and of three jobs in a queue, and of jobs with parked workers, in memory.

See tests/queued_histories.py, tests/free_histories.py, tests/requested_histories.py,
tests/hindered_histories.py, tests/loop_histories.py, and those of KubeQueue in its room.
"""

import asyncio
import logging

from tests.campaign.part import Options, Outcome
from tests.free_histories import FreeHistory
from tests.hindered_histories import HinderedHistory
from tests.loop_histories import LoopHistory
from tests.product.capabilities.kube_queue.unit_histories import UnitHistory
from tests.queued_histories import History, search
from tests.requested_histories import RequestHistory

HISTORIES = 25_000
# Every tenth seed plays the same kind, and odd seeds have three jobs.
KINDS = (
    History,
    History,
    FreeHistory,
    FreeHistory,
    RequestHistory,
    RequestHistory,
    HinderedHistory,
    HinderedHistory,
    LoopHistory,
    UnitHistory,
)


def run(options: Options) -> Outcome:
    """Play the histories."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)  # crashed controllers complain
    runs = 0
    violations: list[str] = []
    for number in options.runs(HISTORIES):
        runs += 1
        kind = KINDS[number % len(KINDS)]
        violations += asyncio.run(search([options.seed + number], kind=kind))
    numbers = (
        "one job and three by turns; of ten, two in Kueue, two without a queue, two with requests, "
        "two hindered, one with foreign pods and an old webhook, and one in KubeQueue"
    )
    return Outcome(runs=runs, violations=tuple(violations), numbers=numbers)
