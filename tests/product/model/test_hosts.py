"""discover_hosts.sh read back: exactly what we write, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.hosts import Published, parse_script

HOSTS = st.lists(st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True), unique=True)


@given(hosts=HOSTS, slots=st.integers(1, 2**31 - 1))
def test_what_we_write_is_read_back(hosts: list[str], slots: int) -> None:
    published = parse_script(names.discover_hosts(hosts, slots=slots))
    assert published == Published(hosts=tuple(hosts), slots=slots if hosts else 1)


@pytest.mark.parametrize(
    "script",
    [
        "",
        "#!/bin/sh",
        "echo a:1\n",
        "#!/bin/bash\necho a:1\n",
        "#!/bin/sh\necho a:1",
        "#!/bin/sh\r\necho a:1\r\n",
        "#!/bin/sh\n\necho a:1\n",
        "#!/bin/sh\necho a:1\n# edited\n",
        "#!/bin/sh\necho a:1 \n",
        "#!/bin/sh\necho a\n",
        "#!/bin/sh\necho a:0\n",
        "#!/bin/sh\necho a:01\n",
        "#!/bin/sh\necho a:1\necho b:2\n",
        "#!/bin/sh\necho a:1\necho a:1\n",
        "#!/bin/sh\necho A:1\n",
        "#!/bin/sh\necho -n:1\n",
        "#!/bin/sh\necho a:1;reboot\n",
        # One line to the shell, although Python's splitlines sees two.
        "#!/bin/sh\necho a:1\x0cecho b:1\n",
        "#!/bin/sh\necho a:1\u2028echo b:1\n",
        "#!/bin/sh\necho a:" + "9" * 5000 + "\n",
        "#!/bin/sh\necho " + "a" * 254 + ":1\n",
    ],
)
def test_anything_else_is_not_ours(script: str) -> None:
    assert parse_script(script) is None


@given(st.text() | st.text().map(lambda text: names.SCRIPT_HEADER + text))
def test_any_text_is_read_without_an_error_and_only_our_own_is_accepted(script: str) -> None:
    published = parse_script(script)
    if published is not None:
        assert names.discover_hosts(list(published.hosts), slots=published.slots) == script


@pytest.mark.parametrize(("size", "is_read"), [(MOST_WORKERS, True), (MOST_WORKERS + 1, False), (40_000, False)])
def test_a_list_longer_than_any_size_is_nobodys(size: int, is_read: bool) -> None:
    script = names.discover_hosts([f"a-{index}" for index in range(size)], slots=1)
    assert (parse_script(script) is not None) is is_read
