"""The texts that pods have from their templates, of which the pods of one job keep little together.

The workers of a job have one template, so what they share is kept once. Anybody who may create pods could otherwise
give each of a job's 10,000 pods texts of its own.
"""

from collections import defaultdict
from typing import NamedTuple

from msgspec import structs

from mpijob_elastic.kube.cost import TooLarge
from mpijob_elastic.model import bounds
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.model.taints import Toleration
from mpijob_elastic.observe.watching import JobKey


class _Texts(NamedTuple):
    """These fields of `PodFacts`."""

    containers: tuple[str, ...]
    mounting: tuple[str, ...]
    default_container: str
    tolerations: tuple[Toleration, ...]
    gates: tuple[str, ...]


class _Kept:
    """Texts, how many bytes they are, and how many pods have them."""

    def __init__(self, texts: _Texts, size: int) -> None:
        self.texts, self.size, self.pods = texts, size, 0


class PodTexts:
    """The texts of all pods that are kept, by job."""

    def __init__(self) -> None:
        self._of: dict[JobKey, dict[_Texts, _Kept]] = defaultdict(dict)

    def shared(self, pod: PodFacts, *, before: PodFacts | None) -> PodFacts:
        """Return the pod, kept in the place of another, with the texts that a pod of its job has already.

        Raises `TooLarge` (see bounds), but never for a pod that only becomes smaller.
        """
        texts, former = _texts(pod), _texts(before) if before else None
        there = self._of.get(_key(pod), {})
        if known := there.get(texts):
            return structs.replace(pod, **known.texts._asdict())
        stay = (one.size for one in there.values() if one.pods > 1 or one.texts != former)
        if bounds.size(texts) + sum(stay) > bounds.LARGEST_FACTS:
            raise TooLarge(
                f"the pods of its job have more than {bounds.LARGEST_FACTS:,} bytes of texts that differ; give them "
                "the same containers, tolerations and scheduling gates"
            )
        return pod

    def see(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """Take in that a pod is kept in the place of another; None if there is none."""
        if new is not None:
            texts, there = _texts(new), self._of[_key(new)]
            if texts not in there:
                there[texts] = _Kept(texts, bounds.size(texts))
            there[texts].pods += 1
        if old is not None:
            texts, there = _texts(old), self._of[_key(old)]
            there[texts].pods -= 1
            if not there[texts].pods:
                del there[texts]
            if not there:
                del self._of[_key(old)]


def _key(pod: PodFacts) -> JobKey:
    """Return its job's key; pods without a job have one in each namespace."""
    return JobKey(pod.metadata.namespace, pod.metadata.job)


def _texts(pod: PodFacts) -> _Texts:
    return _Texts(pod.containers, pod.mounting, pod.default_container, pod.tolerations, pod.gates)
