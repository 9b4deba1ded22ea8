"""A Prometheus that scrapes what a test says."""

import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from lab.ports import free_ports
from tests.peers.processes import running

PATIENCE = 60.0  # seconds to become ready
POLL = 0.1  # seconds


@dataclass(frozen=True, kw_only=True)
class Prometheus:
    """The running program, which scrapes once a second."""

    url: str

    @classmethod
    @contextmanager
    def start(cls, program: Path, folder: Path, *, jobs: Sequence[Mapping[str, Any]]) -> Iterator[Self]:
        """Run it for as long as the block lasts, with its files in a folder; `jobs` are scrape configurations."""
        [port] = free_ports(1)
        one = cls(url=f"http://127.0.0.1:{port}")
        every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config = {"global": every, "scrape_configs": [*jobs]}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        options = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
        command = [str(program), *options, f"--web.listen-address=127.0.0.1:{port}"]
        with running(command, folder / "prometheus.log") as process:
            one._await_ready(process)
            yield one

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/-/ready", timeout=10).close()  # noqa: S310
            except OSError:
                ended = process.poll() is not None or time.monotonic() > deadline
                assert not ended, "Prometheus does not start"
                time.sleep(POLL)
            else:
                return
