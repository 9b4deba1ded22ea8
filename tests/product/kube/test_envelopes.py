"""Lines of a watch and pages of a list in any form of JSON, also of hostile objects, whose cost is bounded."""

import msgspec
import pytest

from mpijob_elastic.kube import envelopes, meta

OBJECT = b'{"metadata":{"name":"a","resourceVersion":"7"}}'


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])
@pytest.mark.parametrize(
    "form",
    [b'{"type":"%s","object":%s}', b'{"type":"%s","object":%s}\r', b'{"type": "%s", "object": %s}'],
)
def test_an_envelope_is_read_in_any_form(kind: str, form: bytes) -> None:
    line = envelopes.read_line(form % (kind.encode(), OBJECT))
    assert (line.type, bytes(line.object)) == (kind, OBJECT)
    assert envelopes.read_stub(line.object).metadata.resource_version == "7"
    assert envelopes.read_line(b'{"object":%s,"type":"%s"}' % (OBJECT, kind.encode())) == line


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"no JSON",
        b'{"type":"MODIFIED","object":{"metadata"}',
        b'{"type":"ADDED","object":}',
    ],
)
def test_what_is_no_line_is_refused_before_anything_is_made_of_it(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        envelopes.read_stub(envelopes.read_line(text).object)


DEEP = (
    b'{"metadata":{"name":"deep\\"]}","uid":"u","managedFields":'
    + b"[" * 9_000
    + b"]" * 9_000
    + b'},"spec":{}}'
)


@pytest.mark.parametrize(
    "page",
    [b'{"metadata":{"continue":"x"},"items":[%s]}', b'{"items":[%s],"metadata":{"continue":"x"}}'],
)
async def test_a_page_with_a_deep_object_gives_its_items(page: bytes) -> None:
    found = await envelopes.read_page(page % b",".join([OBJECT, DEEP, OBJECT]))
    assert found.metadata.continue_ == "x"
    assert [bytes(item) for item in found.items or ()] == [OBJECT, DEEP, OBJECT]


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        pytest.param(DEEP, ('deep"]}', "u"), id="of a deep object"),
        # The rest of an object may be a million brackets, a second of Python for each edit.
        pytest.param(
            b'{"kind":"a","metadata":{"name":"a","uid":"u","x":[[]]},"spec":' + b"[" * 20_000,
            ("a", "u"),
            id="without what follows it",
        ),
        pytest.param(
            b'{"a\\"metadata":{"name":"b"},"b,":{},"metadata":{"name":"a","x":[[]]},"spec":'
            + b"[" * 20_000,
            ("a", ""),
            id="not from a field of a similar name",
        ),
        pytest.param(
            b'{"metadata":{"name":"a","uid":"u","ownerReferences":[{"kind":["no text"]}]}}',
            ("a", "u"),
            id="with owners that cannot be read",
        ),
    ],
)
async def test_the_identity_is_read(text: bytes, identity: tuple[str, str]) -> None:
    found = await envelopes.read_identity(text)
    assert (found.name, found.uid) == identity


def test_an_object_with_too_many_fields_is_refused_whatever_its_texts_hold() -> None:
    many = meta.MOST_VALUES + 2
    meta.check_cost(b'{"data":"' + b"1,2;" * many + b'"}')
    with pytest.raises(msgspec.DecodeError, match="more than 15,000 fields"):
        meta.check_cost(b"{" + b",".join(b'"%d":1' % number for number in range(many)) + b"}")
