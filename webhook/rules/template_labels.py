"""Give the pods of a job the labels of their templates; pure.

[operator] newWorker and newLauncher (pkg/controllers/v1/mpi_job_controller.go) mean to keep them, and drop them.
"""

import re

from mpijob_elastic import names
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import json_patch
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import Pod, role_of

# Labels that somebody reads as their own: newer operators, and Kueue, whose webhook has run before ours.
_TAKEN = ("training.kubeflow.org/", "kueue.x-k8s.io/", names.PREFIX)
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"(?=.{1,253}/)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*/"
_KEY = re.compile(rf"(?:{_DOMAIN})?{_WORD}")
_VALUE = re.compile(rf"(?:{_WORD})?")


def missing(pod: Pod, job: JobFacts | None) -> Patch:
    """Return a patch that adds those that a launcher or worker lacks; what it has stays.

    job: the MPIJob as last seen, elastic or not; `enabled: "false"` leaves its pods as they are.
    """
    role = role_of(pod, job) if job and job.policy.enabled is not False else ""
    if job is None or not role:
        return ()
    lacking = {key: value for key, value in job.pod_labels[role].items() if key not in pod.metadata.labels}
    wanted = ((key, value) for key, value in lacking.items() if _may_be_copied(key, value))
    return tuple(operation for key, value in wanted for operation in json_patch.labelling(key, value))


def _may_be_copied(key: str, value: str) -> bool:
    # The API server does not check an MPIJob's templates, and would refuse a pod with a malformed label.
    is_taken = key.startswith(_TAKEN) or key == names.LABEL_REPLICA_INDEX
    return not is_taken and bool(_KEY.fullmatch(key) and _VALUE.fullmatch(value))
