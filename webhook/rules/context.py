"""What a review needs beside its request, and what it is answered with; pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules.optional import Admission, Lookup, Unseen
from webhook.rules.quota import QuotaFacts
from webhook.rules.review import Request, Verdict


@dataclass(frozen=True, kw_only=True)
class ReviewContext:
    """The facts that a review lacks: the cluster as last seen, and the time; passed in, so that answers stay pure.

    job: returns the MPIJob of a namespace and name, None while it is not known. quotas: returns the ResourceQuotas of a
    namespace. now: returns seconds since the epoch. lookup: what capabilities look up (see `optional`). rooms: what
    they add.
    """

    job: Callable[[str, str], JobFacts | None]
    now: Callable[[], float]
    quotas: Callable[[str], Sequence[QuotaFacts]] = lambda _namespace: ()
    lookup: Lookup = field(default_factory=Unseen)
    rooms: Sequence[Admission] = ()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A verdict and a word for it, for metrics and logs."""

    verdict: Verdict
    outcome: str


def answered(verdict: Verdict) -> Answer:
    """Return the verdict with its word."""
    return Answer(verdict=verdict, outcome=_outcome(verdict))


def _outcome(verdict: Verdict) -> str:
    if not verdict.allowed:
        return "postponed" if verdict.postponed else "rejected"
    if verdict.patch:
        return "patched"
    return "warned" if verdict.warnings else "unchanged"


class Hook(Protocol):
    """Answers reviews at a path that is a secret, because an answer there changes an object."""

    def is_at(self, path: str) -> bool:
        """Return True if a request to that path comes from the API server."""

    async def answer(self, request: Request) -> Answer:
        """Answer a review."""
