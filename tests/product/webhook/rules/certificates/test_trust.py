"""Since when a CA is trusted everywhere."""

from tests.product.webhook.certificates.material import authority
from webhook.rules.certificates.decision import Trust

ONE, TWO = authority().certificate, authority().certificate


def test_before_the_first_look_nothing_is_carried() -> None:
    assert not Trust().carries(ONE, at=100.0, settled=0.0)


def test_a_ca_is_relied_on_when_every_bundle_has_carried_it_for_a_while() -> None:
    trust = Trust().seen([[ONE], [ONE, TWO]], at=0.0)
    assert not trust.carries(ONE, at=4.9, settled=5.0)
    assert trust.carries(ONE, at=5.0, settled=5.0)
    assert not trust.carries(TWO, at=5.0, settled=5.0)


def test_later_looks_keep_the_first_time_and_a_gap_begins_anew() -> None:
    trust = Trust().seen([[ONE]], at=0.0).seen([[ONE]], at=4.0)
    assert trust.carries(ONE, at=5.0, settled=5.0)
    trust = trust.seen([[]], at=6.0).seen([[ONE]], at=7.0)
    assert not trust.carries(ONE, at=11.0, settled=5.0)
    assert trust.carries(ONE, at=12.0, settled=5.0)


def test_where_no_configuration_is_installed_nobody_has_to_be_waited_for() -> None:
    assert Trust().seen([], at=0.0).carries(ONE, at=0.0, settled=5.0)
