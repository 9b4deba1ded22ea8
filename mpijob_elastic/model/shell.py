"""The commands of a shell script as lists of words; nothing is run, and nothing is expanded.

The grammar is POSIX', with what bash adds to it
(https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html). Where a command stands
does not matter: in a loop, a branch, a function, a subshell or a substitution, each is one command.
The caller bounds the script's length. The time grows with that length, and the depth is bounded.

Why an own reader: bashlex is GPL-3.0-or-later, which this project (Apache-2.0) cannot ship.
tree-sitter-bash 0.25.1 takes the words after a redirection for more files to write to
(https://github.com/tree-sitter/tree-sitter-bash/issues/233), and would parse hostile text in C.
"""

import re
from dataclasses import dataclass

# Levels of substitutions within substitutions.
_DEEPEST = 8
# What is open at a time on one of these levels; words, operators and substitutions of a script.
_MOST_OPEN, _MOST_TOKENS = 64, 800
_BLANKS = re.compile(r"(?:[ \t\r]|\\\n)+")
_BLANK = {**dict.fromkeys(" \t\r\\", _BLANKS), "#": re.compile(r"#[^\n]*")}
# A word in which nothing is special, with the blanks after it: most words are so.
_SIMPLE = re.compile(r"""([^ \t\r\n;&|()<>'"\\$`#]+)(?:[ \t\r]+|(?=[;&|\n)])|\Z)""")
_PLAIN = re.compile(r"""[^ \t\r\n;&|()<>'"\\$`]+""")
_PLAIN_IN_QUOTES = re.compile(r'[^"\\$`]+')
_REDIRECTION = re.compile(r"&>>?|<<<|<<-?|<>|<&|>>|>&|>\||<|>")
_CONTROL = frozenset(";&|\n")
# The number or the variable of a descriptor, directly before a redirection.
_DESCRIPTOR = re.compile(r"[0-9]{1,9}|\{[A-Za-z_][A-Za-z0-9_]{0,255}\}")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\+?=")
# Reserved words that stand before a command of their construct.
_BEFORE_COMMAND = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_ESCAPED_IN_QUOTES = '$`"\\'
_PARENTHESES = re.compile(r"[()]")
_ANSI_QUOTED = re.compile(r"\$'(?:[^'\\]++|\\.)*+'", re.DOTALL)
_BACKTICKS = re.compile(r"`(?:[^`\\]++|\\.)*+`", re.DOTALL)
_ESCAPED_IN_BACKTICKS = re.compile(r"\\([$`\\])")


class Unreadable(Exception):
    """The script ends within a quotation, or is deeper or of more words than we read."""


@dataclass(kw_only=True, slots=True)
class Command:
    """A simple command."""

    #: Its words without quotes and redirections. What the shell expands stays as it was written,
    #: such as `$NP` or `$(wc -l < hosts)`.
    words: list[str]
    #: The here-document that it reads; "" without one.
    stdin: str = ""


def commands(script: str) -> tuple[list[Command], bool]:
    """Return the commands in the order in which they end, and False if not all could be read."""
    reader = _Reader(script, _Budget())
    try:
        reader.read(inner=False)
    except Unreadable:
        return reader.found, False
    return reader.found, True


def _strip(words: list[str]) -> None:
    """Take off the reserved words before a command, and the name of a function."""
    first = 0
    while first < len(words):
        if words[first] in _BEFORE_COMMAND:
            first += 1
        elif words[first] == "function":
            first += 2
        else:
            break
    del words[:first]


@dataclass
class _Budget:
    """What may still be read of a script and of the scripts within it."""

    tokens: int = _MOST_TOKENS
    levels: int = _DEEPEST

    def spend(self) -> None:
        """Count a token. Raises Unreadable after the last."""
        self.tokens -= 1
        if self.tokens < 0:
            raise Unreadable

    def descend(self) -> None:
        """Count a level and a token. Raises Unreadable below the last level."""
        self.spend()
        self.levels -= 1
        if self.levels < 0:
            raise Unreadable


class _Reader:
    """Reads a script from its start to its end, each character once for each level."""

    def __init__(self, text: str, budget: _Budget) -> None:
        self.found: list[Command] = []
        self._text = text
        self._at = 0
        self._budget = budget
        self._command = Command(words=[])
        # What is open around the command: "(", "case", or "array".
        self._open: list[str] = []
        # Delimiter, whether tabs are cut off, and reader of each here-document of this line.
        self._documents: list[tuple[str, bool, Command]] = []

    def read(self, *, inner: bool) -> None:
        """Read to the end; inner: to the parenthesis that ends a substitution."""
        while self._at < len(self._text):
            if self._blank():
                continue
            self._budget.spend()
            if simple := _SIMPLE.match(self._text, self._at):
                self._command.words.append(simple[1])
                self._at = simple.end()
            elif self._text[self._at] == ")":
                if self._closes_all() and inner:
                    return
            else:
                self._token(self._text[self._at])
        self._finish()
        if inner:
            raise Unreadable

    def _blank(self) -> bool:
        """Read blanks or a comment, if one begins here."""
        pattern = _BLANK.get(self._text[self._at])
        return pattern is not None and self._skip(pattern)

    def _token(self, character: str) -> None:
        """Read an operator or a word that begins with this character."""
        if character in "<>" or self._text.startswith("&>", self._at):
            self._redirection()
        elif character in _CONTROL:
            self._at += 1
            self._finish()
            if character == "\n":
                self._read_documents()
        elif character == "(":
            self._parenthesis()
        else:
            self._argument()

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found is not None

    def _finish(self) -> None:
        """End the command."""
        if not self._command.words:
            return
        command, self._command = self._command, Command(words=[])
        words = command.words
        _strip(words)
        if not words or "array" in self._open:
            return
        if words[0] == "case":
            self._begin("case")
        elif words[0] == "esac" and self._open[-1:] == ["case"]:
            self._open.pop()
        else:
            self.found.append(command)

    def _parenthesis(self) -> None:
        """Read what opens: arithmetic, an array, a subshell, or a function."""
        if self._text.startswith("((", self._at):
            self._arithmetic()
            return
        words, before = self._command.words, self._text[self._at - 1 : self._at]
        is_array = bool(words) and before == "=" and _ARRAY.fullmatch(words[-1]) is not None
        self._at += 1
        if is_array:
            words.clear()
        self._finish()
        self._begin("array" if is_array else "(")

    def _begin(self, kind: str) -> None:
        self._open.append(kind)
        if len(self._open) > _MOST_OPEN:
            raise Unreadable

    def _closes_all(self) -> bool:
        """Read a closing parenthesis; return True if it closes nothing that was opened here."""
        self._at += 1
        _strip(self._command.words)
        if self._command.words[:1] in (["case"], ["esac"]):
            self._finish()
        if self._open[-1:] == ["case"]:
            self._command.words.clear()  # a pattern
            return False
        self._finish()
        if not self._open:
            return True
        self._open.pop()
        return False

    def _argument(self) -> None:
        start = self._at
        word = self._word()
        is_descriptor = _DESCRIPTOR.fullmatch(self._text, start, self._at) is not None
        if not (is_descriptor and self._text[self._at : self._at + 1] in ("<", ">")):
            self._command.words.append(word)

    def _redirection(self) -> None:
        if self._text[self._at + 1 : self._at + 2] == "(" and self._text[self._at] in "<>":
            self._command.words.append(self._substitution(2))
            return
        operator = self._match(_REDIRECTION)[0]
        self._skip(_BLANKS)
        if self._text[self._at : self._at + 2] in ("<(", ">("):
            self._substitution(2)
            return
        target = self._word()
        if operator in ("<<", "<<-"):
            self._documents.append((target, operator == "<<-", self._command))

    def _read_documents(self) -> None:
        """Read the here-documents that begin at this line."""
        documents, self._documents = self._documents, []
        for delimiter, cuts_tabs, command in documents:
            lines: list[str] = []
            while self._at < len(self._text):
                line = self._line()
                line = line.lstrip("\t") if cuts_tabs else line
                if line == delimiter:
                    break
                lines.append(line)
            command.stdin = "\n".join(lines)

    def _line(self) -> str:
        start, end = self._at, self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end
        self._at = end + 1
        return self._text[start:end]

    def _word(self) -> str:
        """Read a word; "" if none stands here."""
        parts: list[str] = []
        while self._at < len(self._text):
            if found := _PLAIN.match(self._text, self._at):
                self._at = found.end()
                parts.append(found[0])
                continue
            character = self._text[self._at]
            if character == "\\":
                parts.append(self._escaped())
            elif character == "'":
                parts.append(self._until("'"))
            elif character == '"':
                parts.append(self._double_quoted())
            elif self._text.startswith("$'", self._at):
                parts.append(self._match(_ANSI_QUOTED)[0])
            elif character in "$`":
                parts.append(self._expansion())
            else:
                break
        return "".join(parts)

    def _escaped(self) -> str:
        character = self._text[self._at + 1 : self._at + 2]
        if not character:
            raise Unreadable
        self._at += 2
        return "" if character == "\n" else character

    def _until(self, end: str) -> str:
        """Read a quotation in which nothing is special."""
        start = self._at + 1
        at = self._text.find(end, start)
        if at < 0:
            raise Unreadable
        self._at = at + 1
        return self._text[start:at]

    def _double_quoted(self) -> str:
        parts: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            if found := _PLAIN_IN_QUOTES.match(self._text, self._at):
                self._at = found.end()
                parts.append(found[0])
                continue
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return "".join(parts)
            if character == "\\":
                escaped = self._escaped()
                is_special = not escaped or escaped in _ESCAPED_IN_QUOTES
                parts.append(escaped if is_special else f"\\{escaped}")
            else:
                parts.append(self._expansion())
        raise Unreadable

    def _expansion(self) -> str:
        """Read what begins with a dollar or a backtick; return it as it was written."""
        start = self._at
        if self._text[start] == "`":
            return self._backticks()
        following = self._text[start + 1 : start + 2]
        if self._text.startswith("$((", start):
            self._at += 1
            self._arithmetic()
        elif following == "(":
            return self._substitution(2)
        elif following == "{":
            self._braces()
        else:
            self._at += 1  # of `$"text"`, too: it is a quotation in double quotes
        return self._text[start : self._at]

    def _substitution(self, opening: int) -> str:
        """Read the commands in parentheses, after an opening of so many characters."""
        start = self._at
        outer = self._command, self._open, self._documents
        self._command, self._open, self._documents = Command(words=[]), [], []
        self._at += opening
        self._budget.descend()
        self.read(inner=True)
        self._budget.levels += 1
        self._command, self._open, self._documents = outer
        return self._text[start : self._at]

    def _backticks(self) -> str:
        found = self._match(_BACKTICKS)
        self._budget.descend()
        inner = _Reader(_ESCAPED_IN_BACKTICKS.sub(r"\1", found[0][1:-1]), self._budget)
        inner.read(inner=False)
        self._budget.levels += 1
        self.found += inner.found
        return found[0]

    def _braces(self) -> None:
        """Read `${...}`."""
        self._at += 2
        self._budget.descend()
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "}":
                self._at += 1
                self._budget.levels += 1
                return
            if character == "\\":
                self._escaped()
            elif character == '"':
                self._double_quoted()
            elif character in "$`":
                self._expansion()
            else:
                self._at += 1
        raise Unreadable

    def _arithmetic(self) -> None:
        """Read parentheses that begin here, with all that they hold."""
        level = 0
        for found in _PARENTHESES.finditer(self._text, self._at):
            level += 1 if found[0] == "(" else -1
            if level == 0:
                self._at = found.end()
                return
        raise Unreadable

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise Unreadable
        self._at = found.end()
        return found
