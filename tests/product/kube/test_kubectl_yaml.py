"""YAML as kubectl reads it; tests/lab/test_kubectl_yaml.py asks kubectl's own module."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.kube.kubectl_yaml import Document, NotYaml

# Columns: how the input is used; the input; the value that kubectl has of it, in JSON; remarks.
ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("yaml_scalars.tsv").read_text().splitlines()[1:]
]
PRINTED = [row for row in ROWS if row[0] == "print"]
KEYS = [row for row in ROWS if row[0] == "print-key"]
READ = [row for row in ROWS if row[0] == "read+print"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def in_json(value: Any) -> str:
    """Return the JSON of a value, in which 1 and true differ and 1.0 and 1 do not."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: row[1])
def test_a_printed_value_is_read_back(row: list[str]) -> None:
    value = json.loads(row[1])
    text = kubectl_yaml.dump({"v": value})
    assert in_json(kubectl_yaml.read_all(text)) == in_json([{"v": json.loads(row[2])}])
    assert yaml.safe_load(text) == {"v": value}, "other readers"


@pytest.mark.parametrize("row", KEYS, ids=lambda row: row[1])
def test_a_printed_key_is_read_back(row: list[str]) -> None:
    key = json.loads(row[1])
    text = kubectl_yaml.dump({key: "x"})
    assert kubectl_yaml.read_all(text) == [{json.loads(row[2]): "x"}]
    assert yaml.safe_load(text) == {key: "x"}, "other readers"


@pytest.mark.parametrize("row", READ, ids=lambda row: row[1])
def test_a_value_is_read_as_by_kubectl_and_printed_as_it_was_read(row: list[str]) -> None:
    [value] = kubectl_yaml.read_all(f"v: {row[1]}\n")
    if row[2] == "9223372036854776000":  # kubectl has a number of 64 bits with a fraction
        assert value == {"v": 1 << 63}
    else:
        assert in_json(value) == in_json({"v": json.loads(row[2])})
    assert in_json(kubectl_yaml.read_all(kubectl_yaml.dump(value))) == in_json([value])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "did not find"),
        ("a: [1\n", "did not find"),
        ("v: .nan\n", "no number of JSON"),
        ("v: -.inf\n", "no number of JSON"),
        ('{"v": NaN, "w": ]}', "expected"),
        ('{"v": 1e400}', "no number of JSON"),
        ("{a: 1}: x\n", "no key"),
        ("~: x\n", "null is no key|~ is no key"),
        ("9223372036854775808: x\n", "is no key"),
        ("v: !!int x\n", "'x' is no int"),
        ("v: !!bool 1\n", "'1' is no bool"),
        ("v: !!binary x\n", "not base64"),
        ("v: *a\n", "no anchor &a"),
        ("v: &a [*a]\n", "&a contains itself"),
        ("v: &a\n  <<: *a\n", "&a contains itself"),
        ("<<: x\n", "merge key"),
        ("<<: [[]]\n", "merge key"),
        ("--- {a: 1}\n", "on the next line"),
        ("a: 1\n...\nb: 1\n", "did not find expected <document start>"),
        ("[" * 200 + "]" * 200, "100 levels"),
        (
            "\n".join(
                ["x0: &x0 {a: 1}", *(f"x{n}: &x{n} {{<<: *x{n - 1}}}" for n in range(1, 500))]
            ),
            "100 levels",
        ),
        (
            "\n".join(["x0: &x0 {a: 1}", *(f"x{n}: &x{n} [*x{n - 1}]" for n in range(1, 500))]),
            "100 levels",
        ),
        ('{"a": 1' + "0" * 400 + "}", "no number of JSON"),
        ('{"a":' + "[" * 200 + "]" * 200 + "}", "100 levels"),
        ("a: 1\n---\nb: [1\n", "line 4"),
        ("%YAML 1.1\n---\na: 1\n", "did not find expected <document start>"),
        ("a: \x07\n", "not allowed"),
    ],
)
def test_what_kubectl_does_not_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(NotYaml, match=message):
        kubectl_yaml.documents(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("# a comment\n---\n---\nnull\n", []),
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("--- # one\na: |\n  x\n---\t\nb: 2", [{"a": "x\n"}, {"b": 2}]),
        ("\ufeffa: 1\r\nb: 2\r\n", [{"a": 1, "b": 2}]),
        (
            '{"a": 1}{"b": 1.0}\n\n{"c": "\\ud83d\\ude00\\/\\ud800"}',
            [{"a": 1}, {"b": 1}, {"c": "😀/\ufffd"}],
        ),
        ("{a: 1}\n", [{"a": 1}]),
        ('{"a": NaN}', [{"a": "NaN"}]),
        ("---\n...\n---\n- 1\n", [[1]]),
        ("a: 1\n...\n", [{"a": 1}]),
    ],
)
def test_the_documents_of_a_text(text: str, values: list[Any]) -> None:
    assert in_json(kubectl_yaml.read_all(text)) == in_json(values)


def test_a_line_of_its_own_separates_values() -> None:
    values = [{}, [], {"a": 1}, [[]], "x", {}]
    assert kubectl_yaml.read_all(kubectl_yaml.dump_all(values)) == values


def test_keys_that_stand_twice_are_named() -> None:
    assert kubectl_yaml.documents("a: 1\nb: {c: 1, c: 2}\na: 2\n") == [
        Document(value={"a": 2, "b": {"c": 2}}, twice=("c", "a"))
    ]


def test_aliases_are_written_out() -> None:
    [value] = kubectl_yaml.read_all("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n")
    assert value == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}
    twice = [1]
    assert kubectl_yaml.dump([twice, twice]) == "- - 1\n- - 1\n"


def test_a_text_of_few_characters_is_not_read_as_millions_of_values() -> None:
    lists = ["a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]"]
    lists += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(NotYaml, match="too much of it comes from aliases"):
        kubectl_yaml.read_all("\n".join(lists))


@given(values=st.lists(JSON, max_size=3))
def test_what_was_printed_is_read_back(values: list[Any]) -> None:
    text = kubectl_yaml.dump_all({"v": value} for value in values)
    assert text.isascii()
    assert in_json(kubectl_yaml.read_all(text)) == in_json([{"v": value} for value in values])
    assert [one["v"] for one in yaml.safe_load_all(text)] == values, "other readers"


@given(text=st.text("01 a:-{}[],&*!'\"|>#\n", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = kubectl_yaml.read_all(text)
    except NotYaml:
        return
    assert kubectl_yaml.read_all(kubectl_yaml.dump_all(found)) == found
