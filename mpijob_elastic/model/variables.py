"""`$(NAME)` in a container's command, as Kubernetes replaces it before the container starts.

https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/ and
third_party/forked/golang/expansion of Kubernetes: `$$` stands for a dollar; a variable may name
those before it; a name without a variable stays as it is. A variable whose value comes from
elsewhere is unknown here, and its name stays, too.
"""

import re
from collections.abc import Iterable, Mapping

from mpijob_elastic.model.bounds import LONGEST_SCRIPT, MOST_WORDS

# A variable's name and its literal value; None for a value from elsewhere.
Variable = tuple[str, str | None]

_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\((?P<name>[^()$]{0,255})\))")
# Characters that are expanded, and that come of it, in a container's values and in its words: a
# hostile environment can double at each variable.
_MOST_EXPANDED = 2 * LONGEST_SCRIPT


def replaced(words: Iterable[str], environment: Iterable[Variable]) -> list[str]:
    """Return the words with the literal values of these variables, in their order."""
    found = list(words)
    if not any("$" in word for word in found):
        return found
    expander = _Expander(_values(environment))
    return [expander.expanded(word) for word in found]


def _values(environment: Iterable[Variable]) -> Mapping[str, str]:
    expander = _Expander({})
    known = expander.known
    for number, (name, value) in enumerate(environment):
        known.pop(name, None)
        if value is not None and number < MOST_WORDS and len(value) <= LONGEST_SCRIPT:
            known[name] = expander.expanded(value)
    return known


class _Expander:
    """Replaces names by values, until it has done enough."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = {**known}
        self._left = _MOST_EXPANDED

    def expanded(self, text: str) -> str:
        """Return the text with the values, as far as there is room for them."""
        if "$" not in text or len(text) > min(LONGEST_SCRIPT, self._left):
            return text
        self._left -= len(text)
        return _REFERENCE.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        text = "$" if found["dollar"] else self.known.get(found["name"], found[0])
        if len(text) > self._left:
            return found[0]
        self._left -= len(text)
        return text
