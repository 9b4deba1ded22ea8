"""Words for disruption."""

from collections.abc import Mapping
from typing import Any

from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK, Eviction
from tests.room_words import Words


def _marked(asked: Eviction | None) -> Mapping[str, Any]:
    if asked is None:
        return {"marks": {}}
    return {"marks": {EVICTION_MARK: eviction.text(asked)}}


WORDS = Words(pod={"eviction": _marked})
