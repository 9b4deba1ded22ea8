"""The texts that pods have from their templates, of which the pods of one job keep little together.

The workers of a job have one template, so what they share is kept once. Anybody who may create pods could otherwise
give each of a job's 10,000 pods texts of its own. Nobody can change these texts later but for the default container, so
our own writes are never refused.
"""

from collections import Counter, defaultdict

from msgspec import structs

from mpijob_elastic.kube.cost import TooLarge
from mpijob_elastic.model import bounds
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe.watching import JobKey

# What a field of `PodFacts` has of them.
_Text = tuple[object, ...] | str


class PodTexts:
    """The texts of all pods that are kept, by job."""

    def __init__(self) -> None:
        self._kept: dict[JobKey, dict[_Text, _Text]] = defaultdict(dict)
        self._pods: dict[JobKey, Counter[_Text]] = defaultdict(Counter)
        self._bytes: Counter[JobKey] = Counter()

    def shared(self, pod: PodFacts) -> PodFacts:
        """Return the pod with the texts that a pod of its job has already. Raises `TooLarge`: see bounds."""
        key, texts = _key(pod), _texts(pod)
        kept = self._kept.get(key, {})
        new = {text for text in texts if text not in kept}
        if new and self._bytes[key] + sum(map(bounds.size, new)) > bounds.LARGEST_FACTS:
            raise TooLarge(
                f"the pods of its job have more than {bounds.LARGEST_FACTS:,} bytes of containers and tolerations that "
                "differ; give them the same, and delete this pod"
            )
        containers, mounting, default_container, tolerations = (kept.get(text, text) for text in texts)
        return structs.replace(
            pod,
            containers=containers,
            mounting=mounting,
            default_container=default_container,
            tolerations=tolerations,
        )

    def see(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """Take in that a pod is kept in the place of another; None if there is none."""
        if old is not None and new is not None and _key(old) == _key(new) and _texts(old) == _texts(new):
            return
        if new is not None:
            key = _key(new)
            for text in _texts(new):
                if text not in self._kept[key]:
                    self._kept[key][text] = text
                    self._bytes[key] += bounds.size(text)
                self._pods[key][text] += 1
        if old is not None:
            key = _key(old)
            for text in _texts(old):
                self._pods[key][text] -= 1
                if not self._pods[key][text]:
                    del self._pods[key][text], self._kept[key][text]
                    self._bytes[key] -= bounds.size(text)
            if not self._kept[key]:
                del self._pods[key], self._kept[key], self._bytes[key]


def _key(pod: PodFacts) -> JobKey:
    """Return its job's key; pods without a job have one in each namespace."""
    return JobKey(pod.metadata.namespace, pod.metadata.job)


def _texts(pod: PodFacts) -> tuple[_Text, ...]:
    return pod.containers, pod.mounting, pod.default_container, pod.tolerations
