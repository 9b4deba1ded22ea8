"""A container of its own: a namespace of processes whose first process is `sleep`, on this machine."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
needed = pytest.mark.skipif(
    subprocess.run([*NAMESPACE, "true"], check=False).returncode != 0, reason="no PID namespace"
)


@contextmanager
def container() -> Iterator[list[str]]:
    """A container with its main process alone; what runs a command in it."""
    with subprocess.Popen([*NAMESPACE, "sleep", "300"], start_new_session=True) as outside:
        try:
            children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
            while not children.read_text():
                pass
            main = children.read_text().strip()
            while not Path(f"/proc/{main}/cmdline").read_bytes().startswith(b"sleep"):
                pass  # before that /proc is not mounted
            yield ["nsenter", "--target", main, "--pid", "--mount", "--"]
        finally:
            outside.kill()
