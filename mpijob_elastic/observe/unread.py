"""Objects of jobs that exist and cannot be read: they cost too much, or have more text than may be kept.

A job says so of its objects, whatever their kind: this is the only place where what a bound leaves out becomes known.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping

from mpijob_elastic.kube.meta import OwnedIdentity
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.wire import Owned, owned
from mpijob_elastic.observe.watching import JobKey

# Characters of the reason.
LONGEST_REASON = 200

_Object = tuple[str, str, str]


class Unread:
    """These objects by their job; `wake` is called with the key of a job of which one comes or goes."""

    def __init__(self, wake: Callable[[JobKey], None]) -> None:
        self._wake = wake
        self._known: dict[_Object, tuple[Owned, str]] = {}
        self._of: dict[JobKey, set[_Object]] = defaultdict(set)

    def put(self, resource: Resource, metadata: OwnedIdentity, why: str) -> None:
        """Take in why an object cannot be read, "" if it can or is gone."""
        one = (resource.kind, metadata.namespace, metadata.name)
        if before := self._known.pop(one, None):
            key = _job(before[0])
            self._of[key].discard(one)
            if not self._of[key]:
                del self._of[key]
            self._wake(key)
        owner = owned(metadata)
        if why and owner.job:
            self._known[one] = (owner, why[:LONGEST_REASON])
            self._of[_job(owner)].add(one)
            self._wake(_job(owner))

    def of(self, key: JobKey, *, uid: str) -> Mapping[str, str]:
        """Return the reasons by kind and name of the objects that the MPIJob of this uid controls."""
        found = ((one, *self._known[one]) for one in sorted(self._of.get(key, ())))
        return {f"{kind} {name}": why for (kind, _, name), owner, why in found if owner.job_uid == uid}


def _job(owner: Owned) -> JobKey:
    return JobKey(owner.namespace, owner.job)
