"""The history of a job: the changes of its size and what became of each, an annotation of its ConfigMap.

Only a write and a command read it. A change is known by its time and the size that it leads to, so
that writing it again completes it and never doubles it. Who owns the ConfigMap may write anything
there: what cannot be read is no history.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from mpijob_elastic.model.memory import Count, Time

# Changes that are kept, the latest, and bytes of their JSON.
MOST, LARGEST = 50, 8 * 2**10
# Bytes of the texts of a change: three changes fit into what a capability may remember.
LONGEST_MANAGER, LONGEST_NOTE = 48, 100

_Text = Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)]


class Change(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={"before": "from", "after": "to"},
):
    """A change of the number of workers.

    at: when (seconds since the epoch). cause: in a word. by: the field manager that set the size, a
    program and no person; "" where nobody set it. listed, trained: seconds until the host list had
    all workers, and until a rank had been seen in each; None while that is not so, or nobody
    looked. cut: ranks that the drain-timeout ended.
    """

    at: Time
    cause: _Text
    before: Count
    after: Count
    by: _Text = ""
    listed: Time | None = None
    trained: Time | None = None
    cut: Count = 0
    note: _Text = ""

    @property
    def key(self) -> tuple[float, int]:
        """What tells it from every other change of the job."""
        return self.at, self.after


_change = msgspec.json.Decoder(Change)
_changes = msgspec.json.Decoder(list[Change])


def read_change(text: str) -> Change | None:
    """Return a single change; None if it cannot be read."""
    try:
        return _change.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None


def entries(text: str, *more: Change | None) -> list[Change]:
    """Return the changes in the annotation, the newest last, and of `more` those that it lacks.

    `more` is what the MPIJob says of the change that is under way.
    """
    try:
        found = _changes.decode(text) if len(text) <= LARGEST else []
    except (msgspec.DecodeError, RecursionError):
        found = []
    known = {change.key: change for change in found}
    return [*known.values(), *(change for change in more if change and change.key not in known)]


def merged(text: str, changes: Iterable[Change]) -> str:
    """Return the annotation with these changes, which complete those that it has; the oldest go."""
    known = {change.key: change for change in (*entries(text), *changes)}
    kept = list(known.values())[-MOST:]
    while len(words := msgspec.json.encode(kept)) > LARGEST:
        del kept[0]
    return words.decode()


def short(text: str, *, most: int) -> str:
    """Return a text of at most so many bytes, also as JSON."""
    plain = "".join(
        letter for letter in " ".join(text.split()) if letter.isprintable() and letter not in '"\\'
    )
    return plain.encode(errors="ignore")[:most].decode(errors="ignore")
