"""Words for disruption."""

from collections.abc import Mapping
from typing import Any

from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK, Eviction
from tests.room_words import Words


def _marked(asked: Eviction | None) -> Mapping[str, Any]:
    if asked is None:
        return {"marks": {}}
    mark = eviction.released(asked.at) if asked.released else eviction.requested(asked.at)
    return {"marks": {EVICTION_MARK: mark}}


WORDS = Words(pod={"eviction": _marked})
