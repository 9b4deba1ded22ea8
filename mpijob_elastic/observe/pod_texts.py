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

# A field of `PodFacts` that has such a text.
_Text = tuple[object, ...] | str
_FIELDS = ("containers", "mounting", "default_container", "tolerations")


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
        more = sum(bounds.size(text) for text in {*texts.values()} if text not in kept)
        if more and self._bytes[key] + more > bounds.LARGEST_FACTS:
            raise TooLarge(
                f"the pods of its job have more than {bounds.LARGEST_FACTS:,} bytes of containers and tolerations that "
                "differ; give them the same, and delete this pod"
            )
        return structs.replace(pod, **{field: kept.get(text, text) for field, text in texts.items()})

    def see(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """Take in that a pod is kept in the place of another; None if there is none."""
        if new is not None:
            key = _key(new)
            for text in _texts(new).values():
                if text not in self._kept[key]:
                    self._kept[key][text] = text
                    self._bytes[key] += bounds.size(text)
                self._pods[key][text] += 1
        if old is not None:
            key = _key(old)
            for text in _texts(old).values():
                self._pods[key][text] -= 1
                if not self._pods[key][text]:
                    del self._pods[key][text], self._kept[key][text]
                    self._bytes[key] -= bounds.size(text)
            if not self._kept[key]:
                del self._pods[key], self._kept[key], self._bytes[key]


def _key(pod: PodFacts) -> JobKey:
    """Return its job's key; pods without a job have one in each namespace."""
    return JobKey(pod.metadata.namespace, pod.metadata.job)


def _texts(pod: PodFacts) -> dict[str, _Text]:
    return {field: getattr(pod, field) for field in _FIELDS}
