"""Hostile JSON: fragments that stand in place of a value, and lists so long or deep that they fill an object."""

import json
from random import Random
from typing import Any

from tests.json_places import places

WORDS = (
    *("sh", "-c", "horovodrun", "-np", "--min-np=2", "env", "A=b", "2", "$A"),
    *("'", '"', ";", "\n", "#", "a\\", "(", "`x`"),
)
TEXTS = (
    "",
    "\x00",
    "\x1b[2J\x1b]0;owned\x07",
    "\u009b2J\u202e\u2028\ufeff",
    "$(reboot)",
    "`reboot`; rm -rf / # ' \" \\",
    "'; echo a:1; '",
    "../../../etc/passwd",
    "a" * 300,
    "9" * 400,
    "-1",
    "1e9h",
    "true",
    "0001-01-01T00:00:00",
    "0001-01-01T00:00:00+23:00",
    "9999-12-31T23:59:59-23:59",
    "1@-1e308+-1",
    "1@1e308+999999999999999999999",
    "zlib:eJwDAAAAAAE=",
    "zlib:" + "A" * 4000,
    "horovodrun -np 9999999999 --min-np $A",
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 10**30, 1.5, -1e308),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": {"a": {}}}),
    *TEXTS,
)
# What fills an object: list items, and the text between them.
UNITS = (
    *(
        b"{}",
        b"[]",
        b"null",
        b"0",
        b'""',
        b'{"name":"a"}',
        b'{"value":"horovodrun"}',
        b'{"command":["sh","-c","a;"]}',
        b'{"name":"A","value":"$(A)$(A)$(B)"}',
    ),
    *(
        b'{"apiVersion":"kubeflow.org/v1","kind":"MPIJob","name":"a","uid":"a"}',
        b'{"type":"Ready","status":"True"}',
    ),
)
SCRIPTS = (
    *(b"a;", b"'", b'\\"', b"horovodrun;", b"echo horovodrun;", b"sh -c "),
    *(b"horovodrun -n ", b"horovodrun -x -x;", b"function if ", b"(", b"`", b"<<A\\n", b"${a"),
    *(b"case a in horovodrun) ", b"a=(horovodrun) ", b"env nice "),
    *(b"# ", b"\\\\", b"$(", b"\\n", b"\\u001b", b"-"),
)
# One output in so many is long.
LARGE = 20
DEEPEST = 10_000  # that an API server stores


def fragment(random: Random) -> bytes:
    """Return a small JSON value of any kind."""
    kind = random.random()
    if kind < 0.55:
        return _VALUES[random.randrange(len(_VALUES))]
    if kind < 0.8:
        return json.dumps([random.choice(WORDS) for _ in range(random.randrange(8))]).encode()
    if kind < 0.95:
        return json.dumps(
            "".join(random.choices((*WORDS, " ", *TEXTS[:4]), k=random.randrange(12)))
        ).encode()
    return deep(random, random.randrange(1, 1200))


def deep(random: Random, depth: int) -> bytes:
    """Return lists or objects in one another."""
    before, after = random.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
    return before * depth + b"0" + after * depth


def filling(random: Random, size: int) -> bytes:
    """Return a JSON value of about `size` bytes: the worst of one kind."""
    kind = random.randrange(6)
    if kind == 0:
        return deep(random, min(DEEPEST, max(1, size // 8)))
    if kind == 1:
        text = random.choice(SCRIPTS)
        return b'"' + text * (size // len(text)) + b'"'
    if kind == 2:
        script, longest = random.choice(SCRIPTS), random.choice([2_000, 8_000, 60_000])
        return b'["sh","-c","%s horovodrun"]' % (script * (min(size, longest) // len(script)))
    if kind == 3:
        prefixes = random.choices([b"", b"mpijob-elastic/"], k=size // 14)
        return b"{%s}" % b",".join(
            b'"%s%d":""' % (prefix, number) for number, prefix in enumerate(prefixes)
        )
    if kind == 4:  # what takes as much once it is compressed, as one text or as many
        words = [random.randbytes(25).hex().encode() for _ in range(size // 54)]
        return random.choice((b'"%s"' % b"".join(words), b'["%s"]' % b'","'.join(words)))
    unit = random.choice(UNITS)
    return b"[" + b",".join([unit] * (size // (len(unit) + 1))) + b"]"


def output(random: Random, longest: int) -> str:
    """Return what a launcher may print in place of its execs."""
    unit = random.choice(
        (
            "1 2 a-worker-0\n",
            "1 2 a-worker-0--container",
            "\n",
            "1 ",
            "-worker-",
            "a" * 253,
            *TEXTS[1:6],
        )
    )
    size = random.choice(
        (0, 1_000, 100_000, longest) if random.randrange(LARGE) == 0 else (0, 1_000)
    )
    return random.choice(("main 1\n", "main ", "")) + unit * (size // len(unit))


def spots(
    document: Any, kept: frozenset[tuple[str | int, ...]] = frozenset()
) -> list[tuple[bytes, bytes]]:
    """Return the text before and after each value of a document, but for places that are `kept`."""
    found = []
    for *parents, last in list(places(document)):
        if (*parents, last) in kept:
            continue
        part = document
        for step in parents:
            part = part[step]
        value, part[last] = part[last], "\x00SPOT"
        before, _, after = compact(document).partition(b'"\\u0000SPOT"')
        part[last] = value
        found.append((before, after))
    return found


def compact(document: Any) -> bytes:
    """Return JSON as the API server writes it."""
    return json.dumps(document, separators=(",", ":")).encode()


_VALUES = tuple(map(compact, VALUES))
