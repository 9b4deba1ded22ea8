"""The commands as they are typed."""

import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner, Result

from lab.ports import free_ports
from mpijob_elastic import __version__, names
from mpijob_elastic.cli import app, exit_codes, main
from mpijob_elastic.cli.cluster import ending
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.install import NotInTime, Refused
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.kube.errors import Unconfigured, Unreachable
from tests.faults.kubeconfig import write_plain

OLD = "apiVersion: kubeflow.org/v1alpha2\nkind: MPIJob\nmetadata: {name: old}\nspec: {gpus: 4}\n"
PROGRAM = get_command(app)
assert isinstance(PROGRAM, TyperGroup)
COMMANDS = set(PROGRAM.commands) - {"upgrade", "set"} | {"set bounds"}
UPGRADE = PROGRAM.commands["upgrade"]
assert isinstance(UPGRADE, TyperGroup)

SUBMIT = "submit --name=train --image=horovod:1"
SEVERAL = "No such options: --sync, --boards, --log-dir "
OF_PODS = ("get", "watch", "explain", "logs", "attach", "top")
UPGRADES = [f"upgrade {name}" for name, each in UPGRADE.commands.items() if not each.hidden]


def test_words_behind_two_dashes_are_not_options() -> None:
    done = typed(*SUBMIT.split(), "--dry-run", "--", "python", "t.py", "--gang", "--queue")
    assert done.exit_code == 0
    assert "- --gang\n            - --queue" in done.stdout


def typed(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(
        app, arguments, env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}, **options
    )


@pytest.mark.parametrize("command", sorted({*COMMANDS, *UPGRADES} - {"version"}))
def test_help_has_an_example_of_the_command_and_its_exit_codes(command: str) -> None:
    done = typed(*command.split(), "--help")
    assert done.exit_code == 0
    assert re.search(rf"(?i)example(s|:).*mpijob-elastic {command}", " ".join(done.output.split()))
    assert "Exit codes: 0 " in done.output or command not in {
        "get",
        "watch",
        "explain",
        "logs",
        "attach",
        "top",
        *UPGRADES,
    }


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["get"], Exit.NOT_KNOWN),
        (["explain", "train"], Exit.NOT_KNOWN),
        (["logs", "train", "-f"], Exit.NOT_KNOWN),
        (["upgrade", "preflight"], Exit.NOT_KNOWN),
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
    codes = [
        exit_codes.of(error("late")) for error in (NotInTime, Unreachable, Refused, Unconfigured)
    ]
    assert codes == [Exit.NOT_KNOWN, Exit.NOT_KNOWN, Exit.REFUSED, Exit.REFUSED]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("get train -A", "a job is in one namespace: choose the namespace with -n"),
        (
            "get train --context a --context b",
            "a job is in one cluster: choose the cluster with one --context",
        ),
        ("scaleout train --count 0", "Input should be greater than or equal to 1"),
        ("scalein train --to 0", "Input should be greater than or equal to 1"),
        ("scaleout train --count 1 --to 4", "give --count or --to, not both"),
        ("scalein train --pod 1 --to 4", "give the new size or the workers, not both"),
        ("scaleout train --to 3 --pod 1", "give the new size or the workers, not both"),
        ("scalein train --timeout never", "never is not a duration above 0"),
        ("scaleout train --env A=b", "--env is for --script, which is missing"),
        ("scalein train --env A=b", "--env is for --script, which is missing"),
        ("scalein train --env A --script true", "A: each needs a = between its two parts"),
        (
            "scaleout train --script true --no-wait",
            "the script runs once all workers train: leave out --no-wait",
        ),
        ("scaleout etjob train", '(train); leave out "etjob": all jobs here are MPIJobs'),
        ("scalein -n ml mpijob train --count 1", 'leave out "mpijob": all jobs'),
        ("top job train", '(train); leave out "job": all jobs here are MPIJobs'),
        ("top train eval", "Got unexpected extra argument(s) (eval) "),
        ("scalein etjob --name=train", "--name; type the job's name without an option "),
        ("watch", "Missing argument"),
        ("explain", "Missing argument"),
        ("explain train -o wide", "wide"),
        ("logs train --rank 1 --worker 1", "give --rank or --worker, not both"),
        ("logs train --since soon", "soon is not a duration above 0"),
        ("logs pod/train", "pod/train is not an MPIJob"),
        ("logs train -pf", "the previous log has ended: leave out -f"),
        ("explain train --kubeconfig /nowhere", "/nowhere"),
        (
            "controller --disruption-sign=a\u00a0b",
            "KEY[=VALUE][:EFFECT] of a taint, or condition:TYPE",
        ),
        ("upgrade convert", "give either a file"),
        ("upgrade convert job.yaml --live mpijob/train", "give either a file"),
        ("upgrade preflight --overlay single-namespace", "--jobs-namespace"),
        ("install --overlay single-namespace", "--jobs-namespace"),
        (f"{SUBMIT} --gang --queue q true", "--gang: here it takes the scheduler's name"),
        (f"{SUBMIT} --queue --priority high true", "--queue: here it takes the name of a queue"),
        (
            "scalein train --pod --node n",
            "'--pod': --node begins with a dash, so the value is",
        ),
        (f"{SUBMIT} -p --dry-run true", "'--priority' / '-p': --dry-run begins with a dash"),
        (f"{SUBMIT} --env --np=2 -e A=b true", "--np=2 begins with a dash"),
        (f"{SUBMIT} --workers --np 2 true", "'--workers': --np begins with a dash"),
        (f"{SUBMIT} --working-dir -- true", "-- begins with a dash"),
        (f"{SUBMIT} --workers -1 true", "Input should be greater than or equal to 1"),
        ("get -n -A", "'--namespace' / '-n': -A begins with a dash"),
        ("upgrade preflight --overlay --canary", "--canary begins with a dash"),
        (f"{SUBMIT} --sync --boards --log-dir=/l true", SEVERAL),
        (f"{SUBMIT} --boards --boards true", "No such option: --boards "),
        (f"{SUBMIT} --min-worker 2 true", "(Possible options: --max-workers, --min-workers"),
        ("get -n", "Usage: mpijob-elastic get"),
        ("get -xA -z", "No such options: -x, -z "),
        ("attach train -x -z -- ls -l", "No such options: -x, -z "),
        ("attach train -n --context a -- ls", "'--namespace' / '-n': --context begins with a dash"),
        ("attach train -n -- ls", "Usage: mpijob-elastic attach"),
        ("get -o jsn", "'--output' / '-o': 'jsn' is not one of 'table', 'wide', 'json'"),
        ("install --image REPOSITORY/mpijob-elastic:1", "REPOSITORY stands for your registry and"),
        ("install --dry-run --image Bad:1", "'Bad:1' is no reference to an image: 'Bad' has capit"),
        ("install --jobs-namespace ml --canary other", "jobs in other are not managed"),
    ],
)
def test_wrong_usage_is_refused_with_what_is_allowed(arguments: str, words: str) -> None:
    done = typed(*arguments.split(" "))
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("former", "replacement"),
    [
        ("apply --yes --no-canary --image=x", "install --canary NAMESPACE"),
        ("status", "upgrade preflight"),
        ("rollback --yes", "uninstall --traces"),
    ],
)
def test_a_former_command_names_its_replacement_in_one_line(former: str, replacement: str) -> None:
    done = typed("upgrade", *former.split())
    [line] = done.stderr.splitlines()
    assert (done.exit_code, done.stdout) == (Exit.USAGE, "")
    assert line.endswith(f"use `mpijob-elastic {replacement}`")


def test_convert_reads_standard_input_and_complains_on_standard_error(tmp_path: Path) -> None:
    done = typed("upgrade", "convert", "-", input=OLD)
    assert done.exit_code == Exit.OTHERWISE
    assert "to do: spec.mpiReplicaSpecs.Launcher: is missing" in done.stderr
    assert yaml.safe_load(done.stdout)["apiVersion"] == "kubeflow.org/v1"
    assert "# MPIJob old: spec.gpus: has no counterpart; left out" in done.stdout
    assert "standard input: MPIJob old: spec.gpus: has no counterpart; left out" in done.stderr
    (tmp_path / "job.yaml").write_text("{")
    refused = typed("upgrade", "convert", str(tmp_path / "job.yaml")).exception
    assert isinstance(refused, Refused)
    assert "job.yaml is not YAML" in str(refused)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get"], "GET http://127.0.0.1:1/apis/kubeflow.org/v1/namespaces/default/mpijobs: "),
        (["get"], "the connection to 127.0.0.1:1 was refused\n"),
        (["upgrade", "convert", "nowhere.yaml"], "elastic: nowhere.yaml: No such file or dir"),
    ],
)
def test_errors_from_below_have_the_words_of_people(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    write_plain(tmp_path / "kubeconfig", "http://127.0.0.1:1")  # nobody listens there
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setattr(sys, "argv", ["mpijob-elastic", *arguments])
    with pytest.raises(SystemExit):
        main()
    written = capsys.readouterr().err
    assert said in written
    assert not any(word in written for word in ("Errno", "ssl:", "Cannot connect"))


def test_convert_ends_with_0_if_nothing_is_left_to_do() -> None:
    roles = "{Launcher: {template: {spec: {containers: [{command: [train]}]}}}}"
    done = typed(
        "upgrade", "convert", "-", input=OLD.replace("gpus: 4", f"mpiReplicaSpecs: {roles}")
    )
    assert done.exit_code == 0, done.stderr


def test_a_namespace_that_looks_like_a_number_is_printed_as_a_name() -> None:
    done = typed("install", "--print", "--image=x", "--jobs-namespace=0899", "--jobs-namespace=1e3")
    printed = kubectl_yaml.read_all(done.stdout)
    namespaces = {found["metadata"].get("namespace") for found in printed}
    assert namespaces >= {"0899", "1e3", names.NAMESPACE}


@pytest.mark.parametrize(
    ("left", "lines"),
    [
        ([], ["Uninstalled."]),
        (["Not deleted: x: 422"], ["Not deleted: x: 422", "Not everything was removed."]),
    ],
)
def test_what_is_left_comes_first_and_nothing_counts_as_uninstalled(
    left: list[str], lines: list[str]
) -> None:
    assert ending(left) == lines


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("get --show-labels", "No such option: --show-labels"),
        ("get --show-labels", "`kubectl get mpijobs --show-labels` does that"),
        ("list --field-selector=x", "`kubectl get mpijobs --field-selector` does that"),
        ("get -o go-template={{.}}", "go-template: write the template as -o jsonpath=..., or type"),
        ("get -o jsonpath", "jsonpath: write what to print behind an equals sign"),
        ("get -o custom-columns", "custom-columns: write what to print behind an equals sign"),
        ("get -o jsonpath-file=x", 'type -o jsonpath="$(cat FILE)"'),
        ("get -o jsonpath={.x", "} is missing: braces hold one path or one text, at the end"),
        ("get -o=jsonpath={.x", "} is missing: braces hold one path or one text, at the end"),
        ("get -o jsonpath=", "the template is empty"),
        ("get -o custom-columns=NAME", "NAME is no HEADER:PATH, such as NAME:.name"),
        ("get -o name=x", "'name' is not one of 'table', 'wide'"),
        ("get --sort-by {.a", "{.a"),
        ("get --sort-by .a[", "[ without ]"),
        (
            "logs train --since-time yesterday",
            "yesterday is no moment such as 2026-01-31T08:00:00Z",
        ),
        ("logs train --since-time 2026-01-31T08:00:00", "is no moment such as"),
        ("logs train --since 5m --since-time 2026-01-31T08:00:00Z", "give --since or --since-time"),
        ("get train -l a=b", "give names or a selector, not both"),
        ("get train eval -A", "a job is in one namespace"),
        ("get -w --context a --context b", "only one cluster can be watched"),
        ("get pod/train", "pod/train is not an MPIJob"),
    ],
)
def test_what_cannot_be_had_is_wrong_usage_with_what_to_type(words: str, says: str) -> None:
    done = typed(*words.split())
    assert done.exit_code == Exit.USAGE
    assert says in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("controller", "--health-port"),
        ("webhook --port=0", "--health-port"),
        ("webhook --health-port=0", "--port"),
        ("dashboard", "--port"),
    ],
)
def test_a_port_that_is_taken_names_its_option(tmp_path: Path, command: str, option: str) -> None:
    write_plain(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        options = [f"--kubeconfig={tmp_path / 'kubeconfig'}", f"{option}={port}"]
        done = subprocess.run(
            [sys.executable, "-m", "mpijob_elastic", *command.split(), *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == Exit.REFUSED
    last = done.stderr.splitlines()[-1]
    assert last == (
        f"mpijob-elastic: port {port} is taken; choose another with {option} (0: any free port)"
    )


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("command", ["controller", "webhook --port=0"])
def test_probes_are_answered_at_addresses_of_both_families(tmp_path: Path, command: str) -> None:
    write_plain(tmp_path / "kubeconfig", "http://[::1]:1")
    [port] = free_ports(1)
    options = [f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--health-port={port}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mpijob_elastic", *command.split(), *options],
        stderr=subprocess.DEVNULL,
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


@pytest.mark.parametrize("words", ["--version", "version"])
def test_the_version_is_a_line(words: str) -> None:
    done = typed(words)
    assert (done.exit_code, done.stdout) == (0, f"mpijob-elastic {__version__}\n")


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("help", "--help"),
        ("help get", "get --help"),
        ("help set", "set --help"),
        ("help upgrade preflight", "upgrade preflight --help"),
    ],
)
def test_help_shows_what_the_option_shows(words: str, same: str) -> None:
    done, other = typed(*words.split()), typed(*same.split())
    assert (done.exit_code, done.stdout) == (0, other.stdout)
    assert "Usage:" in done.stdout


def test_help_for_no_command_proposes_one() -> None:
    done = typed("help", "gett")
    assert done.exit_code == Exit.USAGE
    assert "Did you mean 'get'?" in done.stderr
