"""A certificate and its key, given to TLS without a file on a disk."""

import os
import ssl


def load_pair(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a certificate with those that follow it, and its key, as PEM.

    Raises OSError if it is not usable, as is an encrypted key. It needs Linux.
    """
    # The ssl module reads only files. This file is in memory: the key reaches no disk, and the root
    # may be read-only.
    descriptor = os.memfd_create("certificate")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        # A wrong password, in place of the prompt on the terminal that an encrypted key would
        # cause.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=b"")
    finally:
        os.close(descriptor)
