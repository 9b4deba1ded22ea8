"""What a client needs to know of an API server: its address, whom to trust, and who asks.

`in_cluster` makes it of the files in a pod, `kubeconfig` of the files that kubectl reads.
"""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mpijob_elastic.kube import errors


class NoCredentials(Exception):
    """The credentials cannot be read at the moment; a later request may have them."""


async def anonymous() -> str:
    """Return "": requests without an Authorization header."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Access:
    """How to reach one API server, and as whom."""

    #: Its URL.
    host: str
    #: Whom to trust, with the client's certificate, if it has one.
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    #: The name that must be in the server's certificate; None for the host of the URL.
    server_name: str | None = None
    #: URL of the proxy, perhaps with a password; None to go without.
    proxy: str | None = field(default=None, repr=False)
    #: Headers of each request.
    headers: tuple[tuple[str, str], ...] = ()
    #: Returns the value of the Authorization header for a request that is sent now, "" for none.
    #: Raises `NoCredentials`.
    authorization: Callable[[], Awaitable[str]] = anonymous


def unusable(where: str, reason: str) -> errors.Unconfigured:
    """Return the error for a configuration that cannot be used, in one sentence.

    where: what was read. reason: what is wrong with it.
    """
    said = " ".join(reason.split())
    return errors.Unconfigured(
        f"no usable cluster configuration in {where}: {said}; pass --kubeconfig or set KUBECONFIG"
    )
