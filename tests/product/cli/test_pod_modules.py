"""What the controller and the webhook import in a pod, until they serve: each library costs memory there."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.pki import Authority
from lab.ports import free_ports

ROOT = Path(__file__).parents[3]
# Seconds; a start takes one.
PATIENCE = 60.0
# Where the files of the service account are is all that differs from a pod.
SHOWS_MODULES = """
import json, sys
from pathlib import Path
from mpijob_elastic.__main__ import main
from mpijob_elastic.kube import in_cluster
in_cluster.SERVICE_ACCOUNT = Path(sys.argv.pop(1))
try:
    main()
finally:
    from aiohttp import connector
    contexts = connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED
    authorities = sum(context.cert_store_stats()["x509"] for context in contexts)
    print(json.dumps([sorted(sys.modules), authorities]))
"""
# The command line and what it takes to read options, the library that reads kubeconfigs and what it
# imports, the manifests' parser, and tables for people.
UNUSED = {
    "mpijob_elastic.cli",
    "typer",
    "pydantic",
    # Of the webhook's, what makes and reads certificates runs in a process of its own.
    "cryptography",
    "kubernetes",
    "aiohttp_retry",
    "certifi",
    "charset_normalizer",
    "dateutil",
    "oauthlib",
    "requests",
    "rich",
    "urllib3",
    "websocket",
    "yaml",
}


def loaded_by(folder: Path, *words: str) -> tuple[set[str], int]:
    """Return the modules that a process has loaded which serves as in a pod, and aiohttp's authorities.

    No API server answers it.
    """
    (folder / "token").write_text("a-token")
    certificate = Authority(folder, "of the cluster", now=datetime.now(UTC)).certificate
    (folder / "ca.crt").write_bytes(certificate.read_bytes())
    nobody, port = free_ports(2)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(nobody)}
    command = [sys.executable, "-c", SHOWS_MODULES, str(folder), *words, f"--health-port={port}"]
    process = subprocess.Popen(
        command, env={**kept, **pod, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )
    try:
        await_answer(f"http://localhost:{port}/readyz")
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE)
    modules, authorities = json.loads(said)
    return set(modules), authorities


def await_answer(url: str) -> None:
    """Return when a server answers whatever it says."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(url, timeout=10).close()  # noqa: S310 - our own, http
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < end, "it never served"
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        pytest.param("controller", {*UNUSED, "webhook"}, id="controller"),
        pytest.param(
            "webhook --port=0 --drain-seconds=0",
            {
                *UNUSED,
                "mpijob_elastic.controller",
                "mpijob_elastic.act",
                "webhook.certificates.pairs",
                "mpijob_elastic.install.objects",
            },
            id="webhook",
        ),
    ],
)
def test_a_process_in_a_pod_imports_nothing_that_it_does_not_use(
    tmp_path: Path, words: str, unused: set[str]
) -> None:
    loaded, authorities = loaded_by(tmp_path, *words.split())
    assert "aiohttp" in loaded
    assert loaded & unused == set()
    assert authorities == 0, "the machine's authorities, of which a pod uses none"
