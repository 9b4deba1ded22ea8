"""Since when the API server trusts which CA, as far as the webhook configurations tell; a small pure value.

A configuration that carries a CA is not yet one that the API server acts by: each API server follows the configurations
by a watch. Hence `carries` asks that a CA has been seen in every bundle for a while, without a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cryptography import x509


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What was seen of the bundles so far.

    since: when each CA was first seen in all of them, in seconds of a monotonic clock. asked: whether there is any
    bundle to be trusted by: without one nobody calls us, and nothing has to be waited for.
    """

    asked: bool = True
    since: Mapping[x509.Certificate, float] = field(default_factory=dict)

    def seen(self, bundles: Collection[Collection[x509.Certificate]], *, at: float) -> Trust:
        """The trust after a look at every caBundle there is."""
        if not bundles:
            return Trust(asked=False)
        everywhere = frozenset.intersection(*(frozenset(bundle) for bundle in bundles))
        return Trust(since={one: self.since.get(one, at) for one in everywhere})

    def carries(self, certificate: x509.Certificate, *, at: float, settled: float) -> bool:
        """Whether a certificate signed by that CA would be believed now; `settled` in seconds."""
        if not self.asked:
            return True
        since = self.since.get(certificate)
        return since is not None and at - since >= settled
