"""The Secret's content, there and back, whole or damaged."""

import pytest

from tests.product.webhook.certificates.material import authority, healthy
from webhook.rules.certificates import content
from webhook.rules.certificates.content import MOST_RETIRED, Content


def stored(wanted: Content) -> dict[str, bytes]:
    """Return what the API server keeps of it."""
    return {key: value for key, value in content.render(wanted).items() if value is not None}


def pems(what: Content) -> dict[str, bytes | None]:
    return content.render(what)


def test_there_and_back() -> None:
    full = Content(
        authority=authority(),
        leaf=healthy().leaf,
        following=authority(),
        retired=(authority().certificate, authority().certificate),
    )
    assert pems(content.parse(stored(full))) == pems(full)
    assert pems(content.parse(stored(healthy()))).keys() == pems(full).keys()


def test_absent_parts_are_removed_from_the_secret() -> None:
    rendered = content.render(healthy())
    gone = {key for key, value in rendered.items() if value is None}
    assert gone == {"next-ca.crt", "next-ca.key", "retired-ca.crt"}


@pytest.mark.parametrize(
    ("damaged", "part"),
    [
        ("ca.crt", "authority"),
        ("ca.key", "authority"),
        ("tls.crt", "leaf"),
        ("tls.key", "leaf"),
        ("next-ca.crt", "following"),
        ("next-ca.key", "following"),
    ],
)
def test_a_damaged_part_counts_as_absent_and_spares_the_others(damaged: str, part: str) -> None:
    whole = Content(authority=authority(), leaf=healthy().leaf, following=authority())
    for value in (b"", b"garbage", stored(whole)[damaged][:-60]):
        read = content.parse({**stored(whole), damaged: value})
        assert getattr(read, part) is None
        assert sum(one is None for one in (read.authority, read.leaf, read.following)) == 1


def test_all_that_is_trusted_in_order_and_once() -> None:
    current, following, retired = authority(), authority(), authority()
    both = (retired.certificate, current.certificate)
    trusted = Content(authority=current, following=following, retired=both).trusted
    assert trusted == (current.certificate, following.certificate, retired.certificate)
    assert Content().trusted == ()


def test_the_retired_are_bounded() -> None:
    many = tuple(authority().certificate for _ in range(MOST_RETIRED + 2))
    assert content.parse({"retired-ca.crt": content.bundle(many)}).retired == many[:MOST_RETIRED]
