"""The envelopes in which objects arrive: pages of a list and lines of a watch.

Only the envelope is decoded here; the objects in it stay bytes (`msgspec.Raw`, a view) until their own decoder reads
the few fields that it uses. https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

import re

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    """One page of a list; `metadata.continue_` is "" on the last one."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class Line(msgspec.Struct):
    """One line of a watch; `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class Stub(msgspec.Struct):
    """An object of which only the metadata is read."""

    metadata: ObjectMeta


read_page = msgspec.json.Decoder(Page).decode
read_stub = msgspec.json.Decoder(Stub).decode
_read_any_line = msgspec.json.Decoder(Line).decode

# How the API server begins a line (staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/watch.go); the object is the rest.
_NEWS = re.compile(rb'\{"type":"(ADDED|MODIFIED|DELETED)","object":')


def read_line(text: bytes) -> Line:
    """The envelope of a line.

    An object in it is only cut out where the line is as the API server writes it: whether it is whole is found when it
    is decoded. Raises msgspec.DecodeError where the envelope is none.
    """
    news = _NEWS.match(text)
    if news is None or not text.endswith(b"}"):
        return _read_any_line(text)
    return Line(type=news[1].decode(), object=msgspec.Raw(memoryview(text)[news.end() : -1]))
