"""The cluster and the namespace are found as kubectl finds them."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from mpijob_elastic.cli import app, connection, target


def kubeconfig(path: Path, *, current: str = "first", **more: str) -> Path:
    """Write a kubeconfig, with these fields in its cluster and its user."""
    contexts = {"first": {"namespace": "ml"}, "second": {}}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1", **more}}],
        "users": [{"name": "u", "user": {**more}}],
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": "u", **where}}
            for name, where in contexts.items()
        ],
        "current-context": current,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_the_option_comes_before_the_variable_and_the_variable_before_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert target.kubeconfig_file(None) is None
    at_home = kubeconfig(tmp_path / ".kube" / "config")
    assert target.kubeconfig_file(None) == at_home
    monkeypatch.setenv("KUBECONFIG", "/named")
    assert target.kubeconfig_file(None) == Path("/named")
    assert target.kubeconfig_file(Path("/given")) == Path("/given")


@pytest.mark.parametrize(
    ("current", "context", "namespace"),
    [
        ("first", None, "ml"),
        ("second", None, "default"),
        ("first", "second", "default"),
        ("second", "first", "ml"),
    ],
)
def test_the_namespace_is_the_contexts(
    tmp_path: Path, current: str, context: str | None, namespace: str
) -> None:
    assert (
        connection.default_namespace(kubeconfig(tmp_path / "k", current=current), context)
        == namespace
    )


def test_several_files_are_read_as_one_and_the_first_with_a_current_context_chooses(
    tmp_path: Path,
) -> None:
    none, second = (
        kubeconfig(tmp_path / "none", current=""),
        kubeconfig(tmp_path / "second", current="second"),
    )
    first = kubeconfig(tmp_path / "first")
    assert connection.default_namespace(Path(f"{first}:{tmp_path / 'missing'}"), None) == "ml"
    assert connection.default_namespace(Path(f"{none}:{second}:{first}"), None) == "default"
    assert connection.default_namespace(Path(f"{none}:{first}:{second}"), None) == "ml"


@pytest.mark.parametrize(
    ("where", "namespace"),
    [
        ({}, "ml"),
        ({"namespace": "x"}, "x"),
        ({"all_namespaces": True}, None),
        ({"context": "second"}, "default"),
    ],
)
async def test_what_the_user_said_comes_first(
    tmp_path: Path, where: dict[str, str], namespace: str | None
) -> None:
    file = kubeconfig(tmp_path / "k")
    async with connection.reached(target.Where(kubeconfig=file, **where)) as (client, found):  # type: ignore[arg-type]
        assert found == namespace
        assert client.host == "http://127.0.0.1:1"


NOT_USABLE: list[tuple[str | dict[str, str] | None, str]] = [
    (None, "there is no such file"),
    ("{", "expected the node content"),
    ("", "it is no kubeconfig"),
    ("contexts: [{}]", "it is no kubeconfig"),
    ("\x00", "special characters are not allowed"),
    ("current-context: x", "it has no context x"),
    ({"current": "third"}, "it has no context third"),
    ("contexts: []", "choose one with --context"),
    (
        {"proxy-url": "socks5://me:secret@proxy"},
        "a proxy must be http://HOST:PORT or https://HOST:PORT, not socks5://",
    ),
    ({"server": "https://127.0.0.1:1", "certificate-authority-data": "e"}, "base64"),
    ({"server": "https://127.0.0.1:port"}, "Port could not be cast"),
    ({"server": "https://[::1"}, "Invalid IPv6 URL"),
    ({"proxy-url": "http://[::1"}, "Invalid IPv6 URL"),
    ({"as-uid": "7"}, "as-uid, as-groups and as-user-extra of a user need `as`"),
]


@pytest.mark.parametrize(("content", "said"), NOT_USABLE)
@pytest.mark.parametrize(
    "command", [["get"], ["install", "--dry-run"], ["upgrade", "adopt", "train"]]
)
def test_a_kubeconfig_that_cannot_be_used_gets_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    content: str | dict[str, str] | None,
    said: str,
) -> None:
    file = tmp_path / "k"
    if isinstance(content, dict):
        kubeconfig(file, **content)
    elif content is not None:
        file.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(file))
    complaint = str(CliRunner().invoke(app, command).exception)
    assert complaint.startswith(f"no usable cluster configuration in {file}: ")
    assert complaint.endswith("; pass --kubeconfig or set KUBECONFIG")
    assert said in complaint
    assert "\n" not in complaint
    assert "secret" not in complaint
