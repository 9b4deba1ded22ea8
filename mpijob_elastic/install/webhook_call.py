"""Whether the API server calls the webhook, by jobs that only the webhook refuses or changes.

The webhook is registered twice: to check objects, and to change them. Each registration may be gone
without the other, and a launcher needs the second.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

_DRY_RUN = {"dryRun": "All"}
# A name that nobody gives to a job of their own.
NAME = "mpijob-elastic-question"
_CONTAINER = {"name": "question", "image": "none", "command": ["true"]}
# How often the webhook is asked: the API server goes on without an answer of 2 s, as if there were
# no webhook, and a busy webhook answers the second time.
_TRIES = 2
# What the API server says where our webhook refuses an object: the end of the webhook's name. The
# webhooks of others refuse objects, too, and a call that fails names ours without an answer.
_OUR_REFUSAL = f'.webhook.{names.PROGRAM}" denied the request'


@dataclass(frozen=True, kw_only=True)
class CalledWebhook:
    """For what the API server calls the webhook in a namespace."""

    #: It checks jobs.
    checks: bool
    #: It has changed a new object; None if it was not asked, or if the question was refused.
    changes: bool | None
    #: It is registered to change objects; None if that may not be read.
    registered: bool | None = None

    @property
    def answers(self) -> bool:
        """Whether it is called at all."""
        return self.checks or self.changes is True

    def lacks(self, namespace: str) -> str:
        """Return what is missing of a webhook that answers, in words; "" for nothing."""
        if self.checks and self.registered is False:
            return unchanging(namespace)
        if self.changes and not self.checks:
            return (
                f"the webhook checks no jobs in namespace {namespace} (no "
                f"ValidatingWebhookConfiguration {names.WEBHOOK_CONFIGURATION}?), so wrong sizes "
                "and annotations are not refused"
            )
        return ""

    def doubt(self, namespace: str) -> str:
        """Return in words what may be missing of a webhook that answers; "" for nothing."""
        if not self.checks or self.registered is not None:
            return ""
        return unmarked(namespace) if self.changes is False else ""


def unchanging(namespace: str) -> str:
    """Return in words that the webhook checks jobs, and is not registered to change any object."""
    return (
        f"the webhook changes nothing in namespace {namespace} (no MutatingWebhookConfiguration "
        f"{names.WEBHOOK_CONFIGURATION}), so new launchers get no {names.KEY_DISCOVER_HOSTS}"
    )


def unmarked(namespace: str) -> str:
    """Return in words that the webhook checks jobs, and has not changed a new one."""
    return (
        f"the webhook has changed no new job in namespace {namespace}: it is slow or older than "
        f"0.4, or the MutatingWebhookConfiguration {names.WEBHOOK_CONFIGURATION} is gone and new "
        f"launchers get no {names.KEY_DISCOVER_HOSTS}"
    )


async def called(
    client: ApiWriter, namespace: str, *, registered: bool | None = None
) -> CalledWebhook:
    """Return for what the webhook is called. Raises as `is_answered` does.

    registered: whether the MutatingWebhookConfiguration is there; None if that may not be read.
    Where that is known, a new job says no more about a webhook that checks jobs: one before 0.4
    changes none, and the API server waits 1 s for that answer.
    """
    checks, changes = await is_answered(client, namespace), None
    if not checks or registered is None:
        changes = await changes_new(client, namespace)
    return CalledWebhook(checks=checks, changes=changes, registered=registered)


async def changes_new(client: ApiWriter, namespace: str) -> bool | None:
    """Return whether the webhook changes new objects of this namespace; it is asked twice.

    The webhook annotates a job with a field that the operator drops, and a dry run stores nothing.
    None if the question is refused, for example because of a quota or by another webhook.
    """
    for _ in range(_TRIES):
        try:
            made = await client.create_object(
                MPI_JOBS.path(namespace), query=_DRY_RUN, body=_marked_job()
            )
        except errors.ApiError:
            return None
        metadata = msgspec.json.decode(made, type=dict[str, Any]).get("metadata") or {}
        if names.PUT_BACK in (metadata.get("annotations") or {}):
            return True
    return False


async def is_answered(client: ApiWriter, namespace: str) -> bool:
    """Return True if the webhook answers for jobs of this namespace; it is asked twice.

    The webhook refuses a bad job, and a dry run stores nothing. Raises `errors.KubeError` if the
    question itself is refused, for example because this account may not create MPIJobs, or because
    the webhook of another program refuses the job.
    """
    for _ in range(_TRIES):
        try:
            await client.create_object(MPI_JOBS.path(namespace), query=_DRY_RUN, body=_bad_job())
        except errors.ApiError as error:
            if not is_our_refusal(error):
                raise
            return True
    return False


async def refuses_edit(client: ApiWriter, namespace: str, job: str, key: str) -> bool:
    """Return True if the webhook refuses a bad value of an annotation of a job.

    A dry run stores nothing, and needs no right but to patch the job. Raises `errors.KubeError` if
    the question itself is refused, or without such a job.
    """
    path, body = MPI_JOBS.path(namespace, job), {"metadata": {"annotations": {key: "?"}}}
    try:
        await client.patch_object(path, body=body, content_type=MERGE_PATCH, query=_DRY_RUN)
    except errors.ApiError as error:
        if not is_our_refusal(error):
            raise
        return True
    return False


def is_our_refusal(error: errors.ApiError) -> bool:
    """Return True if our webhook has refused an object."""
    return _OUR_REFUSAL in error.message


def _bad_job() -> dict[str, Any]:
    reads = {"name": "HOSTS", "value": names.DISCOVER_HOSTS_PATH}
    metadata = {"name": NAME, "annotations": {names.MIN_REPLICAS: "none"}}
    return _job(metadata, {"containers": [{**_CONTAINER, "env": [reads]}]})


def _marked_job() -> dict[str, Any]:
    return _job({"name": NAME}, {"containers": [_CONTAINER], "setHostnameAsFQDN": True})


def _job(metadata: dict[str, Any], pod: dict[str, Any]) -> dict[str, Any]:
    replicas = {"replicas": 1, "template": {"spec": pod}}
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": metadata,
        "spec": {"mpiReplicaSpecs": {"Launcher": replicas, "Worker": replicas}},
    }
