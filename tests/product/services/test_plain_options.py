"""The plain options of a service are those of its command, and mean the same there."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.core import TyperGroup, TyperOption
from typer.main import get_command
from typer.testing import CliRunner

from mpijob_elastic import names, services
from mpijob_elastic.cli import app, work
from mpijob_elastic.services import plain_options
from mpijob_elastic.services.plain_options import OPTIONS, NotPlain

ROOT = Path(__file__).parents[3]
SERVICES = ("controller", "webhook")
# A file that everybody may read, and one that is none.
FILE = __file__
VALUES = st.one_of(
    st.sampled_from(
        ["", "a", "a b", "-", "-1", "--port", "0", "1", "65535", "65536", "256", "257", "1.5", "1."]
    ),
    st.sampled_from(["json", "console", "JSON", "debug", "error", "loud", FILE, "/no/such", "1_0"]),
    st.text(alphabet="٣x=.-", max_size=3),
)


def options_of(service: str) -> dict[str, TyperOption]:
    """Return the options that the command of a service takes, by each of their names."""
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    parameters = program.commands[service].params
    return {
        name: option
        for option in parameters
        if isinstance(option, TyperOption) and option.name != "help"
        for name in (*option.opts, *option.secondary_opts)
    }


@pytest.mark.parametrize("service", SERVICES)
def test_each_option_is_one_of_the_command(service: str) -> None:
    known = options_of(service)
    assert known.keys() == OPTIONS[service].keys()
    for name, plain in OPTIONS[service].items():
        option = known[name]
        assert option.name == plain.parameter
        assert option.multiple == plain.repeatable
        assert option.is_flag == (plain.read is None)
        assert plain.flag == (name not in option.secondary_opts)
        variable = names.JOBS_NAMESPACE_VARIABLE if name == "--jobs-namespace" else None
        assert option.envvar == variable


def given_by_command(
    monkeypatch: pytest.MonkeyPatch, words: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return what the command hands to its service; None where it hands over nothing."""
    got: list[dict[str, Any]] = []
    for service in (work.controller_service, work.webhook_service):
        monkeypatch.setattr(service, "run", lambda **options: got.append(options))
    done = CliRunner().invoke(app, list(words), env=dict(environment))
    assert len(got) == (done.exit_code == 0 and "--help" not in words)
    return got[0] if got else None


def lines() -> Iterator[Any]:
    for service in SERVICES:
        names_ = st.sampled_from([*OPTIONS[service], "--nothing", "--help", "word", "--"])
        pair = st.tuples(names_, VALUES)
        written = st.one_of(
            pair.map(list), pair.map(lambda one: ["=".join(one)]), names_.map(lambda one: [one])
        )
        words = st.lists(written, max_size=3).map(lambda parts: sum(parts, []))  # noqa: RUF017
        yield st.tuples(st.just([service]), words).map(lambda both: both[0] + both[1])


@given(
    words=st.one_of(*lines()),
    variable=st.sampled_from([None, "", " ", "team-a", " team-a  team-b "]),
)
def test_what_is_plain_means_the_same_to_the_command(
    words: list[str], variable: str | None
) -> None:
    environment = {} if variable is None else {names.JOBS_NAMESPACE_VARIABLE: variable}
    try:
        service, plain = plain_options.read(words, environment)
    except NotPlain:
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        full = given_by_command(monkeypatch, words, environment)
    assert service == words[0]
    assert full is not None, "the command refuses it"
    defaults = given_defaults(service)
    assert {**defaults, **plain} == {name: lasting(value) for name, value in full.items()}


def given_defaults(service: str) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        full = given_by_command(monkeypatch, [service], {names.JOBS_NAMESPACE_VARIABLE: ""})
    assert full is not None
    return {name: lasting(value) for name, value in full.items()}


def lasting(value: Any) -> Any:
    """Return a value as both ways may give it: an empty list is none."""
    return list(value) or None if isinstance(value, tuple | list) else value


@pytest.mark.parametrize("service", SERVICES)
def test_the_words_of_the_manifests_are_plain(service: str) -> None:
    manifest = (ROOT / "config/base" / f"{service}.yaml").read_text()
    [words] = re.findall(r"args: \[(.*)\]", manifest)
    found, options = plain_options.read(words.split(", "), {})
    assert (found, options["log_format"]) == (service, "json")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "get",
        "controller --help",
        "controller --workers 0",
        "webhook --port",
        "version controller",
    ],
)
def test_the_command_line_answers_the_rest(words: str) -> None:
    assert not services.ran(words.split(), {})


def test_the_command_line_tells_of_a_misuse(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not services.ran(["controller", "--component=nothing"], {})
    said = CliRunner().invoke(app, ["controller", "--component=nothing"]).output
    assert "--component" in said
    assert "nothing: there is only" in said


def test_choices_are_those_of_the_command() -> None:
    kinds = {"--log-format": "log_format", "--log-level": "log_level"}
    for service in SERVICES:
        for name in kinds:
            wanted: Any = options_of(service)[name].type_descriptor.annotation
            assert str(get_origin(wanted)) == "typing.Literal"
            read = OPTIONS[service][name].read
            assert read is not None
            assert [read(word) for word in get_args(wanted)] == list(get_args(wanted))


@pytest.mark.parametrize("service", SERVICES)
def test_an_error_ends_both_ways_alike(tmp_path: Path, service: str) -> None:
    ends = set()
    for start in ("mpijob_elastic.__main__", "mpijob_elastic.cli"):
        done = subprocess.run(
            [sys.executable, "-c", f"from {start} import main; main()", service],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        ends.add((done.returncode, done.stdout, done.stderr))
    [(code, _, said)] = ends
    assert code == 1
    assert "no usable cluster configuration" in said
