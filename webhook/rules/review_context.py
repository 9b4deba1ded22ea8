"""What a review itself does not hold: the cluster as last seen, and the time. Handed in, so that answers stay pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from webhook.rules.hpa_facts import Autoscaler
from webhook.rules.job_size import Sized


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """job: the MPIJob of that namespace and name, None where it is not known (yet). autoscalers: the HPAs of it."""

    job: Callable[[str, str], Sized | None]
    autoscalers: Callable[[str, str], Sequence[Autoscaler]]
    now: Callable[[], datetime]


def _never() -> datetime:
    return datetime.fromtimestamp(0, UTC)


# Where nothing of the cluster is kept; at that time no job is near its end.
NOTHING = Surroundings(job=lambda _namespace, _name: None, autoscalers=lambda _namespace, _job: (), now=_never)
