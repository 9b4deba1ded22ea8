"""YAML through kubectl's own module and through ours: what one writes, or anybody, both read alike."""

import json
import random
import re
import subprocess
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from lab.build import ensure_peers
from lab.programs import KUBECTL_YAML
from mpijob_elastic.kube import kubectl_yaml
from tests.product.kube import test_kubectl_yaml as table

pytestmark = pytest.mark.lab

# The documents of a text as kubectl sends them, None if kubectl refuses the text.
Read = list[Any] | None
# For several texts.
Kubectl = Callable[[Sequence[str]], list[Read]]

NUMBERLIKE = st.text("0189eE.+-_:xobXnyYNTaifF~=<!", min_size=1, max_size=6)
INDICATORS = st.text("a0 -?:,[]{}#&*!|>'\"%@`\\\n\t~=<.", max_size=10)
STRINGS = st.one_of(
    NUMBERLIKE,
    INDICATORS,
    st.text(max_size=20),
    st.from_regex(r"[-+]?[0-9_]{1,25}(\.[0-9_]*)?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.]{1,12}(Z|[+-][0-9:]{1,5})?)?", fullmatch=True
    ),
    st.sampled_from([json.loads(row[1]) for row in table.PRINTED]).filter(
        lambda one: isinstance(one, str)
    ),
)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=12,
)
# A value that somebody writes by hand: plain, in quotes, with a tag, in brackets.
PLAIN = st.one_of(
    NUMBERLIKE,
    STRINGS,
    st.builds(
        "!!{} {}".format,
        st.sampled_from(["int", "float", "bool", "str", "null", "binary", "foo"]),
        NUMBERLIKE,
    ),
    st.builds("'{}'".format, NUMBERLIKE),
    st.builds("{{{}: {}}}".format, NUMBERLIKE, NUMBERLIKE),
    st.builds("[{}, {}]".format, NUMBERLIKE, NUMBERLIKE),
)
LINES = st.lists(
    st.sampled_from(
        [
            "a: 1",
            "b: &x {c: 1}",
            "b: &x [1]",
            "d: *x",
            "<<: *x",
            "a: {<<: *x, c: 2, <<: {e: 1}}",
            "  c: y",
            "c: |",
            "  text",
            "",
            "- 1",
            "---",
            "--- # more",
            "...",
            '{"a": 1}',
            "? k",
            ": v",
            "# remark",
            "e: 'x",
            "  y'",
            "1e3: z",
            "~: z",
        ]
    ),
    max_size=8,
).map("\n".join)


# What libyaml 0.2.5 refuses: in brackets, a word that ends with a colon right before an indicator.
REFUSED_BY_LIBYAML = re.compile(r":[\[\]{},?]")
# What libyaml reads otherwise: an indicator in a tag.
OTHERWISE_IN_LIBYAML = re.compile(r"!\S*[\[\]{},]")
# One failing text says enough, and to find the smallest takes minutes.
AS_FOUND = settings(phases=[Phase.explicit, Phase.generate])


@pytest.fixture(scope="module")
def kubectl() -> Kubectl:
    program = ensure_peers(lambda _: None, [KUBECTL_YAML])[KUBECTL_YAML.name]

    def read(texts: Sequence[str]) -> list[Read]:
        done = subprocess.run(
            [program], input=json.dumps(texts), capture_output=True, text=True, check=True
        )
        found: list[Read] = json.loads(done.stdout)
        return found

    return read


def ours(text: str) -> Read:
    try:
        return kubectl_yaml.read_all(text)
    except kubectl_yaml.NotYaml:
        return None


def differs_knowingly(text: str) -> bool:
    """Return True for a text that libyaml reads otherwise, or that kubectl reads only in part."""
    if OTHERWISE_IN_LIBYAML.search(text):
        return True
    try:
        kubectl_yaml.read_all(text)
    except kubectl_yaml.NotYaml as refused:
        # kubectl ignores what follows the first value of a document.
        ignored = "expected <document start>" in str(refused)
        return ignored or REFUSED_BY_LIBYAML.search(text) is not None
    return False


def sent(value: Any) -> str:
    """Return the JSON of a value with each number as kubectl sends it: whole with 64 bits, else with a fraction."""
    return json.dumps(_sent(value), sort_keys=True)


def _sent(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sent(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_sent(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    is_whole = value == int(value) and -(1 << 63) <= value < 1 << 63
    # JSON of Go has the fewest digits that name a float.
    return int(Decimal(repr(value))) if is_whole else float(value)


@AS_FOUND
@given(strings=st.lists(STRINGS, min_size=10, max_size=30))
def test_strings_and_keys_that_we_print_stay(kubectl: Kubectl, strings: list[str]) -> None:
    made = [{"value": {one: one}, one: [one]} for one in strings]
    found = kubectl([kubectl_yaml.dump(one) for one in made])
    assert [one and sent(one[0]) for one in found] == [sent(one) for one in made]


@AS_FOUND
@given(
    made=st.lists(
        st.dictionaries(STRINGS, DOCUMENTS, min_size=1, max_size=4), min_size=3, max_size=6
    )
)
def test_documents_that_we_print_stay(kubectl: Kubectl, made: list[dict[str, Any]]) -> None:
    [found] = kubectl([kubectl_yaml.dump_all(made)])
    assert found is not None
    assert list(map(sent, found)) == list(map(sent, made))


def test_thousands_of_scalars_are_printed_and_read_alike(kubectl: Kubectl) -> None:
    chance = random.Random(0)
    letters = "0189eE.+-_:xobXnyYNTaifF~=<!"
    scalars = ["".join(chance.choices(letters, k=chance.randint(1, 6))) for _ in range(5000)]
    printed = kubectl([kubectl_yaml.dump({one: one}) for one in scalars])
    assert [(one, found) for one, found in zip(scalars, printed, strict=True)] == [
        (one, [{one: one}]) for one in scalars
    ]
    for make in ("v: {}\n", "{}: v\n"):
        texts = [make.format(one) for one in scalars]
        read = [(text, one and sent(one)) for text, one in zip(texts, kubectl(texts), strict=True)]
        assert [(text, (one := ours(text)) and sent(one)) for text in texts] == read


@AS_FOUND
@given(
    texts=st.lists(
        st.builds("v: {}\n".format, PLAIN) | st.builds("{}: v\n".format, PLAIN) | LINES,
        min_size=10,
        max_size=30,
    )
)
@example(texts=[f"v: {row[1]}\n" for row in table.READ])
def test_what_anybody_writes_is_read_alike(kubectl: Kubectl, texts: list[str]) -> None:
    for text, theirs in zip(texts, kubectl(texts), strict=True):
        if theirs is not None and not differs_knowingly(text):
            assert (text, sent(ours(text))) == (text, sent(theirs))


def test_what_kubectl_refuses_is_refused(kubectl: Kubectl) -> None:
    refused = [
        "{",
        "v: .nan",
        "~: x",
        "v: !!int x",
        "v: *a",
        "v: &a [*a]",
        "--- {a: 1}",
        "<<: x",
        "%YAML 1.1\n---\na: 1",
    ]
    assert kubectl(refused) == [None] * len(refused)
    assert [ours(text) for text in refused] == [None] * len(refused)


def test_the_bound_on_aliases_is_the_same(kubectl: Kubectl) -> None:
    texts = []
    for width in range(2, 12):
        lines = [f"a0: &a0 [{', '.join('0' * width)}]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, 5)]
        texts.append("\n".join(lines))
    allowed = [one is not None for one in kubectl(texts)]
    assert {*allowed} == {True, False}
    assert [ours(text) is not None for text in texts] == allowed
