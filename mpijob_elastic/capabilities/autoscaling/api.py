"""The names of autoscaling: annotations of ours, and the HPA's kind in the API."""

from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.names import PREFIX

# On an MPIJob, written by users. The second: the HPA that the controller keeps for the job (see `facts`).
SCALE_TIMEOUT = f"{PREFIX}scale-timeout"
AUTOSCALE = f"{PREFIX}autoscale"
# On such an HPA, written by the controller: the digest of the spec that it was given.
SPEC_DIGEST = f"{PREFIX}spec"

# v2: the first with external metrics and a behaviour.
AUTOSCALERS = Resource(
    group="autoscaling", version="v2", plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler"
)


def autoscaler_name(job: str) -> str:
    """Return the name of the HPA that we make for a job [ours]: a user's own often has the job's name."""
    return f"mpijob-{job}"
