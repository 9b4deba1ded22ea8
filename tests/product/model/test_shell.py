"""A script is cut into the commands that a shell would run: bash itself is asked."""

import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpijob_elastic.model import shell

BASH = shutil.which("bash")


def words(script: str) -> list[list[str]]:
    found, is_whole = shell.commands(script)
    assert is_whole
    return [command.words for command in found]


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("", []),
        ("a b;c&&d||e|f&g\nh", [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["h"]]),
        ("a 'b c' \"d $E\" f\\ g", [["a", "b c", "d $E", "f g"]]),
        ("a 'b'\"c\"d", [["a", "bcd"]]),
        ('a "\\"b\\" \\$c \\d"', [["a", '"b" $c \\d']]),
        ("a $(b c) d", [["b", "c"], ["a", "$(b c)", "d"]]),
        ("a `b \\`c\\``", [["c"], ["b", "`c`"], ["a", "`b \\`c\\``"]]),
        ("a $((1 + (2))) ${b:-c d}", [["a", "$((1 + (2)))", "${b:-c d}"]]),
        ("a >b 2>&1 <<<c &>d 3<>e {f}>g h", [["a", "h"]]),
        ("a 2 >b", [["a", "2"]]),
        ("a b2>c", [["a", "b2"]]),
        ("a# b #c\n# d", [["a#", "b"]]),
        ("a $'b\\'c d' e", [["a", "$'b\\'c d'", "e"]]),
        ('a "b $\'c" d', [["a", "b $'c", "d"]]),
        ("a <(b) c", [["b"], ["a", "<(b)", "c"]]),
        ("if a; then b; else c; fi", [["a"], ["b"], ["c"], ["fi"]]),
        ("case a in b) c;; esac", [["c"]]),
        ("a=(b c) d", [["d"]]),
        ("a\\\nb c \\\n d", [["ab", "c", "d"]]),
    ],
)
def test_the_words_of_each_command(script: str, commands: list[list[str]]) -> None:
    assert words(script) == commands


def test_a_here_document_belongs_to_its_command() -> None:
    found, _ = shell.commands("a <<X; b <<-Y\n1\n2\nX\n\t3\n\tY\nc")
    assert [(command.words, command.stdin) for command in found] == [
        (["a"], "1\n2"),
        (["b"], "3"),
        (["c"], ""),
    ]


@pytest.mark.parametrize(
    "script", ["a; 'b", 'a; "b', "a; b `c", "a; $(b", "a; ${b", "a; ((b", "a; b\\", "a; $'b"]
)
def test_of_what_ends_too_early_the_commands_before_are_read(script: str) -> None:
    found, is_whole = shell.commands(script)
    assert (found[0].words, is_whole) == (["a"], False)


# Words that bash gives back as they are: nothing in them expands.
ARGUMENT = st.text(st.sampled_from("ab -=.,:/@%+#\\\"'~;&|()<>{}!"), max_size=6)


def _quoted(text: str, style: int) -> str:
    if style == 0:
        return "'" + text.replace("'", "'\\''") + "'"
    if style == 1:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "".join(f"\\{character}" for character in text) or "''"


@pytest.mark.skipif(BASH is None, reason="bash is missing")
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(ARGUMENT, st.integers(0, 2)), min_size=1, max_size=5))
def test_bash_finds_the_same_words(arguments: list[tuple[str, int]]) -> None:
    line = " ".join(_quoted(text, style) for text, style in arguments)
    script = f"{{ if true; then printf '%s\\0' {line} 2>/dev/null ; fi; }}"
    said = subprocess.check_output([str(BASH), "-c", script], text=True)
    given_ = said.split("\0")[:-1]
    [found] = [command for command in words(script) if command[0] == "printf"]
    assert found[2:] == given_ == [text for text, _ in arguments]


PIECES = st.sampled_from(
    [
        *"'\"`;\n#$(){}<>&|\\ =",
        "$(",
        "${",
        "((",
        "<<A",
        "\nA\n",
        "case x in",
        "esac",
        "do ",
        "a",
        "x=(",
    ]
)


@given(st.lists(PIECES, max_size=60))
@example(["$("] * 50)
@example(["${", '"'] * 30)
@example(["`", "\\`"] * 20)
@example(["("] * 200)
@example(["case x in a)"] * 200)
@example(["\x0b", "\u00a0"])
def test_nothing_makes_it_fail(pieces: list[str]) -> None:
    found, _ = shell.commands("".join(pieces))
    assert all(command.words for command in found)
