"""The cluster and the namespace are found as kubectl finds them."""

from pathlib import Path

import pytest
import yaml

from mpijob_elastic.cli import target
from mpijob_elastic.kube import errors


def kubeconfig(path: Path, *, current: str = "first") -> Path:
    contexts = {"first": "ml", "second": None}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})}
            for name, namespace in contexts.items()
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
    [("first", None, "ml"), ("second", None, "default"), ("first", "second", "default"), ("second", "first", "ml")],
)
def test_the_namespace_is_the_contexts(tmp_path: Path, current: str, context: str | None, namespace: str) -> None:
    assert target.default_namespace(kubeconfig(tmp_path / "k", current=current), context) == namespace


def test_several_files_are_read_as_one(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "one")
    assert target.default_namespace(Path(f"{first}:{tmp_path / 'missing'}"), None) == "ml"


@pytest.mark.parametrize(
    ("where", "namespace"),
    [({}, "ml"), ({"namespace": "x"}, "x"), ({"all_namespaces": True}, None), ({"context": "second"}, "default")],
)
async def test_what_the_user_said_comes_first(tmp_path: Path, where: dict[str, str], namespace: str | None) -> None:
    file = kubeconfig(tmp_path / "k")
    async with target.reached(target.Where(kubeconfig=file, **where)) as (client, found):  # type: ignore[arg-type]
        assert found == namespace
        assert client.host == "http://127.0.0.1:1"


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    where = target.Where(kubeconfig=kubeconfig(tmp_path / "k"), context="third")
    with pytest.raises(errors.Unreachable, match="third"):
        async with target.reached(where):
            pass
