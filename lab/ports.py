"""Free loopback ports; and whether a program that insists on one can have it."""

import errno
import random
import socket
from contextlib import ExitStack

# Above those of well-known services, below those that Kubernetes gives to Services and the kernel
# to connections (net.ipv4.ip_local_port_range): one of these could be taken while the program that
# has it is started again.
RANGE = range(10_000, 30_000)


def free_ports(count: int) -> list[int]:
    """Return `count` different free TCP ports of 127.0.0.1.

    They are bound all at once, so that none is given twice, and released before returning: another
    program may take one in between. The caller sees that as a component that ends with "address
    already in use", and asks again.
    """
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            one = stack.enter_context(socket.socket())
            port = random.choice(RANGE)  # noqa: S311 - no secret
            try:
                one.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                found.append(port)
    return found


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
