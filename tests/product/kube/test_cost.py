"""The cost of an object is bounded."""

import msgspec
import pytest

from mpijob_elastic.kube import cost


def test_an_object_with_too_many_fields_is_refused_whatever_its_texts_hold() -> None:
    many = cost.MOST_VALUES + 2
    cost.check(b'{"data":"' + b"1,2;" * many + b'"}')
    with pytest.raises(msgspec.DecodeError, match="more than 15,000 fields"):
        cost.check(b"{" + b",".join(b'"%d":1' % number for number in range(many)) + b"}")
