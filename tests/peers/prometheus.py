"""A Prometheus that scrapes replicas of the lab, under the labels that our PodMonitor would give them."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from lab.ports import free_ports
from lab.processes import await_start
from mpijob_elastic import names
from tests.peers.processes import running

PATIENCE = 60.0  # seconds to become ready


@dataclass(frozen=True, kw_only=True)
class Prometheus:
    """The running program, which scrapes once a second."""

    url: str
    targets: Path

    @classmethod
    @contextmanager
    def start(
        cls,
        program: Path,
        folder: Path,
        *,
        rules: Mapping[str, Any] | None = None,
        jobs: Sequence[Mapping[str, Any]] = (),
    ) -> Iterator[Self]:
        """Run it for as long as the block lasts, with its files in a folder.

        `rules` are those of a rule file, `jobs` further scrape configurations.
        """
        [port] = free_ports(1)
        one = cls(url=f"http://127.0.0.1:{port}", targets=folder / "targets.json")
        one.scrape({})
        (folder / "rules.yaml").write_text(yaml.safe_dump(dict(rules or {"groups": []})))
        job = {
            "job_name": f"{names.NAMESPACE}/{names.PROGRAM}",
            "file_sd_configs": [{"files": [str(one.targets)]}],
        }
        every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config = {"global": every, "scrape_configs": [job, *jobs], "rule_files": ["rules.yaml"]}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        options = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
        command = [str(program), *options, f"--web.listen-address=127.0.0.1:{port}"]
        log = folder / "prometheus.log"
        with running(command, log) as process:
            await_start(process, one._ready, name="Prometheus", log=log, within=PATIENCE)
            yield one

    def scrape(self, pods: Mapping[str, str]) -> None:
        """Scrape these pods, each by the URL of its health, and no other; a name begins with its container's."""
        found = []
        for pod, health in pods.items():
            labels = {"namespace": names.NAMESPACE, "pod": pod, "container": pod.partition("-")[0]}
            found.append({"targets": [health.removeprefix("http://")], "labels": labels})
        whole = self.targets.with_suffix(".new")
        whole.write_text(json.dumps(found))
        whole.rename(self.targets)  # Prometheus never reads half a file

    def query(self, promql: str) -> list[dict[str, Any]]:
        """Return the series that a query has now, each with its `metric` and `value`; raise for a wrong query."""
        found: list[dict[str, Any]] = self._get(
            f"/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
        )["result"]
        return found

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:  # noqa: S310 - our own, http
            return json.load(answer)["data"]

    def _ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=10).close()  # noqa: S310
        except OSError:
            return False
        return True
