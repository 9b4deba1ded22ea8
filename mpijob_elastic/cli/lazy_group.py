"""A group of commands, each in a module that is imported when the command is called.

https://click.palletsprojects.com/en/stable/complex/#lazily-loading-subcommands describes such a
group; typer's groups and commands are click's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from mpijob_elastic.cli.typed import CheckedCommand, letting_plain_values_pass
from mpijob_elastic.loading import load

if TYPE_CHECKING:
    from typer._click import Command, Context, Parameter


class LazyGroup(TyperGroup):
    """A group that lists commands by name, and imports those that it calls or describes."""

    #: The place of each command as `module:name`, in the order of --help. There stands the function
    #: of the command, or a typer.Typer.
    places: ClassVar[Mapping[str, str]] = {}
    #: The commands that --help leaves out.
    hidden_commands: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LazyCommands(self.places, self.hidden_commands, self.commands)

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the parameters of the group, also --help."""
        return letting_plain_values_pass(super().get_params(ctx))

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of --help, without an import."""
        return list(self.commands)


class LazyCommands(MutableMapping[str, "Command"]):
    """Commands by name, of which some are imported when they are asked for by name.

    places: see `LazyGroup.places`.
    hidden: the names of those that --help leaves out.
    present: commands that are there already; they stand last.
    """

    def __init__(
        self,
        places: Mapping[str, str],
        hidden: frozenset[str],
        present: Mapping[str, Command],
    ) -> None:
        self._hidden = hidden
        self._commands: dict[str, str | Command] = {**places, **present}

    def __getitem__(self, name: str) -> Command:
        command = self._commands[name]
        if isinstance(command, str):
            command = _imported(command, name, hidden=name in self._hidden)
            self._commands[name] = command
        return command

    def __setitem__(self, name: str, command: Command) -> None:
        self._commands[name] = command

    def __delitem__(self, name: str) -> None:
        del self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


def _imported(place: str, name: str, *, hidden: bool) -> Command:
    """Import the function or the typer.Typer at a place, and make it a command."""
    module, _, attribute = place.partition(":")
    found = getattr(load(module), attribute)
    if isinstance(found, typer.Typer):
        return get_command(found)
    single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    single.command(name=name, cls=CheckedCommand, hidden=hidden)(found)
    return get_command(single)
