"""The search of `stale_missed_crashed`, with the day of a job in a queue of the real Kueue."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.build import built_peer
from lab.cluster import Cluster
from lab.errors import LabError
from tests.campaign.part import Options, Outcome
from tests.campaign.queued_day import QueuedDay
from tests.campaign.random_sequences import surroundings
from tests.campaign.stale_missed_crashed import search
from tests.peers.kueue import Kueue
from tests.peers.queues import flavor_and_class

# Kueue decides for all places, so there are fewer.
PLACES = 14
# Troubles that a seed draws of some 1,000: all of them take six hours.
TROUBLES = 300


def run(options: Options) -> Outcome:
    """Play the days."""
    with surroundings(places=PLACES, beside=_kueue) as lab:
        return search(lab, options, QueuedDay, places=PLACES, most=TROUBLES)


@contextmanager
def _kueue(cluster: Cluster) -> Iterator[None]:
    program = built_peer("kueue")
    if program is None:
        raise LabError("kueue is not built here: make test-peers")
    with (
        tempfile.TemporaryDirectory() as directory,
        Kueue(program=program).serving(cluster, Path(directory)),
    ):
        flavor_and_class(cluster)
        yield
