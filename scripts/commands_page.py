"""Writes docs/commands.md from the command line itself: `python -m scripts.commands_page`."""

from pathlib import Path

import typer
from typer.cli import get_docs_for_click
from typer.core import TyperGroup
from typer.main import get_command

from mpijob_elastic.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
TITLE = "Commands"
INTRODUCTION = """\
This is what `--help` shows; `make docs` writes it from the code. kubectl finds `kubectl-mpijob_elastic` on the `PATH`,
so `kubectl mpijob-elastic COMMAND` does the same. Both use your kubeconfig, context and namespace as kubectl does,
also its fields `as`, `as-groups`, `as-uid`, `as-user-extra`, `proxy-url` and `tls-server-name`, and the variables
`HTTPS_PROXY` and `NO_PROXY`. Proxies that speak SOCKS are not supported.
"""


def page() -> str:
    """Return the page."""
    program = get_command(app)
    _prepare(program)
    context = typer.Context(program, **program.context_settings)
    reference = get_docs_for_click(obj=program, ctx=context, name="mpijob-elastic", title=TITLE)
    return reference.replace(f"# {TITLE}\n", f"# {TITLE}\n\n{INTRODUCTION}", 1).strip() + "\n"


def _prepare(command: object) -> None:
    """Leave out hidden commands.

    Give each other its first paragraph as its line in a list, which would be cut.
    """
    if not isinstance(command, TyperGroup):
        return
    command.commands = {name: each for name, each in command.commands.items() if not each.hidden}
    for each in command.commands.values():
        each.short_help = (each.help or "").partition("\n\n")[0].replace("\n", " ")
        _prepare(each)


if __name__ == "__main__":
    PAGE.write_text(page())
