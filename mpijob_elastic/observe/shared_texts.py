"""The texts that pods have from their templates, each kept once for all pods of a job."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from msgspec import structs

from mpijob_elastic.kube.meta import TooLarge
from mpijob_elastic.model import bounds
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe.watching import JobKey

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
