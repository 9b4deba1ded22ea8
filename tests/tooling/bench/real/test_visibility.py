"""Sightings of a container."""

from bench.real import visibility

SCRIPT = "#!/bin/sh\necho train-worker-0:1\necho train-worker-10:1\n"


def test_each_line_is_a_sight_and_the_rest_is_left_out() -> None:
    output = f"Defaulted container\n12.5 {SCRIPT!r}\n13.25 ''\n14.0 'not compl"
    seen = visibility.parse(output)
    assert [(one.at, one.hosts) for one in seen] == [(12.5, ("train-worker-0", "train-worker-10")), (13.25, ())]
    assert seen[0].content == SCRIPT


def test_the_first_sight_of_a_content_is_found() -> None:
    seen = visibility.parse("1.0 'a'\n2.0 'b'\n3.0 'a'\n")
    assert visibility.first(seen, content="a") == seen[0]
    assert visibility.first(seen, content="c") is None
