"""References to images, as kubelets read them.

https://github.com/distribution/reference/blob/v0.6.0/reference.go; a part before the first slash
with a dot, a colon or a capital letter is a registry (normalize.go, splitDockerDomain).
"""

import re
from collections.abc import Iterator

from mpijob_elastic import __version__, names

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
# Characters of a name without tag and digest.
_LONGEST = 255
# The word of the documentation for which users write their registry.
_PLACEHOLDER = "REPOSITORY"


def fault(reference: str) -> str:
    """Return what is wrong with a reference, with an example of a right one; "" if nothing is."""
    example = f"write it as registry.example.com/team/{names.PROGRAM}:{__version__}"
    if reference.partition("/")[0] == _PLACEHOLDER:
        return f"{_PLACEHOLDER} stands for your registry and path; {example}"
    if wrong := next(_faults(reference), ""):
        return f"{reference!r} is no reference to an image: {wrong}; {example}"
    return ""


def _faults(reference: str) -> Iterator[str]:
    """Yield what is wrong with the parts of a reference, from its end to its beginning."""
    if re.search(r"\s", reference):
        yield "it has a space"
    rest, at, digest = reference.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        yield "what stands behind the @ is no digest"
    # A colon before a slash is that of a port.
    path, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        path, colon, tag = rest, "", ""
    if colon and not _TAG.fullmatch(tag):
        yield f"{tag!r} is no tag"
    if len(path) > _LONGEST:
        yield f"its name has more than {_LONGEST} characters"
    name = path
    first, slash, others = path.partition("/")
    if slash and (first == "localhost" or re.search(r"[.:A-Z]", first)):
        name = others
        if not _REGISTRY.fullmatch(first):
            yield f"{first!r} is no registry"
    if name != name.lower():
        yield f"{name!r} has capital letters"
    if not all(map(_PATH.fullmatch, name.split("/"))):
        yield f"{name!r} is no name"
