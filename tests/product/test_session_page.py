"""docs/session.md says what the run on real nodes looks for, in lines that a reader can see."""

from tests.real.session import PAGE, renewed, shown
from tests.real.session_steps import STEPS, missing


def test_the_page_says_what_is_asserted() -> None:
    page = shown(PAGE.read_text())
    told = [
        (line.startswith(step.begins), missing(step, output))
        for step, (line, output) in zip(STEPS, page, strict=True)
    ]
    assert told == [(True, [])] * len(STEPS)


def test_no_line_hides_the_others_by_its_length() -> None:
    page = PAGE.read_text()
    assert renewed(page, [output for _, output in shown(page)]) == page
