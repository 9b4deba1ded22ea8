"""Whatever stands in the Secret, some steps later it holds a certificate that can be served."""

from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import share
from tests.product.webhook.certificates.material import NOON, POLICY, authority, healthy
from webhook.certificates.serving import Serving
from webhook.rules.certificates import content, decision, pairs
from webhook.rules.certificates.content import Content
from webhook.rules.certificates.decision import KEEP

LEAF = healthy().leaf
WHOLE = Content(authority=authority(), leaf=LEAF, following=authority(), retired=(authority().certificate,))
DATA = [data for one in (WHOLE, healthy()) for data in content.render(one).values() if data]
KEYS = st.sampled_from([*content.render(WHOLE)])


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Some part that is right somewhere, with a byte changed or its end cut off."""
    part = bytearray(draw(st.sampled_from(DATA)))
    at = draw(st.integers(0, len(part) - 1))
    if draw(st.booleans()):
        part[at] = draw(st.integers(0, 255))
        return bytes(part)
    return bytes(part[:at])


@share(0.3)
@example({"ca.crt": LEAF.certificate_pem, "ca.key": LEAF.key_pem} if LEAF else {}, False)
@given(st.dictionaries(KEYS, st.binary(max_size=50) | st.sampled_from(DATA) | spoiled()), st.booleans())
def test_any_secret_is_put_right(data: dict[str, bytes], promotable: bool) -> None:
    current = content.parse(data)
    for trusted in (promotable, False, False, False):
        step = decision.next_step(current, POLICY, promotable=trusted, now=NOON)
        wanted = decision.carry_out(step, current, POLICY, seen=(), now=NOON)
        rendered = content.render(wanted)
        current = content.parse({key: value for key, value in rendered.items() if value is not None})
        assert content.render(current) == rendered
    assert decision.next_step(current, POLICY, promotable=False, now=NOON) == KEEP
    assert current.leaf is not None
    Serving().load(current.leaf.certificate_pem, current.leaf.key_pem)
    assert pairs.names_of(current.leaf.certificate) == POLICY.hosts
