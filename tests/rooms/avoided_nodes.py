"""Words for avoided nodes."""

import msgspec

from mpijob_elastic.capabilities.avoided_nodes.losses import NAME, NodeLosses
from tests.builders import NOW
from tests.room_words import Words


def lost_on(*, ago: float = 60.0, **counts: int) -> dict[str, bytes]:
    """What the memory tells of nodes that have lost so many workers, the last so many seconds ago."""
    found = {node: NodeLosses(count=count, at=NOW - ago) for node, count in counts.items()}
    return {NAME: msgspec.json.encode(found, order="sorted")}


WORDS = Words()
