"""aiohttp, imported without what no process of ours uses, but would pay for.

aiohttp makes two TLS contexts when it is imported, and reads all of the machine's certificate
authorities for each: 35 ms and 3 MiB. Every connection has a context of its own (`Access.tls`).
What would use one of aiohttp's all the same trusts nobody.

A process that is to do without all this imports this module before any other that imports aiohttp.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLES = {
    # Where OpenSSL looks for authorities
    # (https://docs.openssl.org/3.0/man3/SSL_CTX_load_verify_locations/).
    "SSL_CERT_FILE": os.devnull,
    "SSL_CERT_DIR": os.devnull,
}


@contextmanager
def _with_variables() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(_VARIABLES)
    try:
        yield
    finally:
        for name in _VARIABLES:
            del os.environ[name]
        os.environ.update(before)


with _with_variables():
    import aiohttp

__all__ = ["aiohttp"]
