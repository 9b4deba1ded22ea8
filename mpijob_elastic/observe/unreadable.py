"""Objects of jobs that exist and cannot be read, each with the reason that its job shows."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from mpijob_elastic.kube.meta import OwnedIdentity
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.kube.watch import Json
from mpijob_elastic.model.json_parts import owned
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.watching import JobKey

# Characters of the reason why an object cannot be read.
LONGEST_REASON = 200


class Unread:
    """Objects of jobs that exist and cannot be read.

    They cost too much, or have more text than may be kept. The job shows them to its user, whatever
    their kind: nothing else tells that a bound left an object out. `wake` is called with the job's
    key when such an object comes or goes.
    """

    def __init__(self, wake: Callable[[JobKey], None]) -> None:
        self._wake = wake
        # The key of an object is its kind, namespace and name; the MPIJob that controls it is known
        # by its uid.
        self._job_of: dict[tuple[str, str, str], JobKey] = {}
        self._of: dict[JobKey, dict[tuple[str, str, str], tuple[str, str]]] = defaultdict(dict)
        # What is certain of each such pod, by the same key.
        self._pods: dict[tuple[str, str, str], PodFacts] = {}

    def put(self, resource: Resource, metadata: OwnedIdentity, why: str, raw: Json = b"") -> None:
        """Note why an object cannot be read; "" if it can be read or is gone. raw: its JSON."""
        one = (resource.kind, metadata.namespace, metadata.name)
        if before := self._job_of.pop(one, None):
            self._pods.pop(one, None)
            del self._of[before][one]
            if not self._of[before]:
                del self._of[before]
            self._wake(before)
        owner = owned(metadata)
        if why and owner.job:
            key = JobKey(owner.namespace, owner.job)
            self._job_of[one] = key
            self._of[key][one] = owner.job_uid, why[:LONGEST_REASON]
            if resource is PODS:
                self._pods[one] = facts_pod.read_part(owner, raw)
            self._wake(key)

    def of(self, key: JobKey, *, uid: str) -> Mapping[str, str]:
        """Return the unreadable objects of the MPIJob with this uid, each with its reason."""
        found = sorted(self._of.get(key, {}).items())
        return {f"{kind} {name}": why for (kind, _, name), (owner, why) in found if owner == uid}

    def pods(self, key: JobKey, *, uid: str) -> Mapping[str, PodFacts]:
        """Return what is certain of the unreadable pods of the MPIJob with this uid, by name."""
        found = sorted(self._of.get(key, {}).items())
        mine = [one for one, (owner, _) in found if owner == uid and one in self._pods]
        return {one[2]: self._pods[one] for one in mine}
