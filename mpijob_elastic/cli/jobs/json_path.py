"""Templates of kubectl's JSONPath, such as `{range .items[*]}{.name}{end}`. Pure.

The dialect is that of kubectl (client-go, util/jsonpath), which is not that of RFC 9535: a template
mixes text with paths in braces, missing fields print nothing, and several values are separated by
spaces. What is not known here is refused with the place at which it stands. The decision record
0053 says why no library reads these templates.
"""

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A step: from the values so far to the next values.
PathStep = Callable[[list[Any]], list[Any]]
#: A path: its steps in order.
JsonPath = tuple[PathStep, ...]

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NAME = re.compile(r"(?:\\.|[^\s.,\[\]${}@\\])+")
_STRING = re.compile(r"""'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_WORD = re.compile(r"(range|end)(?![\w-])")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_FILTER = re.compile(r"\?\(\s*([^!<>=]+?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?)\s*)?\)", re.DOTALL)
# How a path begins.
_ROOTS = (".", "$", "@")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PartOfObject(dict[str, Any]):
    """An object that lacks fields for which people look.

    absent: for each of these fields, what the ValueError says that a path to it raises.
    """

    def __init__(self, fields: Mapping[str, Any], absent: Mapping[str, str]) -> None:
        super().__init__(fields)
        self.absent = absent


class AnyElement(list[Any]):
    """The example of an element: each index, slice and filter of a path finds it."""


@dataclass(frozen=True, kw_only=True)
class PathText:
    """Text of a template that is printed as it is."""

    #: The text, without escapes.
    text: str


@dataclass(frozen=True, kw_only=True)
class PathRange:
    """The part of a template between `{range PATH}` and `{end}`."""

    #: The path to the values, for each of which the parts are printed.
    path: JsonPath
    #: What is printed for each value; paths begin at that value.
    parts: "JsonTemplate"


# The parts of a template in order.
JsonTemplate = tuple[PathText | PathRange | JsonPath, ...]


def template(text: str) -> JsonTemplate:
    """Return a template, or one path that is written without braces.

    Raises ValueError if the text is none.
    """
    if not text:
        raise ValueError("the template is empty")
    reader = _Reader(text if "{" in text else f"{{{_rooted(text)}}}")
    parts = reader.parts(inside=False)
    return tuple(parts)


def path(text: str) -> JsonPath:
    """Return a path that may stand without braces and without the first dot.

    Raises ValueError if the text is no path.
    """
    bare = text.strip()
    if bare.startswith("{") and bare.endswith("}"):
        bare = bare[1:-1]
    if not bare:
        raise ValueError("the path is empty")
    reader = _Reader(_rooted(bare.strip()))
    steps = reader.steps()
    reader.expect_end()
    return steps


def values(steps: JsonPath, root: Any) -> list[Any]:
    """Return what a path finds in plain JSON values; nothing for a missing field.

    Raises ValueError for an index that a list does not have, for values that cannot be compared,
    and for an absent field of a PartOfObject.
    """
    found = [root]
    for step in steps:
        found = step(found)
    return found


def rendered(parts: JsonTemplate, root: Any) -> str:
    """Return the text of a template. Raises the errors of `values`."""
    return "".join(_rendered(part, root) for part in parts)


def printed(value: Any) -> str:
    """Return a value as kubectl prints it: texts plain, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _rendered(part: PathText | PathRange | JsonPath, root: Any) -> str:
    if isinstance(part, PathText):
        return part.text
    if isinstance(part, PathRange):
        return "".join(rendered(part.parts, value) for value in values(part.path, root))
    return " ".join(map(printed, values(part, root)))


def _rooted(text: str) -> str:
    """Return a path that begins with a dot, as kubectl reads `name` for `.name`."""
    return text if text[:1] in {".", "[", "$", "@"} else f".{text}"


class _Reader:
    """Reads a template from the left to the right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def parts(self, *, inside: bool) -> Iterator[PathText | PathRange | JsonPath]:
        """Yield the parts up to the end, or up to `{end}` inside of a range."""
        while self._at < len(self._text):
            if self._text[self._at] != "{":
                yield PathText(text=self._until("{"))
                continue
            self._at += 1
            word = self._word()
            if word == "end":
                self._close()
                if not inside:
                    raise self._wrong("{end} without {range}")
                return
            if word == "range":
                yield self._range()
            else:
                yield self._action()
        if inside:
            raise self._wrong("{range} without {end}")

    def steps(self) -> JsonPath:
        """Return the steps of a path; `$` and `@` mean the value at which the path begins."""
        steps = list[PathStep]()
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in "$@ ":
                self._at += 1
            elif sign == ".":
                steps += self._dotted()
            elif sign == "[":
                steps.append(self._bracket())
            else:
                break
        return tuple(steps)

    def expect_end(self) -> None:
        """Raise ValueError unless all was read."""
        if self._at < len(self._text):
            raise self._wrong("no part of a path")

    def _range(self) -> PathRange:
        self._skip_spaces()
        steps = self.steps()
        self._close()
        return PathRange(path=steps, parts=tuple(self.parts(inside=True)))

    def _action(self) -> PathText | JsonPath:
        """Return what stands between two braces: a path, or a text in quotes."""
        self._skip_spaces()
        found: PathText | JsonPath = ()
        if quoted := _STRING.match(self._text, self._at):
            self._at = quoted.end()
            found = PathText(text=_unquoted(quoted))
        elif self._text[self._at : self._at + 1] in {".", "[", "$", "@"}:
            found = self.steps()
        elif not self._text.startswith("}", self._at):
            raise self._wrong("no path and no text in quotes")
        self._close()
        return found

    def _word(self) -> str:
        self._skip_spaces()
        found = _WORD.match(self._text, self._at)
        if not found:
            return ""
        self._at = found.end()
        return found[1]

    def _dotted(self) -> list[PathStep]:
        """Return the steps of `.name`, `.*` and `..name`; a single dot is the value itself."""
        steps = list[PathStep]()
        self._at += 1
        if self._text.startswith(".", self._at):
            self._at += 1
            steps.append(_descend)
        if self._text.startswith("*", self._at):
            self._at += 1
            return [*steps, _each]
        if found := _NAME.match(self._text, self._at):
            self._at = found.end()
            steps.append(_field(_unescaped(found[0])))
        return steps

    def _bracket(self) -> PathStep:
        start = self._at
        inner = self._text[start + 1 : self._closing(start)]
        self._at = start + len(inner) + 2
        if inner.startswith("?"):
            return self._filter(inner)
        parts = [self._selected(part.strip()) for part in _split(inner)]
        return parts[0] if len(parts) == 1 else _union(parts)

    def _closing(self, start: int) -> int:
        """Return the place of the bracket that closes the one at `start`; quotes are passed."""
        at, depth = start, 0
        while at < len(self._text):
            if quoted := _STRING.match(self._text, at):
                at = quoted.end()
                continue
            depth += {"[": 1, "]": -1}.get(self._text[at], 0)
            if depth == 0:
                return at
            at += 1
        self._at = start
        raise self._wrong("[ without ]")

    def _selected(self, text: str) -> PathStep:
        if text == "*":
            return _each
        if quoted := _STRING.fullmatch(text):
            return _quoted_field(quoted[1] if quoted[1] is not None else quoted[2])
        if text and (bounds := _SLICE.fullmatch(text)):
            return _sliced(bounds)
        raise self._wrong(f"[{text}] is no index, no slice, no name in quotes and no filter")

    def _filter(self, text: str) -> PathStep:
        found = _FILTER.fullmatch(text)
        if not found:
            raise self._wrong(f"[{text}] is no filter such as [?(@.state=='Running')]")
        if "&&" in text or "||" in text:
            raise self._wrong(f"[{text}]: a filter compares once, without && and ||")
        left, sign, right = found.groups()
        if left[:1] not in _ROOTS:
            raise self._wrong(f"[{text}]: the left side of a filter is no path such as @.state")
        if not sign:
            return _existing(path(left))
        return _compared(path(left), sign, _operand(right))

    def _until(self, sign: str) -> str:
        start, end = self._at, self._text.find(sign, self._at)
        self._at = len(self._text) if end < 0 else end
        return self._text[start : self._at]

    def _close(self) -> None:
        self._skip_spaces()
        if not self._text.startswith("}", self._at):
            raise self._wrong("} is missing: braces hold one path or one text")
        self._at += 1

    def _skip_spaces(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _wrong(self, why: str) -> ValueError:
        rest = self._text[self._at : self._at + 20]
        return ValueError(f"{why}, at {rest!r}" if rest else f"{why}, at the end")


def _unquoted(quoted: re.Match[str]) -> str:
    return _unescaped(quoted[1] if quoted[1] is not None else quoted[2])


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


def _split(text: str) -> list[str]:
    """Return the parts between commas that stand in no quotes."""
    parts, start = list[str](), 0
    for found in re.finditer(rf"{_STRING.pattern}|,", text, flags=re.DOTALL):
        if found[0] == ",":
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


def _bound(text: str | None) -> int | None:
    """Return the number of a bound such as `3` or `:3`; None for an absent one."""
    digits = (text or "").removeprefix(":")
    return int(digits) if digits.strip("-") else None


def _operand(text: str) -> JsonPath | Sequence[Any]:
    """Return the right side of a comparison: a path, or one value in a list.

    Raises ValueError.
    """
    if text[:1] in {"@", "$", "."}:
        return path(text)
    if quoted := _STRING.fullmatch(text):
        return [_unquoted(quoted)]
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f"{text} is no number, no text in quotes and no path")
    return [found]


def _field(name: str) -> PathStep:
    def step(found: list[Any]) -> list[Any]:
        return [one for value in found for one in _whole(value, name)]

    return step


def _quoted_field(text: str) -> PathStep:
    """Return the step of a name in quotes, which kubectl reads as a path: 'metadata.name'.

    Where a field has the whole name, dots in the name need no backslash.
    """
    name = _unescaped(text)
    try:
        parts = path(text)
    except ValueError:
        return _field(name)

    def step(found: list[Any]) -> list[Any]:
        return [one for value in found for one in _whole(value, name) or values(parts, value)]

    return step


def _whole(value: Any, name: str) -> list[Any]:
    """Return the field with this name in a list; an empty one for an absent field."""
    return [value[name]] if _has(value, name) else []


def _has(value: Any, name: str) -> bool:
    """Tell whether a value has a field. Raises ValueError for an absent one of a PartOfObject."""
    if isinstance(value, PartOfObject) and name in value.absent:
        raise ValueError(value.absent[name])
    return isinstance(value, dict) and name in value


def _each(found: list[Any]) -> list[Any]:
    return [inner for value in found for inner in _inner(value)]


def _inner(value: Any) -> Iterable[Any]:
    """Return the elements of a list, or the values of an object."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descend(found: list[Any]) -> list[Any]:
    """Return each list and object with what it holds, the outer ones first."""
    result = list[Any]()
    for value in found:
        if inner := list(_inner(value)):
            result += [value, *_descend(inner)]
    return result


def _union(parts: Sequence[PathStep]) -> PathStep:
    def step(found: list[Any]) -> list[Any]:
        return [value for part in parts for value in part(found)]

    return step


def _sliced(bounds: re.Match[str]) -> PathStep:
    first, end, pace = map(_bound, bounds.groups())
    if bounds[2] is None and first is not None:
        return _indexed(first)

    def step(found: list[Any]) -> list[Any]:
        if pace is not None and pace < 1:
            raise ValueError("the step of a slice must be above 0")
        return [one for value in _lists(found) for one in _slice(value, first, end)[::pace]]

    return step


def _slice(value: list[Any], first: int | None, end: int | None) -> list[Any]:
    """Return a part of a list; bounds below 0 count from its end. Raises ValueError beyond it."""
    if isinstance(value, AnyElement):
        return value
    size = len(value)
    start = _from_start(first or 0, size)
    stop = size if end is None else _from_start(end, size)
    if start == stop:
        return []
    for index in (start, stop - 1):
        if not 0 <= index < size:
            raise ValueError(f"array index out of bounds: index {index}, length {size}")
    if start > stop:
        raise ValueError(f"starting index {start} is greater than ending index {stop}")
    return value[start:stop]


def _from_start(bound: int, size: int) -> int:
    return bound + size if bound < 0 else bound


def _indexed(index: int) -> PathStep:
    def step(found: list[Any]) -> list[Any]:
        return [_at(value, index) for value in _lists(found)]

    return step


def _at(value: list[Any], index: int) -> Any:
    if isinstance(value, AnyElement):
        return value[0]
    if not -len(value) <= index < len(value):
        raise ValueError(f"array index out of bounds: index {index}, length {len(value)}")
    return value[index]


def _lists(found: list[Any]) -> list[list[Any]]:
    """Return the lists among values; null is none. Raises ValueError for anything else."""
    lists = [value for value in found if value is not None]
    if any(not isinstance(value, list) for value in lists):
        raise ValueError("an index, a slice or a filter needs a list")
    return lists


def _existing(steps: JsonPath) -> PathStep:
    # A report has null where other objects lack the field.
    return _filtered(lambda one: any(value is not None for value in values(steps, one)))


def _compared(left: JsonPath, sign: str, right: JsonPath | Sequence[Any]) -> PathStep:
    def passes(one: Any) -> bool:
        lefts = values(left, one)
        rights = values(right, one) if isinstance(right, tuple) else right
        if len(lefts) > 1 or len(rights) > 1:
            raise ValueError("a filter compares one value with one value")
        return bool(lefts) and bool(rights) and _holds(lefts[0], sign, rights[0])

    return _filtered(passes)


def _filtered(passes: Callable[[Any], bool]) -> PathStep:
    def step(found: list[Any]) -> list[Any]:
        return [one for value in _lists(found) for one in _passing(value, passes)]

    return step


def _passing(value: list[Any], passes: Callable[[Any], bool]) -> list[Any]:
    return value if isinstance(value, AnyElement) else list(filter(passes, value))


def _kind(value: Any) -> type:
    """Return a type that all values share that can be compared with one another."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float
    return type(value)


def _holds(left: Any, sign: str, right: Any) -> bool:
    if left is None or right is None:
        return False  # a report has null where other objects lack the field
    error = ValueError(f"{printed(left)} {sign} {printed(right)} cannot be compared")
    if _kind(left) is not _kind(right):
        raise error
    try:
        return _COMPARISONS[sign](left, right)
    except TypeError:
        raise error from None
