"""The time that ranks of elastic.sh get to save: --grace, which the drain-timeout must allow; pure.

A worker that leaves is deleted at the end of the drain-timeout, whatever runs in it. elastic.sh
learns of the list a little later than the controller counts, and ends ranks that do not end by
themselves; both take some seconds.
"""

import math
from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.admission.review import Refusal
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.launch_command import ELASTIC_SH
from mpijob_elastic.model.policy import LONGEST_DRAIN_TIMEOUT

# Seconds of the drain-timeout in which ranks are not expected to save (`find_grace` in elastic.sh).
RESERVE = 10
# Seconds that elastic.sh gives ranks without --grace, however short the drain-timeout is. --grace
# may be as long: who wants workers to go at once does not have to give it up.
LEAST = 5
_FIELD = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]"


def refusals(new: JobFacts, old: JobFacts | None) -> Iterator[Refusal]:
    """Yield a refusal if an edit makes --grace exceed what the drain-timeout allows, or by more."""
    excess = _excess(new)
    launch = new.launch
    if launch is None or launch.grace is None or excess <= (_excess(old) if old else 0):
        return
    drain, longest = new.policy.drain_timeout, _longest(new)
    message = (
        f"elastic.sh --grace {launch.grace} is above {longest}, the most that the drain-timeout "
        f"({drain:g} s) allows; use --grace {longest}"
    )
    enough = launch.grace + RESERVE
    if enough <= LONGEST_DRAIN_TIMEOUT:
        message += f', or the annotation {names.DRAIN_TIMEOUT}: "{enough}s"'
    yield Refusal(field=_FIELD, message=message)


def _longest(job: JobFacts) -> int:
    """Return the longest --grace that the drain-timeout allows, in seconds."""
    return max(LEAST, math.floor(job.policy.drain_timeout) - RESERVE)


def _excess(job: JobFacts) -> int:
    """Return by how many seconds --grace is too long; 0 if it fits, or nobody can say."""
    launch = job.launch
    if not job.elastic or launch is None or launch.program != ELASTIC_SH:
        return 0
    return max(0, (launch.grace or 0) - _longest(job))
