"""A process that starts as in a pod has the files of its service account, and nobody else sees them there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from lab.errors import LabError
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


@pytest.mark.skipif(
    os.geteuid() != 0 or not pods_work(), reason="only root may run a process as another user"
)
def test_a_user_who_is_not_root_sees_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    another_user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if subprocess.run([*another_user, "unshare", "--user", "true"], check=False).returncode:
        pytest.skip("this machine lets only root make namespaces")
    # pytest's own folders are closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name in ("token", "ca.crt", "namespace"):
            (Path(folder) / name).write_text(name)
        monkeypatch.chdir("/")
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
        reads = with_service_account(Path(folder), "cat", f"{SERVICE_ACCOUNT}/token")
        done = subprocess.run([*another_user, *reads], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("token", "")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("unshare", "unshare is missing (package util-linux)"),
        ("mount", "be root, or allow user namespaces"),
    ],
)
def test_where_nothing_can_be_mounted_it_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    for name in {"unshare", "setpriv", "mount"} - {program}:
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/false")
    if program == "mount":
        (tmp_path / "mount").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not pods_work()
    with pytest.raises(LabError, match=re.escape(said)):
        with_service_account(tmp_path, "true")


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
