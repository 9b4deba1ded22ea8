"""LimitRanges as a webhook has seen them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from lab.operator.objects import Object
from mpijob_elastic.admission import parking
from mpijob_elastic.admission.interface import Lookup
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.resources import Resource


def limit_range(*limits: Object) -> bytes:
    return json.dumps(
        {"metadata": {"name": "team", "namespace": "default"}, "spec": {"limits": limits}}
    ).encode()


@dataclass
class Seen(Lookup):
    """A webhook that has seen these LimitRanges, and what it was asked for."""

    found: Iterable[KubeObject] | None
    asked: list[tuple[Resource, str]] = field(default_factory=list)

    def within(self, resource: Resource, namespace: str) -> Iterable[KubeObject]:
        self.asked.append((resource, namespace))
        if self.found is None:
            raise LookupError
        return self.found


MINIMUM = Seen([parking.limit_range(limit_range({"type": "Container", "min": {"cpu": "10m"}}))])
