"""Processes with the command line of kubexec.sh's kubectl, and the shells that look for them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHELLS = [["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"]]
SECRET = "HOROVOD_SECRET_KEY=of nobody's business\nand more"


@contextmanager
def kubectl(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the command line of kubexec.sh's kubectl."""
    (folder / "exec").write_text("sleep 300\n")
    command = ["/opt/kube/kubectl", "exec", *words, "--", "/bin/sh", "-c", f"env {SECRET} python3 train.py"]
    # The shell takes its first argument, the word exec, for its script.
    with subprocess.Popen(command, executable="/bin/sh", cwd=folder) as process:
        try:
            yield process
        finally:
            process.kill()
