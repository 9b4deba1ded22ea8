"""Escapes for characters that a terminal would obey.

Users who may annotate a job, or run a process in its pods, choose texts that an administrator's
terminal shows. Control characters in these texts could rewrite the screen or type commands, and
direction marks could reorder a line. Both are shown as escapes, which JSON reads back.
"""

import re


def printable(line: str) -> str:
    """Return a line in which each character that does not print is an escape, as in JSON.

    A newline becomes an escape, too.
    """
    return line if line.isprintable() else "".join(map(_shown, line))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return re.sub("....", r"\\u\g<0>", character.encode("utf-16-be", "surrogatepass").hex())
