"""aiohttp, imported without the certificate authorities of the machine.

When it is imported it makes two TLS contexts, and reads all of the machine's authorities for each:
35 ms and 3 MiB. Neither is used, because every connection has a context of its own (`Access.tls`).
What would use one all the same trusts nobody. A process that is to do without them imports this
module before any other that imports aiohttp.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

# The variables in which OpenSSL looks for authorities
# (https://docs.openssl.org/3.0/man3/SSL_CTX_load_verify_locations/).
_NOBODY = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}


@contextmanager
def _without_authorities() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(_NOBODY)
    try:
        yield
    finally:
        for name in _NOBODY:
            del os.environ[name]
        os.environ.update(before)


with _without_authorities():
    import aiohttp

__all__ = ["aiohttp"]
