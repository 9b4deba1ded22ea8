"""The envelopes of objects: pages of a list and lines of a watch.

Only the envelope is decoded here. The objects in it stay bytes (`msgspec.Raw`, a view) until their
own decoder reads the few fields that it uses.
https://kubernetes.io/docs/reference/using-api/api-concepts/

An object may be hostile: 1.5 MiB, nested up to 10,000 levels (sigs.k8s.io/json), with half a
million fields. msgspec recurses even where it only skips, and raises RecursionError from some 900
levels. The neighbours of such an object must not suffer.
"""

import asyncio
import re

import msgspec

from mpijob_elastic.kube.meta import Identity, ObjectMeta, OwnedIdentity


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    """A page of a list; `metadata.continue_` is "" on the last page."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class Line(msgspec.Struct):
    """A line of a watch; `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class Stub(msgspec.Struct):
    """An object, of which only the metadata is read."""

    metadata: ObjectMeta


class _Named(msgspec.Struct):
    metadata: OwnedIdentity


class _Ownerless(msgspec.Struct):
    metadata: Identity


_read_flat_page = msgspec.json.Decoder(Page).decode
_read_named = msgspec.json.Decoder(_Named).decode
_read_ownerless = msgspec.json.Decoder(_Ownerless).decode
read_stub = msgspec.json.Decoder(Stub).decode
_read_any_line = msgspec.json.Decoder(Line).decode

# The begin of a line (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/watch.go); the object is the
# rest of it.
_NEWS = re.compile(rb'\{"type":"(ADDED|MODIFIED|DELETED)","object":')
# Everything up to the next bracket outside of strings.
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{}\[\]])', re.DOTALL)
# The name of an object's metadata. In the name of another field its quote would be escaped.
_METADATA = (b'{"metadata":', b',"metadata":')


async def read_page(text: bytes) -> Page:
    """Return a page of a list. Raises msgspec.DecodeError if the text is no such page."""
    try:
        return _read_flat_page(text)
    except RecursionError:
        # Python code, unlike msgspec, lets the event loop run beside it.
        rest, items = await asyncio.to_thread(_cut, text)
        page = _read_flat_page(rest)
        return Page(metadata=page.metadata, items=items)


async def read_identity(raw: bytes | msgspec.Raw) -> OwnedIdentity:
    """Return the identity of an object of any depth and size.

    It has no owners if they cannot be read. Raises msgspec.DecodeError if the object has no
    identity.
    """
    try:
        return _read_named(raw).metadata
    except (RecursionError, msgspec.ValidationError):
        pass
    try:
        found = _read_ownerless(raw)
    except RecursionError:
        rest, _ = await asyncio.to_thread(_cut, bytes(raw), last=_METADATA)
        found = _read_ownerless(rest)
    return OwnedIdentity(**msgspec.structs.asdict(found.metadata))


def _cut(text: bytes, *, last: tuple[bytes, ...] = ()) -> tuple[bytes, list[msgspec.Raw]]:
    """Take out everything that is nested in two levels of brackets; null stands in its place.

    So a page gives its items, and an object keeps the texts of its metadata. This works without
    recursion. Everything after the field that begins with one of `last` is left out: a bracket
    costs a microsecond, and an object may have a million brackets.
    """
    rest, cut = bytearray(), list[msgspec.Raw]()
    depth = at = start = 0
    is_last = False
    for bracket in _BRACKET.finditer(text):
        if bracket[1] in b"{[":
            depth += 1
            if depth == 2:
                is_last = text.endswith(last, 0, bracket.start(1))
            if depth == 3:
                start = bracket.start(1)
                rest += text[at:start] + b"null"
        else:
            if depth == 3:
                at = bracket.end()
                cut.append(msgspec.Raw(text[start:at]))
            depth -= 1
            if depth == 1 and is_last:
                return bytes(rest + text[at : bracket.end()] + b"}"), cut
    return bytes(rest + text[at:]), cut


def read_line(text: bytes) -> Line:
    """Return the envelope of a line. Raises msgspec.DecodeError if the line has none.

    The object is only cut out of a line in the form that the API server writes; the object's own
    decoder finds out whether it is complete.
    """
    news = _NEWS.match(text)
    if news is None or not text.endswith(b"}"):
        return _read_any_line(text)
    return Line(type=news[1].decode(), object=msgspec.Raw(memoryview(text)[news.end() : -1]))
