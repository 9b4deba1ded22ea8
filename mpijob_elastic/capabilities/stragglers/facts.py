"""What a job asks: after how long without a step it is named."""

from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job_facts import CapabilityFacts, JobFacts
from mpijob_elastic.model.policy import Annotation

# On an MPIJob, written by users.
PROGRESS_TIMEOUT = f"{names.PREFIX}progress-timeout"
# Seconds; looks are half a minute apart, so less would name jobs at random.
SHORTEST, LONGEST = 60.0, 24 * 3600.0


@dataclass(frozen=True, kw_only=True)
class ProgressTimeout(CapabilityFacts):
    """The longest time between two steps that a job may take without being named."""

    #: Seconds.
    seconds: float

    def findings(self, job: JobFacts) -> Iterable[str]:
        """Yield a warning if nobody would look for steps."""
        if not job.acts_elastic:
            yield f"{PROGRESS_TIMEOUT} has no effect: this job is not elastic"


def _seconds(text: str) -> float | None:
    found = phrases.parse_duration(text)
    return found if found is not None and SHORTEST <= found <= LONGEST else None


ANNOTATION = Annotation(PROGRESS_TIMEOUT, _seconds, 'a duration from 1m to 24h, such as "30m"')
