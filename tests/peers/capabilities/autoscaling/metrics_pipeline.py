"""Metrics as a cluster has them: Prometheus scrapes two exporters, and prometheus-adapter serves what it finds.

The adapter has the rules of docs/examples/hpa, and is registered in the API server.
"""

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from lab.cluster import Cluster
from lab.pki import Authority
from lab.ports import free_ports
from tests.lab.aggregation import HOST, aggregated
from tests.peers.processes import running
from tests.peers.prometheus import Prometheus

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples" / "hpa"
# What a rule's API and its versions are called; the HPA controller chooses the newest.
GROUPS = (
    "v1beta1.external.metrics.k8s.io",
    "v1beta1.custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
)


class Exporters:
    """The program that fills a queue, and dcgm-exporter on a node, with the values that a test sets."""

    def __init__(self) -> None:
        self._queues, self._gpus = CollectorRegistry(), CollectorRegistry()
        self.queue = Gauge(
            "train_queue_length",
            "Batches that wait.",
            ("namespace", "queue"),
            registry=self._queues,
        )
        gpu = ("gpu", "namespace", "pod")
        self.gpu = Gauge(
            "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", gpu, registry=self._gpus
        )

    @contextmanager
    def scraped(self) -> Iterator[list[dict[str, Any]]]:
        """Serve both as long as the block lasts, which gets the scrape jobs for them."""
        with _served(self._queues) as queues, _served(self._gpus) as gpus:
            # The queue's program says its namespace itself. Prometheus adds the exporter's own
            # namespace and pod, as it does when it finds pods by the API; dcgm-exporter's labels of
            # these names become exported_*.
            own = {"namespace": "gpu-operator", "pod": "dcgm-exporter-7x2kq"}
            yield [
                {
                    "job_name": "queues",
                    "honor_labels": True,
                    "static_configs": [{"targets": [queues]}],
                },
                {
                    "job_name": "dcgm-exporter",
                    "static_configs": [{"targets": [gpus], "labels": own}],
                },
            ]


@contextmanager
def _served(registry: CollectorRegistry) -> Iterator[str]:
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving(
    cluster: Cluster, directory: Path, *, prometheus: Path, adapter: Path
) -> Iterator[Exporters]:
    """Run everything as long as the block lasts; `directory` takes its files."""
    exporters = Exporters()
    with ExitStack() as stack:
        jobs = stack.enter_context(exporters.scraped())
        scraping = stack.enter_context(Prometheus.start(prometheus, directory, jobs=jobs))
        stack.enter_context(_adapter(adapter, cluster, scraping.url, directory))
        yield exporters


@contextmanager
def _adapter(program: Path, cluster: Cluster, url: str, directory: Path) -> Iterator[None]:
    """Run prometheus-adapter; the API server forwards to it when the block begins."""
    rules, [port] = directory / "adapter-rules.yaml", free_ports(1)
    rules.write_text(
        yaml.safe_load((EXAMPLES / "adapter-rules.yaml").read_text())["data"]["config.yaml"]
    )
    authority = Authority(directory, "metrics-ca", now=dt.datetime.now(dt.UTC))
    pair = authority.issue("adapter", user="adapter", hosts=(HOST,))
    kubeconfigs = [
        f"--{who}-kubeconfig={cluster.kubeconfig}"
        for who in ("lister", "authentication", "authorization")
    ]
    # Ten minutes, the default, pass before it sees a new series.
    often = ["--metrics-relist-interval=1s", "--metrics-max-age=1m"]
    tls = [f"--tls-cert-file={pair.certificate}", f"--tls-private-key-file={pair.key}"]
    where = [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--prometheus-url={url}",
        f"--config={rules}",
    ]
    with running(
        [str(program), *where, *tls, *often, *kubeconfigs], directory / "prometheus-adapter.log"
    ):
        ca = authority.certificate.read_bytes()
        with aggregated(cluster, GROUPS, port=port, authority=ca):
            yield
