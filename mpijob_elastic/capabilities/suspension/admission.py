"""Suspension at admission: it has no effect on a job that is not elastic."""

from collections.abc import Iterator

from mpijob_elastic.capabilities.suspension import SUSPEND, Suspended
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules.optional import Admission


class SuspensionAdmission(Admission):
    """What the webhook says of it."""

    def findings(self, _job: MPIJob, about: JobFacts) -> Iterator[str]:
        """Yield that it has no effect."""
        if about.of(Suspended) and not about.elastic:
            yield f"{SUSPEND} has no effect: this job is not elastic"
