"""Templates of JSONPath as kubectl reads them: its own examples, its rules, and what is refused."""

import re
from typing import Any

import pytest

from mpijob_elastic.cli.jobs import json_path

# The object and the table of https://kubernetes.io/docs/reference/kubectl/jsonpath.
WORLD: dict[str, Any] = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {
                "capacity": {"cpu": "4"},
                "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}],
            },
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {
                "capacity": {"cpu": "8"},
                "addresses": [
                    {"type": "LegacyHostIP", "address": "127.0.0.2"},
                    {"type": "another", "address": "127.0.0.3"},
                ],
            },
        },
    ],
    "users": [
        {"name": "myself", "user": {}},
        {"name": "e2e", "user": {"username": "admin", "password": "secret"}},
    ],
    "name.type": "List",
    "numbers": [1, 2, 3, 4, 5],
    "none": None,
    "yes": True,
    "ratio": 0.5,
}


# Each template with what kubectl prints; tests/lab/test_cli_habits.py asks kubectl itself.
TEMPLATES = [
    ("kind is {.kind}", "kind is List"),
    ("{['kind']}", "List"),
    (r"{['name\.type']}", "List"),
    (r"{.name\.type}", "List"),
    ("{..name}", "127.0.0.1 127.0.0.2 myself e2e"),
    ("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"),
    ("{.users[0].name}", "myself"),
    ("{.items[*].status.capacity['cpu']}", "4 8"),
    ('{.users[?(@.name=="e2e")].user.password}', "secret"),
    ("{.users[?(@.name=='e2e')].user.password}", "secret"),
    (
        "{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}",
        '[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] ',
    ),
    ("{range .items[*]}{.metadata.name}{'\\t'}{end}", "127.0.0.1\t127.0.0.2\t"),
    (r"{.items[0].metadata.labels.kubernetes\.io/hostname}", "127.0.0.1"),
    (r"{.items[0].metadata.labels['kubernetes\.io/hostname']}", "127.0.0.1"),
    ("{$.kind} {@.kind}", "List List"),
    ("{ .kind }", "List"),
    ('{.kind}{"\\n"}', "List\n"),
    # Without braces, as --sort-by and custom-columns may be written.
    (".kind", "List"),
    ("kind", "List"),
    # Indices, slices and unions.
    ("{.numbers[-1]}", "5"),
    ("{.numbers[1:3]}", "2 3"),
    ("{.numbers[:2]}", "1 2"),
    ("{.numbers[-2:]}", "4 5"),
    ("{.numbers[::2]}", "1 3 5"),
    ("{.numbers[5:]}{.numbers[2:2]}", ""),
    ("{.numbers[0,2]}", "1 3"),
    (
        "{.items[*]['kind', 'metadata']}",
        'None None {"labels":{"kubernetes.io/hostname":"127.0.0.1"},"name":"127.0.0.1"} {"name":"127.0.0.2"}',
    ),
    (
        "{.items[*]['metadata.name', 'status.capacity']}",
        '127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}',
    ),
    ("{.items[*]['metadata.name']}", "127.0.0.1 127.0.0.2"),
    ("{.items[0].metadata['labels.kubernetes\\.io/hostname']}", "127.0.0.1"),
    ("{.numbers.*}", "1 2 3 4 5"),
    ("{.items[*].status.addresses[?(@.type=='another')].address}", "127.0.0.3"),
    ("{.users[?(@.user.password)].name}", "e2e"),
    ("{.users[?(@.name!='e2e')].name}", "myself"),
    ("{.users[?(.name==@.name)].name}", "myself e2e"),
    ("{.items[*].status.addresses[?(@.missing=='x')].address}", ""),
    ("{.items[?(@..name=='127.0.0.2')].status.capacity.cpu}", "8"),
    # Nested ranges.
    (
        "{range .items[*]}{range .status.addresses[*]}{.type};{end}|{end}",
        "LegacyHostIP;|LegacyHostIP;another;|",
    ),
    ("{range .missing[*]}x{end}y", "y"),
    # Values.
    ("{.numbers}", "[1,2,3,4,5]"),
    ("{.none} {.yes} {.ratio}", "null true 0.5"),
    ("{.none[0]}{.none[*]}{.none.x}", ""),
    # A missing field prints nothing.
    ("<{.missing.field}>", "<>"),
    ("{.kind.x}", ""),
]


@pytest.mark.parametrize(("template", "printed"), TEMPLATES)
def test_a_template_prints_what_kubectl_prints(template: str, printed: str) -> None:
    assert json_path.rendered(json_path.template(template), WORLD) == printed


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("", "the template is empty"),
        ("{.kind", "} is missing: braces hold one path or one text, at the end"),
        ('{.kind "!"}', "braces hold one path or one text, at '\"!\"}'"),
        ("{.numbers[1", "[ without ], at '[1'"),
        ("{range .items[*]}{.kind}", "{range} without {end}"),
        ("{.kind}{end}", "{end} without {range}"),
        ("{range .items[*]", "} is missing"),
        ("{.items[?(@.a=='b' && @.c=='d')]}", "without && and ||"),
        ("{.items[?(@.a=~'b')]}", "is no filter such as"),
        ("{.items[?(@.a==null)]}", "null is no number, no text in quotes and no path"),
        ("{.items[?(@.a==b)]}", "b is no number, no text in quotes and no path"),
        ("{.items[x]}", "[x] is no index"),
        ("{.items[]}", "[] is no index"),
        ("{kind}", "no path and no text in quotes, at 'kind}'"),
        ("{.items[?(1==1)]}", "the left side of a filter is no path such as @.state"),
        ("{.items[?(kind=='None')]}", "the left side of a filter is no path such as @.state"),
        ("{len(.items)}", "no path and no text in quotes"),
        ("{'open}", "no path and no text in quotes"),
    ],
)
def test_what_is_no_template_is_refused_with_its_place(template: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        json_path.template(template)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{.numbers[5]}", "array index out of bounds: index 5, length 5"),
        ("{.numbers[-6]}", "array index out of bounds: index -6, length 5"),
        ("{.kind[0]}", "needs a list"),
        ("{.numbers[::0]}", "must be above 0"),
        ("{.numbers[6:]}", "array index out of bounds: index 6, length 5"),
        ("{.numbers[:6]}", "array index out of bounds: index 5, length 5"),
        ("{.numbers[-6:]}", "array index out of bounds: index -1, length 5"),
        ("{.numbers[3:1]}", "starting index 3 is greater than ending index 1"),
        ("{.users[?(@.name==1)]}", "myself == 1 cannot be compared"),
        ("{.items[?(@.kind!=true)]}", "None != true cannot be compared"),
        ("{.users[?(@.name<1)]}", "myself < 1 cannot be compared"),
        ("{.items[?(@.status..address=='x')].kind}", "compares one value"),
    ],
)
def test_what_the_values_do_not_allow_is_said(template: str, words: str) -> None:
    parts = json_path.template(template)
    with pytest.raises(ValueError, match=re.escape(words)):
        json_path.rendered(parts, WORLD)


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("{['name.type']}", "List"),
        ("{.items[0].metadata.labels['kubernetes.io/hostname']}", "127.0.0.1"),
        ("{['name.other']}{['a.']}{['a..b c']}{['']}", ""),
        ("{.users[*]['user.name', 'name']}", "myself e2e"),
        ("{.items[1]['status.addresses[0].address']}", "127.0.0.2"),
        ("{.items[?(@['metadata.name']=='127.0.0.2')].status.capacity.cpu}", "8"),
    ],
)
def test_a_name_in_quotes_is_whole_where_a_field_has_it_and_else_a_path(
    template: str, printed: str
) -> None:
    """Kubectl reads it as a path in any case, and wants a backslash before the dots of a name."""
    assert json_path.rendered(json_path.template(template), WORLD) == printed


def test_null_exists_no_more_than_a_field_that_is_missing() -> None:
    """A report has null where other objects lack the field."""
    jobs = [{"name": "a", "queue": None}, {"name": "b", "queue": {"name": "q"}}, {"name": "c"}]
    for template in ("{[?(@.queue)].name}", "{[?(@.queue.name)].name}"):
        assert json_path.rendered(json_path.template(template), jobs) == "b"


@pytest.mark.parametrize("text", ['{["kind"]}', ".kind", "kind", "$.kind"])
def test_what_kubectl_refuses_and_means_one_thing_is_taken(text: str) -> None:
    """Kubectl wants single quotes in brackets, and prints a template without braces as it is."""
    assert json_path.rendered(json_path.template(text), WORLD) == "List"


@pytest.mark.parametrize("text", ["kind", ".kind", "{.kind}", "{kind}", " .kind ", "$.kind"])
def test_a_path_may_stand_without_braces(text: str) -> None:
    assert json_path.values(json_path.path(text), WORLD) == ["List"]


@pytest.mark.parametrize("text", ["", "{}", ".a b c}", "{.a}{.b}"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="path"):
        json_path.path(text)
