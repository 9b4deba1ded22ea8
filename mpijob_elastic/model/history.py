"""The history of a job: changes of its size and their results, in an annotation of its ConfigMap.

Only the write of the history and a command read it. A change is known by its time and by the size
that it leads to, so writing it again completes the entry and never doubles it. Anybody who may edit
the ConfigMap may write anything there: a text that cannot be read counts as no history.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from mpijob_elastic.model.memory import Count, Time

# Changes that are kept, the latest, and bytes of their JSON.
MOST, LARGEST = 50, 8 * 2**10
# The manager of a size that somebody asked for, if no manager is known; a change that nobody asked
# for has none.
UNKNOWN = "unknown"
# The causes of a loss, which nobody asked for; other causes are named by whoever asks. A worker had
# to leave its node, or it ended or lost its rank.
NODE, FAILURE = "node", "failure"
_LOSSES = (NODE, FAILURE)
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
    """A change of the number of workers."""

    #: Time of the change, in seconds since the epoch.
    at: Time
    #: The cause, in a word.
    cause: _Text
    #: Number of workers before the change.
    before: Count
    #: Number of workers after the change.
    after: Count
    #: The field manager that set the size: a program, not a person. "" if nobody set it.
    by: _Text = ""
    #: Seconds until the host list had all workers; None until it had, or if nobody looked.
    listed: Time | None = None
    #: Seconds until the first step of all ranks began or, in a job that does not tell its progress,
    #: until a rank had been seen in each worker; None until then, or if nobody looked.
    trained: Time | None = None
    #: GPU-seconds that the change cost (model/goodput), worker-seconds without GPUs; None if nobody
    #: knows.
    lost: Time | None = None
    #: Steps that were done again; None if nobody knows.
    repeated: Count | None = None
    #: Number of ranks that the drain-timeout ended.
    cut: Count = 0
    #: A remark, such as why a worker was lost.
    note: _Text = ""

    @property
    def key(self) -> tuple[float, int]:
        """The key that tells this change from every other change of the job."""
        return self.at, self.after

    @property
    def is_loss(self) -> bool:
        """True if workers were lost by their nodes or by themselves, and nobody took them."""
        return self.cause in _LOSSES and self.after < self.before


_change = msgspec.json.Decoder(Change)
_changes = msgspec.json.Decoder(list[Change])


def read_change(text: str) -> Change | None:
    """Return a single change; None if it cannot be read."""
    try:
        return _change.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None


def entries(text: str, *more: Change | None) -> list[Change]:
    """Return the changes in the annotation, the newest last, and those of `more` that it lacks.

    `more` has the change under way that the MPIJob carries.
    """
    try:
        found = _changes.decode(text) if len(text) <= LARGEST else []
    except (msgspec.DecodeError, RecursionError):
        found = []
    known = {change.key: change for change in found}
    return [*known.values(), *(change for change in more if change and change.key not in known)]


def merged(text: str, changes: Iterable[Change]) -> str:
    """Return the annotation with these changes, which complete its entries; the oldest go."""
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
