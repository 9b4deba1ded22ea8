"""State kept beside the cached objects: shared texts, unreadable objects, last words of workers."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from msgspec import structs

from mpijob_elastic import names
from mpijob_elastic.kube.meta import OwnedIdentity, TooLarge
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.kube.watch import Json
from mpijob_elastic.model import bounds
from mpijob_elastic.model.memory import pod_fingerprint, pod_key
from mpijob_elastic.model.pod import PodFacts, Probe
from mpijob_elastic.model.wire import owned
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.views import Probes
from mpijob_elastic.observe.watching import JobKey

# Characters of the reason why an object cannot be read.
LONGEST_REASON = 200

# The value of a field of `PodFacts` that comes from the pod's template.
_Text = tuple[object, ...] | str
# Only the default container can be changed later, so our own writes are never refused.
_texts: Callable[[PodFacts], tuple[_Text, ...]] = attrgetter(
    "containers", "mounting", "default_container", "tolerations"
)


@dataclass(kw_only=True, slots=True)
class _OfJob:
    """The texts of a job's pods."""

    #: By text: the first of all equal texts, and how many pods have it.
    texts: dict[_Text, tuple[_Text, int]] = field(default_factory=dict)
    #: Size of all texts in bytes.
    bytes: int = 0

    def count(self, text: _Text, change: int) -> None:
        first, pods = self.texts.get(text, (text, 0))
        if not pods:
            self.bytes += bounds.size(text)
        if pods + change:
            self.texts[text] = first, pods + change
        else:
            del self.texts[text]
            self.bytes -= bounds.size(text)


_NONE = _OfJob()


class PodTexts:
    """The texts that pods have from their templates.

    The workers of a job share a template, so a text that they share is kept once. Otherwise anybody
    who may create pods could give each of a job's 10,000 pods texts of its own.
    """

    def __init__(self) -> None:
        self._of: dict[JobKey, _OfJob] = defaultdict(_OfJob)

    def shared(self, pod: PodFacts) -> PodFacts:
        """Return the pod with the texts that a pod of its job has already.

        Raises `TooLarge` if the job's pods have too many different texts (see bounds).
        """
        mine, texts = self._of.get(_key(pod), _NONE), _texts(pod)
        new = {text for text in texts if text not in mine.texts}
        if new and mine.bytes + sum(map(bounds.size, new)) > bounds.LARGEST_FACTS:
            raise TooLarge(
                f"the pods of its job have more than {bounds.LARGEST_FACTS:,} bytes of containers "
                "and tolerations that differ; give them the same, and delete this pod"
            )
        containers, mounting, default, tolerations = [
            text if text in new else mine.texts[text][0] for text in texts
        ]
        return structs.replace(
            pod,
            containers=containers,
            mounting=mounting,
            default_container=default,
            tolerations=tolerations,
        )

    def see(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """Note that the pod `new` is kept in place of `old`; either may be None."""
        if (
            old is not None
            and new is not None
            and _key(old) == _key(new)
            and _texts(old) == _texts(new)
        ):
            return
        for pod, change in ((new, 1), (old, -1)):
            if pod is not None:
                mine = self._of[_key(pod)]
                for text in _texts(pod):
                    mine.count(text, change)
                if not mine.texts:
                    del self._of[_key(pod)]


def _key(pod: PodFacts) -> JobKey:
    """Return the key of the pod's job; pods without a job share a key in each namespace."""
    return JobKey(pod.metadata.namespace, pod.metadata.job)


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


class WorkerEnds:
    """The last end of each worker whose main process saw that no rank was left.

    The webhook gives workers that main process (admission/worker_grace). A pod is often gone
    before a probe sees that no rank is left, so its end is kept longer than the pod, as the result
    of a probe would be. now: returns seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ends: dict[Hashable, dict[str, tuple[str, Probe]]] = defaultdict(dict)

    def see(self, job: Hashable, pod: PodFacts) -> None:
        """Keep the last words of the pod's main process, if it left any."""
        if not pod.last_words:
            return
        name, left = pod.metadata.name, pod.last_words == names.RANKS_LEFT
        key = pod_key(name, pod_fingerprint(pod.metadata.uid))
        if self._ends[job].get(name, ("",))[0] != key:
            now = self._now()
            self._ends[job][name] = (
                key,
                Probe(busy_seen=left, left=left, idle_at=now, asked_at=now, idle_since=now),
            )

    def forget(self, job: Hashable) -> None:
        """Forget a job that is gone."""
        self._ends.pop(job, None)

    def over(self, job: Hashable, probes: Probes) -> Probes:
        """Return probes that know these ends as well."""
        ends = dict(self._ends[job].values()) if job in self._ends else {}
        return (lambda pod, occasion: ends.get(pod) or probes(pod, occasion)) if ends else probes
