"""What was typed: errors of usage that name all unknown options, and values that are none."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args, get_origin

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from typer._click import Context, Parameter
    from typer._coercion import RuntimeParam, TypeDescriptor

# Most unknown options that one message names.
_MOST = 20
# The words that pydantic puts before the message of a choice.
_PYDANTIC = "Value error, "
# A type checker compares it with nothing.
_LITERAL: Any = Literal
_KUBECTL = "`kubectl get mpijobs {}` does that"
_TYPE = "leave it out: all jobs here are MPIJobs"
_LINES = "the log has the lines of all ranks: type --worker N for those of one worker"
_PLACE = "type the worker without an option: `mpijob-elastic attach JOB 2`"
_NAME = "type the job's name without an option"
#: The kinds of jobs behind a command of Arena, with their short names.
KINDS = frozenset({"etjob", "et", "mpijob", "mpi", "mj"})
# How click begins to say that a command takes fewer words.
_TOO_MANY = "Got unexpected extra argument"
# What does the same as an option of kubectl or Arena, by the name of our command and the option.
_INSTEAD = {
    **{
        ("get", option): _KUBECTL.format(option)
        for option in ("--field-selector", "--show-labels", "--show-managed-fields")
    },
    **{
        (command, option): _TYPE
        for command in ("get", "delete", "logs", "attach", "top")
        for option in ("--type", "-T")
    },
    **{(command, "--allNamespaces"): "type --all-namespaces" for command in ("get", "top")},
    **{("get", option): "type `mpijob-elastic events JOB`" for option in ("--events", "-e")},
    **{
        ("get", option): "`mpijob-elastic top JOB` shows how busy GPUs are"
        for option in ("--gpus", "-g")
    },
    **{("logs", option): _LINES for option in ("--instance", "-i", "--container", "-c")},
    **{("logs", "-t"): "type --tail"},
    **{("attach", option): _PLACE for option in ("--instance", "-i", "--container", "-c")},
    **{
        ("top", option): "`mpijob-elastic top JOB` has a row for each pod"
        for option in ("--instance", "-i")
    },
    **{("top", option): "type `watch mpijob-elastic top`" for option in ("--refresh", "-r")},
    **{(command, "--name"): _NAME for command in ("scaleout", "scalein")},
    **{
        (command, "--retry"): "leave it out: the controller tries again by itself"
        for command in ("scaleout", "scalein")
    },
    ("delete", "--all"): "`mpijob-elastic prune` deletes all finished jobs",
    ("events", "--for"): "type the job's name without an option",
}
# Options that kubectl takes before the command, too; each has a value.
_GLOBALS = frozenset({"-n", "--namespace", "--context", "--kubeconfig"})
# The values of a switch, as kubectl reads them: --wait=false.
_TRUE = "true"
_BOOLEANS = frozenset({_TRUE, "false"})
# An option of one letter whose value stands behind an equals sign, as kubectl reads it: -n=ml.
_EQUATED = re.compile(r"(-[A-Za-z])=(.*)", re.DOTALL)


class CheckedCommand(TyperCommand):
    """A command whose errors of usage say all that is wrong with the options."""

    def get_params(self, ctx: "Context") -> "list[Parameter]":
        """Return all parameters, also --help."""
        return letting_plain_values_pass(super().get_params(ctx))

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the words behind the command. Raises typer.TyperException."""
        args = self._parted(args)
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        try:
            self._refuse_options_as_values(ctx, args)
            return super().parse_args(ctx, self.arranged(ctx, list(args)))
        except typer.TyperException as error:
            error.message = error.message.removeprefix(_PYDANTIC)
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]  # the usage is shown with a context
            unknown = self._unknown(ctx, args) if _is_unknown(error) else []
            if len(unknown) > 1:
                error.message = f"No such options: {', '.join(unknown)}"
                error.possibilities = None  # type: ignore[attr-defined]
            name = "get" if ctx.info_name == "list" else ctx.info_name or ""
            hints = (_INSTEAD.get((name, option)) for option in unknown)
            if hint := next(filter(None, hints), _of_kind(error, args)):
                error.message = f"{error.message}; {hint}"
                error.possibilities = None  # type: ignore[attr-defined]
            raise

    def arranged(self, ctx: "Context", args: list[str]) -> list[str]:  # noqa: ARG002
        """Return the words as click is to read them. Raises typer.TyperException."""
        return args

    def _parted(self, args: Sequence[str]) -> list[str]:
        """Return the words in the forms that click reads; what stands behind `--` stays."""
        values = {option for one in self.params if not _is_switch(one) for option in one.opts}
        switches = {option: one for one in self.params if _is_switch(one) for option in one.opts}
        end = args.index("--") if "--" in args else len(args)
        parted = list[str]()
        for word in args[:end]:
            name, _, value = word.partition("=")
            if (found := _EQUATED.fullmatch(word)) and name in values:
                parted += found.groups()
            elif name in switches and value in _BOOLEANS:
                parted += _switched(name, switches[name], is_on=value == _TRUE)
            else:
                parted.append(word)
        return [*parted, *args[end:]]

    def _refuse_options_as_values(self, ctx: "Context", args: Sequence[str]) -> None:
        """Refuse `--gang --queue q`, where the parser takes the name of an option as a value."""
        values, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for option in self.params:
            if option.param_type_name != "option":
                continue
            for value in _texts(values.get(option.name or "")):
                if _is_option(value):
                    raise typer.BadParameter(
                        f"{value} begins with a dash, so the value is missing",
                        ctx,
                        param_hint=" / ".join(f"'{name}'" for name in option.opts),
                    )

    def _unknown(self, ctx: "Context", args: Sequence[str]) -> list[str]:
        """Return the options that the command does not have, in the order in which they stand."""
        rest, found = list(args), list[str]()
        while len(found) < _MOST:
            try:
                self.make_parser(ctx).parse_args(args=list(rest))
            except typer.TyperException as error:
                name = getattr(error, "option_name", "")
                at = _place(name, rest) if _is_unknown(error) else None
                if at is None:
                    break
                found.append(name)
                del rest[at]
            else:
                break
        return list(dict.fromkeys(found))


class PlainValues:
    """Takes the values of a parameter that need no check, and leaves all others to typer.

    typer checks values by pydantic, which takes longer to import than typer itself.
    """

    def __init__(self, kind: "TypeDescriptor", checked: Callable[[], "RuntimeParam"]) -> None:
        self._kind, self._checked = kind, checked

    def itself(self) -> Self:
        """Return this, as typer asks for it."""
        return self

    def coerce(self, value: Any, param: Any, ctx: "Context") -> Any:
        """Return what the command gets for a typed value. Raises typer.BadParameter."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        taken = plain(value, self._kind)
        if taken is None:
            return self._checked().coerce(value, param=param, ctx=ctx)
        return taken


def letting_plain_values_pass(parameters: "list[Parameter]") -> "list[Parameter]":
    """Return parameters that take plain values without pydantic, as far as typer made them."""
    for parameter in parameters:
        kind = getattr(parameter, "type_descriptor", None)
        checked = getattr(type(parameter), "get_runtime_param", None)
        if kind and checked:
            values = PlainValues(kind, partial(checked, parameter))
            parameter.get_runtime_param = values.itself  # type: ignore[attr-defined]
    return parameters


def plain(value: Any, kind: "TypeDescriptor") -> Any:
    """Return what typer makes of a value that needs no check; None if typer has to tell."""
    wanted, rules = kind.annotation, kind.parameter_info
    if rules.parser:
        return None
    if wanted is str:
        return value if isinstance(value, str) else None
    if wanted == list[str]:
        return _plain_texts(value)
    if get_origin(wanted) is _LITERAL:
        return value if value in get_args(wanted) else None
    if wanted is Path and not (rules.writable or rules.resolve_path or rules.path_type):
        return _readable_file(value) if rules.file_okay else None
    return None


def _plain_texts(value: Any) -> list[str] | None:
    texts = list(_texts(value))
    return texts if isinstance(value, list | tuple) and len(texts) == len(value) else None


def _readable_file(value: Any) -> Path | None:
    is_file = isinstance(value, str) and Path(value).is_file()
    return Path(value) if is_file and os.access(value, os.R_OK) else None


def _switched(name: str, switch: "Parameter", *, is_on: bool) -> list[str]:
    """Return the word for a switch that is on or off; no word for one that cannot be turned off."""
    if is_on:
        return [name]
    return list(switch.secondary_opts[:1])


def globals_behind(args: Sequence[str], groups: Collection[str]) -> list[str]:
    """Return a line with the options that stand before the command behind it, as kubectl has them.

    groups: commands that have commands of their own.
    """
    at = 0
    while at < len(args) and args[at].partition("=")[0] in _GLOBALS:
        at += 1 if "=" in args[at] else 2
    given, rest = args[:at], args[at:]
    depth = 2 if rest and rest[0] in groups else 1
    return [*rest[:depth], *given, *rest[depth:]]


def _is_switch(parameter: "Parameter") -> bool:
    """Tell whether no value follows an option."""
    return bool(getattr(parameter, "is_flag", False))


def _is_unknown(error: typer.TyperException) -> bool:
    """Tell whether the parser met an option that it does not know: only then it proposes others."""
    return hasattr(error, "possibilities")


def _place(option: str, words: Sequence[str]) -> int | None:
    """Return the place of an option among words such as `--option=value`; None if it is not there.

    A word of short options may hold several: `-xf`.
    """
    is_long = option.startswith("--")
    for at, word in enumerate(words):
        if word.partition("=")[0] == option:
            return at
        if not is_long and word.startswith("-") and option[1:] in word:
            return at
    return None


def _of_kind(error: typer.TyperException, args: Sequence[str]) -> str:
    """Return what to do with a kind of jobs among too many words; "" without one."""
    if not error.message.startswith(_TOO_MANY):
        return ""
    kind = next((word for word in args if word in {*KINDS, "job"}), "")
    return f'leave out "{kind}": all jobs here are MPIJobs' if kind else ""


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple):
        return [one for one in value if isinstance(one, str)]
    return ()


def _is_option(value: str) -> bool:
    """Tell whether a value looks like an option: a dash, and then no number."""
    return len(value) > 1 and value[0] == "-" and not value[1:].replace(".", "", 1).isdecimal()
