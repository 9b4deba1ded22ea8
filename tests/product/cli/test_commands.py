"""The commands as they are typed."""

import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.ports import free_ports
from mpijob_elastic import __version__
from mpijob_elastic.cli import app, exit_codes, main
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.install.refusal import NotInTime, Refused
from mpijob_elastic.kube.errors import Unconfigured, Unreachable
from tests.faults.kubeconfig import write_plain

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    return result.exit_code, result.output


def test_all_commands_are_there() -> None:
    assert {"controller", "webhook", "install", "uninstall", "get", "watch", "explain", "version"} <= set(COMMANDS)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"version"}))
def test_help_has_an_example_of_the_command(command: str) -> None:
    code, text = run(command, "--help")
    assert code == 0
    assert re.search(rf"(?i)example(s|:).*mpijob-elastic {command}", " ".join(text.split()))


@pytest.mark.parametrize("command", ["get", "watch", "explain"])
def test_help_tells_the_exit_codes(command: str) -> None:
    assert "Exit codes: 0 " in run(command, "--help")[1]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["get"], Exit.NOT_KNOWN),
        (["explain", "train"], Exit.NOT_KNOWN),
        (["upgrade", "status"], Exit.NOT_KNOWN),
        (["upgrade", "convert", "nowhere.yaml"], Exit.REFUSED),
        (["get", "--wide"], Exit.USAGE),
        (["version"], Exit.DONE),
    ],
)
def test_the_exit_code_says_who_has_to_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: Exit
) -> None:
    write_plain(tmp_path / "kubeconfig", "http://127.0.0.1:1")  # nobody listens there
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setattr(sys, "argv", ["mpijob-elastic", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


def test_a_timeout_is_no_refusal() -> None:
    codes = [exit_codes.of(error("late")) for error in (NotInTime, Unreachable, Refused, Unconfigured)]
    assert codes == [Exit.NOT_KNOWN, Exit.NOT_KNOWN, Exit.REFUSED, Exit.REFUSED]


def test_version() -> None:
    assert run("version") == (0, f"mpijob-elastic {__version__}\n")


def test_a_job_has_one_namespace() -> None:
    code, text = run("get", "train", "-A")
    assert code == 2
    assert "a job is in one namespace" in text


def test_watch_needs_a_job() -> None:
    assert run("watch")[0] == 2


def test_a_sign_of_a_disruption_that_cannot_be_read_is_refused_with_what_is_allowed() -> None:
    code, text = run("controller", "--disruption-sign=a b")
    assert code == 2
    assert "KEY[=VALUE][:EFFECT] of a taint, or condition:TYPE" in " ".join(text.replace("│", " ").split())


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("command", ["controller", "webhook --port=0"])
def test_probes_are_answered_at_addresses_of_both_families(tmp_path: Path, command: str) -> None:
    write_plain(tmp_path / "kubeconfig", "http://[::1]:1")
    [port] = free_ports(1)
    options = [f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--health-port={port}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mpijob_elastic", *command.split(), *options], stderr=subprocess.DEVNULL
    )
    try:
        for host in ("127.0.0.1", "[::1]"):
            assert awaited(f"http://{host}:{port}/healthz", process) == "ok\n"
    finally:
        process.kill()
        process.wait()


def awaited(url: str, process: subprocess.Popen[bytes]) -> str:
    """Return what is answered there, as soon as the process listens."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own, http
            return str(answer.read().decode())
        time.sleep(0.05)
    return "not answered"
