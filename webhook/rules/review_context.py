"""The facts that a review lacks: the cluster as last seen, and the time. Passed in, so that answers stay pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules.hpa_facts import HpaFacts


@dataclass(frozen=True, kw_only=True)
class ReviewContext:
    """job: returns the MPIJob of a namespace and name, None while it is not known. autoscalers: returns its HPAs.

    now: seconds since the epoch.
    """

    job: Callable[[str, str], JobFacts | None]
    autoscalers: Callable[[str, str], Sequence[HpaFacts]]
    now: Callable[[], float]


# For a webhook that watches nothing; at time 0 no job is near its end.
NOTHING = ReviewContext(job=lambda _namespace, _name: None, autoscalers=lambda _namespace, _job: (), now=lambda: 0.0)
