"""The options of a service, read where they are written plainly; the command line reads the rest.

`cli/commands` describes the same options for people, and a test compares the two.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mpijob_elastic import names

_NUMBER = re.compile(r"[0-9]{1,9}")
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class NotPlain(Exception):
    """Only the command line can tell what these words mean, or what is wrong with them."""


class Misuse(ValueError):
    """An option has a value that the service cannot use.

    option: its name, "" if the message says it.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class PlainOption:
    """How the words of one option become a value."""

    #: The parameter of the service's `run`.
    parameter: str
    #: Makes the value of the word behind the option; None for a flag, which has no such word.
    read: Callable[[str], Any] | None
    #: The option may stand there several times, and its value is the list of all.
    repeatable: bool = False
    #: The value of a flag.
    flag: bool = True


def _number(word: str, *, least: int, most: int) -> int:
    if not _NUMBER.fullmatch(word) or not least <= int(word) <= most:
        raise NotPlain
    return int(word)


def _seconds(word: str) -> float:
    if not _SECONDS.fullmatch(word):
        raise NotPlain
    return float(word)


def _choice(word: str, *, known: Sequence[str]) -> str:
    if word not in known:
        raise NotPlain
    return word


def _readable_file(word: str) -> Path:
    if not Path(word).is_file() or not os.access(word, os.R_OK):
        raise NotPlain
    return Path(word)


_PORT = partial(_number, least=0, most=65535)
_SHARED = {
    "--kubeconfig": PlainOption("kubeconfig", _readable_file),
    "--context": PlainOption("context", str),
    "--jobs-namespace": PlainOption("jobs_namespace", str, repeatable=True),
    "--health-port": PlainOption("health_port", _PORT),
    "--log-format": PlainOption("log_format", partial(_choice, known=("json", "console"))),
    "--log-level": PlainOption(
        "log_level", partial(_choice, known=("debug", "info", "warning", "error"))
    ),
}
#: The options of each service.
OPTIONS: Mapping[str, Mapping[str, PlainOption]] = {
    "controller": {
        **_SHARED,
        "--health-host": PlainOption("health_host", str),
        "--workers": PlainOption("workers", partial(_number, least=1, most=256)),
        "--node-watch": PlainOption("node_watch", None),
        "--no-node-watch": PlainOption("node_watch", None, flag=False),
        "--disruption-sign": PlainOption("disruption_sign", str, repeatable=True),
        "--ignore-disruption-sign": PlainOption("ignore_disruption_sign", str, repeatable=True),
        "--component": PlainOption("component", str, repeatable=True),
    },
    "webhook": {
        **_SHARED,
        "--host": PlainOption("host", str),
        "--port": PlainOption("port", _PORT),
        "--namespace": PlainOption("namespace", str),
        "--extra-san": PlainOption("extra_san", str, repeatable=True),
        "--certificate-directory": PlainOption("certificate_directory", Path),
        "--template-labels": PlainOption("template_labels", None),
        "--no-template-labels": PlainOption("template_labels", None, flag=False),
        "--drain-seconds": PlainOption("drain_seconds", _seconds),
    },
}


def read(words: Sequence[str], environment: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the service that the words of a command name, and the parameters of its `run`.

    Raises `NotPlain`.
    """
    service, *rest = words or [""]
    options = OPTIONS.get(service)
    if options is None:
        raise NotPlain
    found = dict[str, Any]()
    while rest:
        option, value = _taken(rest, options)
        if option.repeatable:
            found.setdefault(option.parameter, []).append(value)
            continue
        if option.parameter in found:
            raise NotPlain
        found[option.parameter] = value
    spaced = environment.get(names.JOBS_NAMESPACE_VARIABLE, "").split()
    if spaced:
        found.setdefault("jobs_namespace", spaced)
    return service, found


def _taken(words: list[str], options: Mapping[str, PlainOption]) -> tuple[PlainOption, Any]:
    """Take the first option off the words, and return it with its value. Raises `NotPlain`."""
    name, equals, value = words.pop(0).partition("=")
    option = options.get(name)
    if option is None:
        raise NotPlain
    if option.read is None:
        if equals:
            raise NotPlain
        return option, option.flag
    if not equals:
        if not words:
            raise NotPlain
        value = words.pop(0)
    if value.startswith("-"):
        raise NotPlain
    return option, option.read(value)
