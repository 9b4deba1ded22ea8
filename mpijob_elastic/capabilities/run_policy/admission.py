"""The run policy at admission: what the launcher gets from it, and that the operator ignores it."""

from collections.abc import Iterator, Mapping

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.interface import CapabilityAdmission, Lookup
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod, role_of
from mpijob_elastic.capabilities.run_policy import RUN_POLICY, RunPolicy, ignored
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob

# A key of a run policy that the annotation does not make act either. The room of gangs speaks of
# another one, `schedulingPolicy`.
_ELSEWHERE = "cleanPodPolicy"


class RunPolicyAdmission(CapabilityAdmission):
    """What the webhook does for a run policy."""

    def patched(self, pod: AdmittedPod, job: JobFacts, _lookup: Lookup) -> Patch:
        """Return a patch that gives the operator's launcher what its job's run policy asks for.

        The job may be elastic or not. A deadline in the pod itself comes first. [operator] A
        launcher that its kubelet ends for a deadline fails the job: Failed, reason
        DeadlineExceeded. A launcher that may fail and be tried again is restarted in place.
        """
        asked, spec = job.of(RunPolicy), pod.spec
        is_operators = pod.metadata.labels.get(names.LABEL_GROUP_NAME) == names.GROUP
        if asked is None or not is_operators or role_of(pod, job) != names.ROLE_LAUNCHER:
            return ()
        patch: Patch = ()
        if asked.active_deadline is not None and spec.active_deadline_seconds is None:
            patch = json_patch.adding(at="/spec/activeDeadlineSeconds", value=asked.active_deadline)
        if asked.backoff_limit and spec.restart_policy == "Never":
            patch = (*patch, *json_patch.replacing(at="/spec/restartPolicy", value="OnFailure"))
        return patch

    def findings(self, job: MPIJob, about: JobFacts) -> Iterator[str]:
        """Yield a warning on each part of the run policy on which nobody acts."""
        given = job.spec.run_policy if job.spec else None
        unheeded = ignored(given) if about.of(RunPolicy) is None else []
        if unheeded:
            listed = phrases.listed(unheeded)
            yield (
                f"mpi-operator v0.2.3 ignores {listed} of spec.runPolicy; annotate the job "
                f'{RUN_POLICY}: "true"'
            )
        if isinstance(given, Mapping) and given.get(_ELSEWHERE) is not None:
            yield (
                f"mpi-operator v0.2.3 ignores {_ELSEWHERE} of spec.runPolicy; "
                "write it directly below spec"
            )
