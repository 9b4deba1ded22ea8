"""Autoscaling at admission: it has no effect on a job that is not elastic."""

from collections.abc import Iterator

from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE, scaling
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules.optional import Admission


class AutoscalingAdmission(Admission):
    """What the webhook says of it."""

    def findings(self, _job: MPIJob, about: JobFacts) -> Iterator[str]:
        """Yield that it has no effect."""
        if scaling(about).autoscale and not about.elastic:
            yield f"{AUTOSCALE} has no effect: this job is not elastic"
