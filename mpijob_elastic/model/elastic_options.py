"""The options of elastic.sh, read as the script reads them (`take` and `main` in elastic.sh).

An option has one value, which is the next word or stands after an equals sign. No option may be
shortened. The first `--` ends the options, and the command that starts the ranks follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpijob_elastic.model.horovod_options import expands

# The options and their fields of `ElasticOptions.values`.
OPTIONS: Mapping[str, str] = {
    "--np": "np",
    "--min-np": "min_np",
    "--max-np": "max_np",
    "--signal": "signal",
    "--grace": "grace",
    "--gather": "gather",
    "--retries": "retries",
    "--implementation": "implementation",
}
# With one of these the script prints its usage, and ends.
_TELLS = frozenset({"-h", "--help"})


@dataclass(kw_only=True)
class ElasticOptions:
    """The options of one elastic.sh, and the command that it starts."""

    #: The last value of each option, by its field.
    values: dict[str, str] = field(default_factory=dict)
    #: The words after `--`; empty if there are none.
    command: Sequence[str] = ()
    #: A word that the script refuses; "" if it refuses none.
    refused: str = ""
    #: True if there may be more options than these: a word is known only when the script runs.
    unread: bool = False
    #: True if the script only prints its usage.
    only_tells: bool = False


def read(words: Sequence[str]) -> ElasticOptions:
    """Return the options; words: those after elastic.sh."""
    found, at = ElasticOptions(), 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        if word in _TELLS:
            found.only_tells = True
            return found
        name, equals, value = word.partition("=")
        at += 1
        if not equals:
            value = words[at] if at < len(words) else ""
            at += 1
        if name in OPTIONS:
            found.values[OPTIONS[name]] = value
        elif expands(word):
            # Nobody knows how many words that is.
            found.unread = True
            at -= not equals
        else:
            found.refused = word
            return found
    found.command = tuple(words[at + 1 :])
    return found
