"""The kinds of actions that a plan may have."""

from collections.abc import Iterator

import mpijob_elastic.capabilities.live  # noqa: F401 -- their actions are kinds too, once they are loaded
from mpijob_elastic.decide.actions import Action


def kinds(base: type[Action] = Action) -> Iterator[type[Action]]:
    """Yield the kinds below a base that nothing is derived from."""
    for kind in base.__subclasses__():
        yield from kinds(kind) if kind.__subclasses__() else (kind,)
