"""Read YAML as kubectl reads it, and write YAML that everybody reads as it was meant.

PyYAML and kubectl decide differently what a scalar without quotes is. kubectl reads `1e-4`, `0899`,
`0o17` and `y` as numbers and a boolean, and `22:22` and dates as strings. Here a value is what
kubectl sends to the API server for it: an object, a list, a string, a number, a boolean or null.
PyYAML scans with libyaml, from which go-yaml 2 was ported, so only what follows after the scanner
is done again here. Three things in brackets differ in libyaml 0.2.5: it refuses a word that ends
with a colon, as in `{a:}`; it takes a `?` within a word, which go-yaml refuses; and a tag ends
before a bracket or comma, as in `[!, a]`.

Sources: sigs.k8s.io/yaml v1.6.0, yaml.go; go.yaml.in/yaml/v2 v2.4.2, resolve.go and decode.go;
k8s.io/apimachinery v0.34.4, pkg/util/yaml/decoder.go. tests/lab/test_kubectl_yaml.py compares both
directions with these modules.
"""

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

import yaml

# Levels of objects and lists in one another. An object of Kubernetes has some twenty.
MOST_LEVELS = 100
_TOO_DEEP = f"more than {MOST_LEVELS} levels of objects and lists"

_OF_YAML = "tag:yaml.org,2002:"
_STR, _NULL, _BOOL, _INT, _FLOAT, _TIMESTAMP, _BINARY, _MERGE = (
    _OF_YAML + name
    for name in ("str", "null", "bool", "int", "float", "timestamp", "binary", "merge")
)
# go-yaml looks at the value of a scalar with one of these tags. With any other, it is a string.
_RESOLVED = frozenset({_STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP})
_TABLE: dict[str, tuple[str, bool | float | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES"), (_BOOL, True)),
    **dict.fromkeys(("true", "True", "TRUE", "on", "On", "ON"), (_BOOL, True)),
    **dict.fromkeys(("n", "N", "no", "No", "NO"), (_BOOL, False)),
    **dict.fromkeys(("false", "False", "FALSE", "off", "Off", "OFF"), (_BOOL, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (_NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (_FLOAT, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (_FLOAT, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (_FLOAT, -math.inf)),
}
# strconv.ParseInt with base 0. The name of a group ends with its base.
_WHOLE = re.compile(
    r"(?P<sign>[+-]?)(?:0[bB](?P<b2>[01]+)|0[oO](?P<o8>[0-7]+)|0[xX](?P<x16>[0-9a-fA-F]+)"
    r"|0(?P<c8>[0-7]+)|(?P<d10>0|[1-9][0-9]*))"
)
# After the prefix 0b, go-yaml allows a sign.
_SIGNED_BINARY = re.compile(r"0b([+-][01]+)")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
# strconv.ParseFloat of a text that begins with a dot.
_FRACTION = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
# Numbers with base 60 in YAML 1.1. kubectl reads them as strings, and writes them in quotes.
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
# No number of 64 bits has as many digits.
_DIGITS = 20
# From here on, JSON of Go has an exponent, so that kubectl reads no whole number.
_MOST_WHOLE = 1e21

# The share of values that may come from aliases: 99 % up to the first number of values, 10 % from
# the second number on.
_ALIASED = ((400_000, 0.99), (4_000_000, 0.10))

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SEPARATOR = "---"


class NotYaml(ValueError):
    """A text is not YAML, or kubectl does not take it."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document of a text."""

    #: The value, in types of JSON.
    value: Any
    #: Keys that an object has twice. The last one counts.
    twice: tuple[str, ...] = ()


def documents(text: str) -> list[Document]:
    """Return the documents of YAML or JSON, without those that are empty or null.

    Like kubectl, separates the documents before it reads any. Raises `NotYaml`.
    """
    found = [one for first, part in _parts(text) for one in _read(part, first)]
    return [one for one in found if one.value is not None]


def read_all(text: str) -> list[Any]:
    """Return the value of each document, without null. Raises `NotYaml`."""
    return [one.value for one in documents(text)]


def dump(value: object, *, sort_keys: bool = False) -> str:
    """Return the YAML of a value in types of JSON, without aliases, and in ASCII."""
    found: str = yaml.dump(value, Dumper=_Dumper, sort_keys=sort_keys, width=math.inf)
    return found


def dump_all(values: Iterable[object]) -> str:
    """Return the YAML of all values, with a line `---` between them."""
    return f"{_SEPARATOR}\n".join(map(dump, values))


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the first line, and the lines of each document, with its `---`."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    first, part = 1, list[str]()
    for number, line in enumerate(lines, start=1):
        if not line.startswith(_SEPARATOR):
            part.append(f"{line}\n")
            continue
        rest = line.removeprefix(_SEPARATOR).strip()
        if rest and not rest.startswith("#"):
            raise NotYaml(f"write what follows `---` on the next line: {rest[:40]}")
        yield first, "".join(part)
        first, part = number, [f"{_SEPARATOR}\n"]
    yield first, "".join(part)


def _read(text: str, first: int) -> list[Document]:
    """Return the objects of JSON one after another, else the document of YAML.

    first: the number of the text's first line.
    """
    if not text.removeprefix(_SEPARATOR).strip():
        return []
    objects = _json(text)
    if objects:
        return [Document(value=_plain(one)) for one in objects]
    try:
        reader = _Reader()
        root = _root(text)
        return [Document(value=reader.value(root), twice=tuple(reader.twice))]
    except yaml.MarkedYAMLError as error:
        line = first + (error.problem_mark.line if error.problem_mark else 0)
        raise NotYaml(f"line {line}: {error.context or ''} {error.problem or ''}") from error
    except yaml.YAMLError as error:
        raise NotYaml(f"line {first} or below: {' '.join(str(error).split())}") from error


def _json(text: str) -> list[Any]:
    """Return the objects of a stream of JSON, none if it is not JSON."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    found, rest = list[Any](), text.strip().removeprefix(_SEPARATOR).lstrip()
    if not rest.startswith("{"):
        return []
    try:
        while rest:
            value, end = decoder.raw_decode(rest)
            found.append(value)
            rest = rest[end:].lstrip()
    except (ValueError, RecursionError):
        return []
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _plain(value: Any, level: int = 0) -> Any:
    """Return a value of Python's JSON as Go's JSON has it."""
    if level > MOST_LEVELS:
        raise NotYaml(_TOO_DEEP)
    if isinstance(value, dict):
        return {_whole_text(key): _plain(part, level + 1) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, level + 1) for part in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value)
    return _whole_text(value) if isinstance(value, str) else value


def _whole_text(text: str) -> str:
    """Return a text with U+FFFD for each half of a pair of UTF-16 that stands alone."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(eq=False, slots=True)
class _Scalar:
    #: The tag as it is written, with its prefix in full; None without one.
    tag: str | None
    text: str
    #: No quotes, and no tag but `!`.
    plain: bool

    @property
    def merges(self) -> bool:
        return self.text == "<<" and (self.plain or self.tag == _MERGE)


@dataclass(eq=False, slots=True)
class _List:
    items: "list[_Node]" = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Object:
    pairs: "list[tuple[_Node, _Node]]" = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Alias:
    name: str
    node: "_Scalar | _List | _Object"


_Node = _Scalar | _List | _Object | _Alias


def _root(text: str) -> _Node:
    """Return the tree of a document, which is null if the text is empty. Raises YAMLError."""
    try:
        events = yaml.parse(text, Loader=_LOADER)
        next(events)  # the stream begins
        if isinstance(next(events), yaml.StreamEndEvent):
            return _Scalar(tag=None, text="", plain=True)
        root = _node(next(events), events, {}, 0)
        for _ in events:  # the document ends, and the stream
            pass
    except UnicodeError as error:
        raise NotYaml(str(error)) from error
    return root


def _node(
    event: yaml.Event, events: Iterator[yaml.Event], anchors: dict[str, _Node], level: int
) -> _Node:
    """Return the node that begins with the event.

    An alias means the last anchor of its name, as in go-yaml.
    """
    if level > MOST_LEVELS:
        raise NotYaml(_TOO_DEEP)
    if isinstance(event, yaml.AliasEvent):
        name = event.anchor or ""
        node = anchors.get(name)
        if node is None or isinstance(node, _Alias):
            raise NotYaml(f"there is no anchor &{name} before *{name}")
        return _Alias(name=name, node=node)
    if isinstance(event, yaml.ScalarEvent):
        scalar = _Scalar(tag=event.tag, text=event.value, plain=event.implicit[0])
        _anchor(event, scalar, anchors)
        return scalar
    if isinstance(event, yaml.SequenceStartEvent):
        found = _List()
        _anchor(event, found, anchors)
        while not isinstance(inner := next(events), yaml.SequenceEndEvent):
            found.items.append(_node(inner, events, anchors, level + 1))
        return found
    mapping = _Object()
    _anchor(event, mapping, anchors)
    while not isinstance(inner := next(events), yaml.MappingEndEvent):
        key = _node(inner, events, anchors, level + 1)
        mapping.pairs.append((key, _node(next(events), events, anchors, level + 1)))
    return mapping


def _anchor(event: yaml.Event, node: _Node, anchors: dict[str, _Node]) -> None:
    name = event.anchor if isinstance(event, yaml.NodeEvent) else None
    if name is not None:
        anchors[name] = node


class _Reader:
    """Makes the value of a document."""

    def __init__(self) -> None:
        self.twice = list[str]()
        self._values = 0
        #: The values that came from aliases.
        self._aliased = 0
        #: The aliases that are being read.
        self._open = list[_Alias]()
        self._level = 0

    def value(self, node: _Node) -> Any:
        """Return the value of a node. Raises `NotYaml`."""
        self._count()
        if isinstance(node, _Alias):
            with self._inside(node):
                return self.value(node.node)
        if isinstance(node, _Scalar):
            found = _scalar(node)
            return _number(found) if isinstance(found, float) else found
        self._level += 1
        if self._level > MOST_LEVELS:
            raise NotYaml(_TOO_DEEP)
        result: Any
        if isinstance(node, _List):
            result = [self.value(item) for item in node.items]
        else:
            result = {}
            self._fill(node, result)
        self._level -= 1
        return result

    def _fill(self, node: _Object, result: dict[str, Any]) -> None:
        """Add the pairs of a mapping to an object.

        A merge key acts where it stands: it replaces what stands before it.
        """
        here = set[str]()
        for key, value in node.pairs:
            if isinstance(key, _Scalar) and key.merges:
                self._merge(value, result)
                continue
            name = self._key(key)
            if name in here:
                self.twice.append(name)
            here.add(name)
            result[name] = self.value(value)

    def _merge(self, node: _Node, result: dict[str, Any]) -> None:
        # The first of several comes last, so that its fields remain.
        for one in reversed(node.items) if isinstance(node, _List) else (node,):
            self._count()
            merged = one.node if isinstance(one, _Alias) else one
            if not isinstance(merged, _Object):
                raise NotYaml("a merge key `<<` takes an object, or a list of objects")
            with self._inside(one) if isinstance(one, _Alias) else nullcontext():
                self._fill(merged, result)

    def _key(self, node: _Node) -> str:
        """Return the text of a key, as sigs.k8s.io/yaml makes it."""
        self._count()
        target = node.node if isinstance(node, _Alias) else node
        if not isinstance(target, _Scalar):
            raise NotYaml("an object or a list is no key")
        value = _scalar(target)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return _float_key(value)
        if value is None or (isinstance(value, int) and value >= 1 << 63):
            raise NotYaml(f"{target.text or 'null'} is no key; write it in quotes")
        return str(value)

    @contextmanager
    def _inside(self, alias: _Alias) -> Iterator[None]:
        if alias in self._open:
            raise NotYaml(f"&{alias.name} contains itself")
        if len(self._open) == MOST_LEVELS:
            raise NotYaml(_TOO_DEEP)
        self._open.append(alias)
        yield
        self._open.pop()

    def _count(self) -> None:
        self._values += 1
        self._aliased += bool(self._open)
        if self._aliased <= 100 or self._values <= 1000:
            return
        if self._aliased > self._values * _allowed(self._values):
            raise NotYaml("too much of it comes from aliases; write it out")


def _allowed(values: int) -> float:
    """Return the share of so many values that may come from aliases."""
    (low, most), (high, least) = _ALIASED
    beyond = min(max(values - low, 0) / (high - low), 1.0)
    return most - (most - least) * beyond


def _scalar(node: _Scalar) -> str | int | float | bool | None:
    """Return the value of a scalar, before it becomes JSON. Raises `NotYaml`."""
    if node.tag is None and not node.plain:
        return node.text
    if node.tag == _BINARY:
        return _binary(node.text)
    if node.tag is not None and node.tag not in _RESOLVED:
        return node.text
    if node.tag in (_STR, _TIMESTAMP):
        return node.text
    kind, value = _resolved(node.text)
    if node.tag in (None, kind):
        return value
    if node.tag == _FLOAT and type(value) is int and value < 1 << 63:
        return float(value)
    raise NotYaml(f"{node.text[:40]!r} is no {(node.tag or '').removeprefix(_OF_YAML)}")


def _binary(text: str) -> str:
    try:
        content = base64.b64decode(re.sub(r"[\r\n]", "", text).encode(), validate=True)
    except (binascii.Error, UnicodeError) as error:
        raise NotYaml(f"a value with the tag !!binary is not base64: {error}") from error
    return content.decode(errors="replace")


def _resolved(text: str) -> tuple[str, str | int | float | bool | None]:
    """Return the tag and the value of a scalar without quotes."""
    if text in _TABLE:
        return _TABLE[text]
    if text.startswith("."):
        fraction = _finite(text.replace("_", "")) if _FRACTION.fullmatch(text) else None
        return (_STR, text) if fraction is None else (_FLOAT, fraction)
    if not text.startswith(("+", "-")) and not text[:1].isdecimal():
        return _STR, text
    without = text.replace("_", "")
    whole = _whole(without)
    if whole is not None:
        return _INT, whole
    number = _finite(without) if _DECIMAL.fullmatch(without) else None
    return (_STR, text) if number is None else (_FLOAT, number)


def _whole(text: str) -> int | None:
    """Return a whole number of 64 bits, signed or not; None if it is none."""
    if binary := _SIGNED_BINARY.fullmatch(text):
        value = int(binary[1], 2)
        return value if -(1 << 63) <= value < 1 << 63 else None
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    group = match.lastgroup or ""
    base = int(group[1:])
    if base == 10 and len(match[group]) > _DIGITS:
        return None
    value = int(match["sign"] + match[group], base)
    most = (1 << 63) if match["sign"] else (1 << 64)
    return value if -(1 << 63) <= value < most else None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _number(value: float) -> int | float:
    """Return a number as kubectl has it: whole with 64 bits, else of type float.

    A float without a fraction is a whole number. Raises `NotYaml`.
    """
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NotYaml(f"{number} is no number of JSON; write it in quotes")
    if not number.is_integer() or abs(number) >= _MOST_WHOLE:
        return number
    # Go writes the fewest digits that name the number, and kubectl reads these.
    return int(Decimal(repr(number)))


def _single(value: float) -> float:
    """Return a number of 32 bits, infinite if it is too large."""
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def _float_key(value: float) -> str:
    """Return `strconv.FormatFloat(value, 'g', -1, 32)`, the text of a key that is a number."""
    single = _single(value)
    if not math.isfinite(single):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(single, ".nan")
    # Nine digits name every number of 32 bits.
    texts = (f"{single:.{digits}e}" for digits in range(9))
    shortest = next(text for text in texts if _single(float(text)) == single)
    mantissa, exponent = shortest.split("e")
    if -4 <= int(exponent) < 6:
        places = len(mantissa.partition(".")[2]) - int(exponent)
        return f"{float(shortest):.{max(0, places)}f}"
    return shortest


def _is_text_for_all(text: str) -> bool:
    """Return whether every reader takes the text without quotes for a string.

    PyYAML's own rules, those of YAML 1.1, come on top of these.
    """
    if _resolved(text)[0] != _STR:
        return False
    # A number that is too large for kubectl is one for other readers.
    without = text.replace("_", "")
    return not any(one.fullmatch(without) for one in (_WHOLE, _DECIMAL, _BASE_60))


class _Dumper(yaml.SafeDumper):
    """Writes strings that no reader of YAML takes for anything else."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write out what occurs twice."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(_STR, text, style=None if _is_text_for_all(text) else "'")


_Dumper.add_representer(str, _text)
