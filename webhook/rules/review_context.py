"""What a review itself does not hold: the cluster as last seen, and the time. Handed in, so that answers stay pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from webhook.rules.hpa_facts import HpaFacts
from webhook.rules.job_size import JobSize


@dataclass(frozen=True, kw_only=True)
class ReviewContext:
    """job: the MPIJob of that namespace and name, None where it is not known (yet). autoscalers: the HPAs of it."""

    job: Callable[[str, str], JobSize | None]
    autoscalers: Callable[[str, str], Sequence[HpaFacts]]
    now: Callable[[], datetime]


def _never() -> datetime:
    return datetime.fromtimestamp(0, UTC)


# Where nothing of the cluster is kept; at that time no job is near its end.
NOTHING = ReviewContext(job=lambda _namespace, _name: None, autoscalers=lambda _namespace, _job: (), now=_never)
