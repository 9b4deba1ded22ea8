"""Free loopback ports, chosen by the kernel."""

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
