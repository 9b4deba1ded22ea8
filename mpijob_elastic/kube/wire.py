"""The envelopes of objects: pages of a list and lines of a watch.

Only the envelope is decoded here. The objects in it stay bytes (`msgspec.Raw`, a view) until their own decoder reads
the few fields that it uses. https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import re

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta


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


read_page = msgspec.json.Decoder(Page).decode
read_stub = msgspec.json.Decoder(Stub).decode
_read_any_line = msgspec.json.Decoder(Line).decode

# A line begins like this (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/watch.go); the object is the rest.
_NEWS = re.compile(rb'\{"type":"(ADDED|MODIFIED|DELETED)","object":')


def read_line(text: bytes) -> Line:
    """Return the envelope of a line. Raises msgspec.DecodeError if it has none.

    The object is only cut out of a line as the API server writes it; its own decoder finds out if it is complete.
    """
    news = _NEWS.match(text)
    if news is None or not text.endswith(b"}"):
        return _read_any_line(text)
    return Line(type=news[1].decode(), object=msgspec.Raw(memoryview(text)[news.end() : -1]))
