"""What an optional capability knows of a job.

The core sees only that it is there; see decide.wishes for what it wants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpijob_elastic.model.job_facts import JobFacts


class Known:
    """Facts of one capability about one job, immutable and comparable; none where it has nothing to do with it.

    gate: the scheduling gate (names.GATES) that new pods of the job get for what its MPIJob asks, "" for none. rations:
    its workers start one by one, as somebody else allows. sized: what its MPIJob asks for needs an elastic job. sizes:
    those that an elastic job may have, in order; none where it may have any. skips: indices of workers that an elastic
    job does without. resizes: what it asks for changes its size. queued: a queue says when its pods may start, and that
    gate holds them until then. size_cause: why it sets the size, in a word for the history.
    """

    gate: str = ""
    rations: bool = False
    sized: bool = False
    sizes: Sequence[int] = ()
    skips: Collection[int] = frozenset()
    resizes: bool = False
    queued: bool = False
    size_cause: str = ""

    def findings(self, _job: JobFacts) -> Iterable[str]:
        """Yield what the webhook warns of, because what is asked for has no effect, or a bad one."""
        return ()
