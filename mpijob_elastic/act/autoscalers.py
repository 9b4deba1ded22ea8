"""The writes of the HPA of a job: created under its own name, changed and deleted at the uid that was decided on."""

from contextlib import suppress

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act.gate import Altered, Gate
from mpijob_elastic.act.owners import controller
from mpijob_elastic.decide.actions import DeleteAutoscaler, WriteAutoscaler
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import AUTOSCALERS
from mpijob_elastic.model import autoscale


async def write(gate: Gate, namespace: str, action: WriteAutoscaler) -> bytes:
    """Create or change an HPA, and return it. Raises NotLeader, Altered, or as `ApiWriter` does."""
    annotations = {names.SPEC: autoscale.digest(action.spec)}
    if action.ref is None:
        body = _new(action, annotations)
        answer = await gate.create_object(AUTOSCALERS, namespace=namespace, body=body)
    else:
        # No resourceVersion: the HPA controller writes the status all the time.
        patch = {"metadata": {"uid": action.ref.uid, "annotations": annotations}, "spec": action.spec}
        answer = await gate.patch_object(AUTOSCALERS, namespace=namespace, name=action.ref.name, body=patch)
    if not annotations.items() <= msgspec.json.decode(answer)["metadata"].get("annotations", {}).items():
        raise Altered(f"HPA of {namespace}/{action.job.name}: an admission plugin changes what is written")
    return answer


async def delete(gate: Gate, namespace: str, action: DeleteAutoscaler) -> None:
    """Delete an HPA. Raises NotLeader, or as `ApiWriter` does."""
    with suppress(errors.NotFound):
        await gate.delete_object(AUTOSCALERS, namespace=namespace, name=action.ref.name, uid=action.ref.uid)


def _new(action: WriteAutoscaler, annotations: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": {
            "name": names.autoscaler(action.job.name),
            "labels": {names.LABEL_MANAGED_BY: names.PROGRAM},
            "annotations": annotations,
            "ownerReferences": [controller(action.job)],
        },
        "spec": action.spec,
    }
