"""Options are read as Python's argparse reads them, which is what horovodrun uses."""

import argparse
from typing import NoReturn

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpijob_elastic.model import horovod_options
from mpijob_elastic.model.horovod_options import OPTIONS


class Refused(Exception):
    """argparse would end horovodrun."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def parser() -> Parser:
    """The parser of horovodrun, with the options of our table."""
    made = Parser(add_help=False)
    for name, option in OPTIONS.items():
        kind = {"action": "count"} if option.count == 0 else {"nargs": option.count}
        made.add_argument(name, dest=option.field or name, **kind)
    made.add_argument("command", nargs=argparse.REMAINDER)
    return made


PARSER = parser()
FIELDS = {option.field for option in OPTIONS.values() if option.field}
OPTION = st.sampled_from(sorted(OPTIONS))
SHORTENED = st.builds(lambda name, cut: name[: max(2, len(name) - cut)], OPTION, st.integers(0, 12))
VALUE = st.sampled_from(["2", "4", "x", "a b", "-", "-3", "--", "-x y", "1.5", "/s.sh", ""])
WORD = OPTION | SHORTENED | st.builds("{}={}".format, OPTION | SHORTENED, VALUE) | VALUE


@given(st.lists(WORD, max_size=8))
@example(["-n", "2", "--min-num", "1", "--max-num=4", "--host-discovery", "s", "python"])
@example(["-np2"])
@example(["-p22", "-hostf", "x"])
@example(["--blacklist-cooldown-range", "60", "300", "-np=2", "python", "-np", "9"])
@example(["-np", "2", "--", "python", "--max-np", "9"])
@example(["--min-n", "1"])
def test_the_same_options_are_found_as_argparse_finds(words: list[str]) -> None:
    found = horovod_options.read(words)
    try:
        parsed, extra = PARSER.parse_known_args(words)
    except Refused:
        return
    if extra or found.unread:
        return  # horovodrun of this version ends, or would end at a word that only we refuse
    values = {field: getattr(parsed, field) for field in FIELDS}
    assert {field: list(words) for field, words in found.values.items()} == {
        field: value for field, value in values.items() if value is not None
    }
    told = any(getattr(parsed, name) for name in OPTIONS if name in horovod_options._TELLS)
    assert found.only_tells == told


@given(st.lists(WORD, max_size=8))
@example(["--min-n", "1"])
@example(["-np2"])
@example(["--elastic"])
def test_what_argparse_refuses_is_unread(words: list[str]) -> None:
    try:
        _, extra = PARSER.parse_known_args(words)
    except Refused:
        extra = ["refused"]
    found = horovod_options.read(words)
    # argparse of Python 3.11 refuses ambiguous words of the ranks' command, too.
    assert found.unread or not extra or _has_command(words)


def _has_command(words: list[str]) -> bool:
    return any(not word.startswith("-") or word == "--" or " " in word for word in words)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("-np 2 -np 3 x", {"np": ["3"]}),
        ("--num-proc=2 --max-num-proc 4", {"np": ["2"], "max_np": ["4"]}),
        ("--blacklist-cooldown-range 60 300 x", {"cooldown": ["60", "300"]}),
        ("--output-filename /logs -np 1", {"np": ["1"], "writes_files": ["/logs"]}),
        ("--tcp --gloo --torus-allreduce -np 1", {"np": ["1"]}),
    ],
)
def test_the_values_that_we_read(words: str, fields: dict[str, list[str]]) -> None:
    found = horovod_options.read(words.split())
    assert {name: list(values) for name, values in found.values.items()} == fields
    assert not found.unread


@pytest.mark.parametrize("word", ["-h", "--help", "--he", "-v", "--version", "-cb", "--check"])
def test_what_only_tells(word: str) -> None:
    assert horovod_options.read(["-np", "2", word, "--max-np", "3"]).only_tells
    assert not horovod_options.read(["-np", "2", "python", word]).only_tells
