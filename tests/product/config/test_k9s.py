"""docs/examples/k9s: what k9s' schemas ask for, and that the command line has each command as it is typed there.

https://github.com/derailed/k9s/tree/master/internal/config/json/schemas: plugins.json, views.json
"""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from mpijob_elastic import names
from mpijob_elastic.cli import app
from mpijob_elastic.kube.resources import MPI_JOBS
from upgrade.crd import COLUMNS

FOLDER = Path(__file__).parents[3] / "docs" / "examples" / "k9s"
NEEDED, ALLOWED = (
    {"shortCut", "description", "scopes", "command"},
    {"args", "override", "confirm", "background"},
)
VARIABLES = {"$NAME": "train", "$NAMESPACE": "ml", "$CONTEXT": "here"}


def plugins() -> dict[str, Any]:
    content = yaml.safe_load((FOLDER / "plugins.yaml").read_text())
    assert set(content) == {"plugins"}
    return dict(content["plugins"])


def typed(plugin: Any) -> list[str]:
    """The words that kubectl gets, up to a pipe."""
    words = [plugin["command"], *plugin["args"]]
    line = words[2] if words[:2] == ["sh", "-c"] else shlex.join(words).replace("'", "")
    return [VARIABLES.get(word, word) for word in shlex.split(line.partition(" | ")[0])]


@pytest.mark.parametrize("name", plugins())
def test_each_plugin_is_as_the_schema_says_and_types_a_command_that_there_is(name: str) -> None:
    plugin = plugins()[name]
    assert set(plugin) >= NEEDED
    assert set(plugin) <= NEEDED | ALLOWED
    assert plugin["scopes"] == [MPI_JOBS.plural]
    assert all(isinstance(word, str) for word in plugin["args"])
    kubectl, program, command, *arguments = typed(plugin)
    assert (kubectl, program) == ("kubectl", names.PROGRAM)
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    context = group.commands[command].make_context(
        command, arguments
    )  # raises for what it does not take
    assert (context.params["job"], context.params["namespace"], context.params["context"]) == (
        "train",
        "ml",
        "here",
    )


def test_no_key_is_taken_twice() -> None:
    keys = [plugin["shortCut"] for plugin in plugins().values()]
    assert len(set(keys)) == len(keys) > 2


def test_the_columns_are_those_of_the_definition_and_of_our_annotations() -> None:
    [(resource, view)] = yaml.safe_load((FOLDER / "views.yaml").read_text())["views"].items()
    assert resource == f"{MPI_JOBS.api_version}/{MPI_JOBS.plural}"
    assert set(view) == {"columns", "sortColumn"}
    paths = dict(column.split(":", 1) for column in view["columns"] if ":" in column)
    ours = {column["name"].upper(): column["jsonPath"] for column in COLUMNS}
    for column, path in paths.items():
        annotation = path.removeprefix(".metadata.annotations.")
        marks = (names.MIN_REPLICAS, names.MAX_REPLICAS, names.STATUS, f"{names.PREFIX}phase")
        assert ours.get(column) == path or annotation in marks


def test_it_is_short() -> None:
    assert (
        sum(
            len((FOLDER / file).read_text().splitlines()) for file in ("plugins.yaml", "views.yaml")
        )
        <= 60
    )
