"""Lines of code are counted without blank lines, comments, imports and docstrings."""

from scripts.code_lines import code_lines

SOURCE = '''"""Module."""

import os
from sys import (
    path,
)

# A comment.
TEXT = """two
lines"""


def function() -> str:
    """Summary.

    More.
    """
    return TEXT  # said
'''


def test_only_code_counts() -> None:
    assert code_lines(SOURCE) == 4
    assert code_lines("") == 0
