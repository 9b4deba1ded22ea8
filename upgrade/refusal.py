"""Why the upgrade tool does not do what it was asked."""

from __future__ import annotations

from mpijob_elastic.kube.errors import KubeError


class Refused(KubeError):
    """Says what was found, where, why that is no ground to go on, and what to do next."""
