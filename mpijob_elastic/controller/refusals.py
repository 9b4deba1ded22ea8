"""Writes that are refused: each is tried again ever later, by itself, and told to the user.

In memory alone: after a restart each is tried at once.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from mpijob_elastic.decide.actions import Action, Note, Occasion, occasion, warning
from mpijob_elastic.decide.notices import LONGEST_REASON, REFUSED
from mpijob_elastic.decide.retries import REFUSED_OFTEN
from mpijob_elastic.kube.queue import Backoff
from mpijob_elastic.observe.watching import JobKey

# Each try costs a write and what the API server asks for it, and what a policy refuses may stay refused.
RETRY = Backoff(first=1.0, longest=30.0)


@dataclass
class _Refused:
    count: int = 0
    again_at: float = 0.0
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Refusals:
    """What is refused now, by job and by what is written; clock: seconds that never step."""

    random: Random = field(default_factory=Random)
    clock: Callable[[], float] = time.monotonic
    _found: dict[JobKey, dict[Occasion, _Refused]] = field(default_factory=dict)

    def keep(self, key: JobKey, due: Sequence[Action]) -> None:
        """Forget refusals of what is not due any more."""
        if found := self._found.get(key):
            wanted = {occasion(action) for action in due}
            self._found[key] = {what: refused for what, refused in found.items() if what in wanted}

    def waits(self, key: JobKey, action: Action) -> bool:
        """Tell whether it is too early to try a write again."""
        found = self._found.get(key)
        refused = found.get(occasion(action)) if found else None
        return refused is not None and self.clock() < refused.again_at

    def add(self, key: JobKey, action: Action, error: Exception) -> Note | None:
        """Remember a refusal; return what to tell of it, once it has come often."""
        refused = self._found.setdefault(key, {}).setdefault(occasion(action), _Refused())
        refused.count += 1
        refused.again_at = self.clock() + RETRY.delay(refused.count, self.random)
        if refused.count != REFUSED_OFTEN:
            return None
        what, _, _ = action.says().partition("\n")
        note = warning(
            REFUSED, f"not done: {what[:LONGEST_REASON]}. {str(error)[:LONGEST_REASON]}. Everything else goes on"
        )
        refused.words = note.message
        return note

    def done(self, key: JobKey, action: Action) -> None:
        """Note that a write was taken."""
        if found := self._found.get(key):
            found.pop(occasion(action), None)

    def seen(self, key: JobKey) -> Mapping[type, str]:
        """Return what is refused, by the kind of the action, with what to say of it: the first that is to be told."""
        words: dict[type, str] = {}
        for (kind, _), refused in self._found.get(key, {}).items():
            words[kind] = words.get(kind) or refused.words
        return words

    def again_in(self, key: JobKey) -> float | None:
        """Return the seconds until the next write may be tried again; None if none is refused."""
        times = [refused.again_at for refused in self._found.get(key, {}).values()]
        return max(0.0, min(times) - self.clock()) if times else None

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone."""
        self._found.pop(key, None)
