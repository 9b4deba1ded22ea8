"""Trust: since when the API server trusts each CA, as the webhook configurations show it; a pure value.

Each API server follows the configurations by a watch, so it trusts a new CA only after a moment. `carries` therefore
requires that a CA has been in every bundle for a while, without a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cryptography import x509


@dataclass(frozen=True, kw_only=True)
class Trust:
    """The bundles seen so far.

    since: when each CA was first seen in all of them, in seconds of a monotonic clock. asked: there is a bundle;
    without any, the API server does not call us, and there is nothing to wait for.
    """

    asked: bool = True
    since: Mapping[x509.Certificate, float] = field(default_factory=dict)

    def seen(self, bundles: Collection[Collection[x509.Certificate]], *, at: float) -> Trust:
        """Return the trust after a look at every caBundle."""
        if not bundles:
            return Trust(asked=False)
        everywhere = frozenset.intersection(*(frozenset(bundle) for bundle in bundles))
        return Trust(since={authority: self.since.get(authority, at) for authority in everywhere})

    def carries(self, certificate: x509.Certificate, *, at: float, settled: float) -> bool:
        """Return True if the API server trusts that CA's certificates; `settled` in seconds."""
        if not self.asked:
            return True
        since = self.since.get(certificate)
        return since is not None and at - since >= settled
