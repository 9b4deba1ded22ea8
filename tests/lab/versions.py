"""What the lab's version of Kubernetes is too old for: tests of it are skipped, and say why."""

import pytest

from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.install.server import OPTIONAL_KINDS


def serves(kind: str) -> bool:
    """Tell whether this version serves an optional kind in the API version that we install."""
    return OPTIONAL_KINDS[kind] <= DEFAULT_KUBERNETES.minor


def needs(kind: str) -> pytest.MarkDecorator:
    """Skip a test where an optional kind is not served."""
    since = OPTIONAL_KINDS[kind]
    return pytest.mark.skipif(
        not serves(kind),
        reason=f"{DEFAULT_KUBERNETES} serves no {kind} v1; Kubernetes 1.{since} and newer do",
    )


EVERYTHING = all(map(serves, OPTIONAL_KINDS))
