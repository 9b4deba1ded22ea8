"""Kubernetes versions: how they are written, which one is pinned, and which one is the default."""

import os
import re
from dataclasses import dataclass

from lab.errors import LabError

_PATTERN = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, order=True)
class KubernetesVersion:
    """A release of Kubernetes, written `v1.34.4`."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "KubernetesVersion":
        """Read `v1.34.4` or `1.34.4`; raise LabError for anything else."""
        match = _PATTERN.fullmatch(text)
        if match is None or int(match[1]) != 1:
            raise LabError(
                f"Kubernetes version {text!r} is not of the form v1.MINOR.PATCH, as in v1.34.4."
            )
        return cls(*(int(part) for part in match.groups()))

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}"

    @property
    def staging(self) -> str:
        """Version of the k8s.io staging modules of this release (v1.34.4 publishes them as v0.34.4)."""
        return f"v0.{self.minor}.{self.patch}"


PINNED_KUBERNETES = KubernetesVersion(1, 34, 4)
"""The release that lab/binaries/kubernetes/go.mod pins."""

VARIABLE = "LAB_KUBERNETES"
DEFAULT_KUBERNETES = KubernetesVersion.parse(os.environ.get(VARIABLE) or str(PINNED_KUBERNETES))
"""The release that labs run where nobody asks for another: tests, demo and benchmarks among them."""
