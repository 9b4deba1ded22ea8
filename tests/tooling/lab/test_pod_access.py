"""A process that starts as in a pod has the files of its service account, and nobody else sees them there."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.kubeconfig import Server, write_token_kubeconfig
from lab.pod_access import pods_work, with_service_account, write_service_account
from lab.processes import spawn
from mpijob_elastic.kube.in_cluster import SERVICE_ACCOUNT

TELLS = f"""
import json, os
folder = {str(SERVICE_ACCOUNT)!r}
files = {{name: open(f"{{folder}}/{{name}}").read() for name in os.listdir(folder)}}
print(json.dumps({{"files": files, "pid": os.getpid(), "in": os.getcwd()}}))
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    server = Server(url="https://127.0.0.1:6443", ca=b"the authority")
    write_token_kubeconfig(path, server, user="u", token="the-token", namespace="n")
    return path


def test_the_files_and_the_variables_are_those_of_the_account(
    tmp_path: Path, kubeconfig: Path
) -> None:
    variables = write_service_account(tmp_path, kubeconfig)
    assert variables == {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    assert (tmp_path / "token").read_text() == "the-token"
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca.crt").read_bytes() == b"the authority"


@pytest.mark.skipif(not pods_work(), reason="this machine lets us mount nothing")
def test_a_process_sees_them_alone(tmp_path: Path, kubeconfig: Path) -> None:
    write_service_account(tmp_path, kubeconfig)
    before = SERVICE_ACCOUNT.exists()
    process = subprocess.Popen(
        with_service_account(tmp_path, sys.executable, "-c", TELLS),
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = process.communicate(timeout=60)
    told = json.loads(said)
    assert told["files"] == {"token": "the-token", "ca.crt": "the authority", "namespace": "n"}
    assert (told["pid"], told["in"]) == (process.pid, str(Path.cwd()))
    assert SERVICE_ACCOUNT.exists() == before


@pytest.mark.skipif(not pods_work(), reason="this machine lets us mount nothing")
def test_it_dies_with_its_parent(tmp_path: Path, kubeconfig: Path) -> None:
    write_service_account(tmp_path, kubeconfig)
    log, parent = tmp_path / "log", os.fork()
    if parent == 0:
        waits = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
        command = with_service_account(tmp_path, sys.executable, "-c", waits)
        spawn(command, log=log, environment=os.environ).wait()
        os._exit(0)
    end = time.monotonic() + 60
    while not (log.exists() and log.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    child = Path(f"/proc/{log.read_text().strip()}")
    while child.exists() and "\nState:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < end, "it outlived its parent"
        time.sleep(0.02)
