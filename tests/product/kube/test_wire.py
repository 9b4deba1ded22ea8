"""Lines of a watch, as the API server writes them and in any other form of the same JSON."""

import msgspec
import pytest

from mpijob_elastic.kube import wire

OBJECT = b'{"metadata":{"name":"a","resourceVersion":"7"}}'


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"MODIFIED","object":' + OBJECT + b"}",
        b'{"type":"MODIFIED","object":' + OBJECT + b"}\r",
        b'{"type": "MODIFIED", "object": ' + OBJECT + b"}",
        b'{"object":' + OBJECT + b',"type":"MODIFIED"}',
    ],
)
def test_an_envelope_is_read_in_any_form(text: bytes) -> None:
    line = wire.read_line(text)
    assert line.type == "MODIFIED"
    assert wire.read_stub(line.object).metadata.resource_version == "7"


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])
def test_every_type_is_read(kind: str) -> None:
    line = wire.read_line(b'{"type":"%s","object":%s}' % (kind.encode(), OBJECT))
    assert (line.type, bytes(line.object)) == (kind, OBJECT)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"no JSON", b'{"type":"MODIFIED","object":{"metadata"}', b'{"type":"ADDED","object":}']
)
def test_what_is_no_line_is_refused_before_anything_is_made_of_it(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        wire.read_stub(wire.read_line(text).object)


DEEP = b'{"metadata":{"name":"deep\\"]}","uid":"u","managedFields":' + b"[" * 9_000 + b"]" * 9_000 + b'},"spec":{}}'


@pytest.mark.parametrize(
    "page", [b'{"metadata":{"continue":"x"},"items":[%s]}', b'{"items":[%s],"metadata":{"continue":"x"}}']
)
async def test_a_page_with_a_deep_object_gives_its_items(page: bytes) -> None:
    found = await wire.read_page(page % b",".join([OBJECT, DEEP, OBJECT]))
    assert found.metadata.continue_ == "x"
    assert [bytes(item) for item in found.items or ()] == [OBJECT, DEEP, OBJECT]


async def test_the_identity_of_a_deep_object_is_read() -> None:
    found = await wire.read_identity(DEEP)
    assert (found.name, found.uid) == ('deep"]}', "u")


async def test_the_identity_is_read_without_what_follows_it() -> None:
    """The rest of an object may be a million brackets, a second of Python for each edit."""
    found = await wire.read_identity(b'{"kind":"a","metadata":{"name":"a","uid":"u","x":[[]]},"spec":' + b"[" * 20_000)
    assert (found.name, found.uid) == ("a", "u")


async def test_the_identity_is_not_read_from_a_field_of_a_similar_name() -> None:
    forged = b'{"a\\"metadata":{"name":"b"},"b,":{},"metadata":{"name":"a","x":[[]]},"spec":' + b"[" * 20_000
    assert (await wire.read_identity(forged)).name == "a"
