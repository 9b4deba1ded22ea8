"""The decorator of the commands that read or change a cluster."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import Parameter
from typing import Any

import typer

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import AllNamespaces, Context, Contexts, Kubeconfig, Namespace
from mpijob_elastic.cli.target import Where
from mpijob_elastic.telemetry.terminal import say

#: The parameter of a decorated function that holds what the shared options say.
WHERE = "where"
# How a command ended; None: done.
Ended = Exit | None
# A command: a function that returns how it ended, or a coroutine function.
Work = Callable[..., Coroutine[Any, Any, Ended] | Ended]


def _option(name: str, annotation: Any, *, default: bool | None = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


_NAMESPACE = _option("namespace", Namespace)
_ALL_NAMESPACES = _option("all_namespaces", AllNamespaces, default=False)
_KUBECONFIG = _option("kubeconfig", Kubeconfig)
_CONTEXT = _option("context", Context)
_CONTEXTS = _option("context", Contexts)


def cluster_command(
    *,
    namespace: bool = True,
    all_namespaces: bool = False,
    several_contexts: bool = False,
    interrupted: str = "",
) -> Callable[[Work], Callable[..., None]]:
    """Give a command the shared options; run it, and exit with the code that it returns.

    The command has a parameter `where` at the place of the namespace among its options, which
    becomes --namespace and --all-namespaces; --kubeconfig and --context are the last options.

    namespace: whether the command has --namespace.
    all_namespaces: whether the command has --all-namespaces.
    several_contexts: whether --context is repeatable; then `where` is a list with a `Where` for
        each context.
    interrupted: what to say after Ctrl-C; "" for nothing.
    """
    here = [_NAMESPACE] if namespace else []
    if all_namespaces:
        here.append(_ALL_NAMESPACES)
    last = [_KUBECONFIG, _CONTEXTS if several_contexts else _CONTEXT]

    def decorated(work: Work) -> Callable[..., None]:
        @wraps(work)
        def command(**given: Any) -> None:
            shared = {option.name: given.pop(option.name) for option in (*here, *last)}
            where = _each_context(shared) if several_contexts else Where(**shared)
            raise typer.Exit(_exit_code(work, {WHERE: where, **given}, interrupted))

        _tell_typer(command, _options(work, here, last))
        return command

    return decorated


def _each_context(shared: dict[str, Any]) -> list[Where]:
    """Return where each of the given contexts leads; without one, where the current one leads."""
    contexts = shared.pop("context") or [None]
    return [Where(context=context, **shared) for context in contexts]


def _exit_code(work: Work, given: dict[str, Any], interrupted: str) -> Exit:
    """Run the command and return its exit code."""
    try:
        ended = work(**given)
        if inspect.iscoroutine(ended):
            return asyncio.run(ended) or Exit.DONE
    except KeyboardInterrupt:
        if not interrupted:
            raise
        say(interrupted, err=True)
        return Exit.INTERRUPTED
    assert isinstance(ended, Ended)
    return ended or Exit.DONE


def _options(work: Work, here: list[Parameter], last: list[Parameter]) -> list[Parameter]:
    """Return the parameters of a command: `here` in the place of `where`, and `last` behind all."""
    own = list(inspect.signature(work, eval_str=True).parameters.values())
    at = [parameter.name for parameter in own].index(WHERE)
    options = [*own[:at], *here, *own[at + 1 :], *last]
    return [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]


def _tell_typer(command: Callable[..., None], options: list[Parameter]) -> None:
    """Let typer read these parameters as those of the command."""
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
