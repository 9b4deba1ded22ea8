"""Free loopback ports, chosen by the kernel; and whether a program that insists on one can have it."""

import errno
import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Return `count` different free TCP ports of 127.0.0.1.

    They are bound all at once, so that none is given twice, and released before returning: another program may take one
    in between. The caller sees that as a component that ends with "address already in use", and asks again.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def taken(port: int) -> bool:
    """Tell whether a program that wants to listen on `port` of all addresses, as Go's ":PORT", could not."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        socket.create_server(("", port), family=family, dualstack_ipv6=both).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return True
        raise
    return False
