"""The writes of the HPA of a job: created under its own name, changed and deleted at the uid that was decided on."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.gate import Altered, Gate
from mpijob_elastic.act.own import Operation
from mpijob_elastic.act.owners import controller
from mpijob_elastic.act.writer import Seen
from mpijob_elastic.capabilities.autoscaling import Autoscaling, wire
from mpijob_elastic.capabilities.autoscaling import facts as autoscale
from mpijob_elastic.capabilities.autoscaling.facts import Autoscaler, Scaling
from mpijob_elastic.decide.actions import Action, DeleteAutoscaler, Ungate, WriteAutoscaler
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import AUTOSCALERS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.policy import least_workers
from mpijob_elastic.observe.watching import ByJob, JobKey, Watching


class Watch:
    """The HPAs that scale jobs, and whose pods wait for nodes."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._found: ByJob[Autoscaler] = watching.by_job(AUTOSCALERS, wire.read)

    def seen(self, key: JobKey, view: JobView) -> Autoscaling | None:
        """Return what scales a job; None where nothing does, and it asks for nothing."""
        asked, found = view.facts.of(Scaling), tuple(self._found.of(key).values())
        if not (found or asked):
            return None
        others = tuple(self._others_wait(view.facts)) if asked and asked.fill else ()
        return Autoscaling(autoscalers=found if self._found.known else None, others_wait=others)

    def _others_wait(self, job: JobFacts) -> Iterator[float]:
        """Yield the creation of each worker that another job needs, no node takes, and could run in place of ours."""
        for other, unplaced in self._watching.unplaced():
            if other.metadata.uid == job.metadata.uid or other.place != job.place or other.finished:
                continue
            least = least_workers(other.policy, other.replicas, elastic=other.elastic)
            for name, pod in unplaced.items():
                index = names.worker_index(name, job=other.metadata.name)
                is_its_own = pod.metadata.job_uid == other.metadata.uid
                if is_its_own and index is not None and index < least:
                    yield pod.created_at


class Autoscalers:
    """Carries out the writes of HPAs."""

    kinds = (WriteAutoscaler, DeleteAutoscaler)

    def __init__(self, gate: Gate, seen: Seen, *, events: Events) -> None:
        self._gate = gate
        self._seen = seen
        self._events = events

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out a write. Raises NotLeader, Altered, or as `ApiWriter` does."""
        if isinstance(action, WriteAutoscaler):
            self._seen.see(AUTOSCALERS, await write(self._gate, view.namespace, action))
            self._events.emit(view, action.note)
        elif isinstance(action, DeleteAutoscaler):
            await delete(self._gate, view.namespace, action)
            self._seen.see_gone(AUTOSCALERS, view.namespace, action.ref)
            self._events.emit(view, action.note)

    def forget(self, namespace: str, name: str) -> None:
        """Nothing is kept of a job."""

    async def place(self, _view: JobView, _pod: Identity, _action: Ungate) -> Sequence[Operation]:
        """Return nothing: it binds no pod."""
        return []


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
