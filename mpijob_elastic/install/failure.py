"""Why an installation failed."""

from __future__ import annotations

from mpijob_elastic.kube.errors import KubeError


class InstallError(KubeError):
    """Says what was wrong, where, what is allowed and what to do next."""
