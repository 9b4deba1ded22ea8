"""Why the upgrade tool does not do what it was asked."""

from __future__ import annotations

from mpijob_elastic.kube.errors import KubeError

# Looks at what somebody else may change at the same moment.
ATTEMPTS = 5


class Refused(KubeError):
    """Says what was found, where, why that is no ground to go on, and what to do next."""


def contended(what: object) -> Refused:
    """Somebody else changes just this, whenever we are about to."""
    return Refused(
        f"{what} was changed by somebody else {ATTEMPTS} times in a row; find out by whom, and run this again"
    )
