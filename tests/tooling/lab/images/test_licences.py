"""What a wheel and a Debian package declare, in the words of SPDX."""

from email.parser import Parser

import pytest
from cyclonedx.model.license import DisjunctiveLicense, License

from lab.errors import LabError
from lab.images.product import licences

FORMAT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"


def written(found: list[License]) -> list[str]:
    """Return each licence as `id:`, `name:` or `expression:` and what it is called."""
    return [
        f"{'id' if one.id else 'name'}:{one.id or one.name}"
        if isinstance(one, DisjunctiveLicense)
        else f"expression:{one.value}"
        for one in found
    ]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("License-Expression: Apache-2.0\nLicense: other", ["id:Apache-2.0"]),
        ("License-Expression: Apache-2.0 AND MIT", ["expression:Apache-2.0 AND MIT"]),
        ("License: MIT\nClassifier: License :: OSI Approved :: BSD License", ["id:MIT"]),
        ("License: ISC License", ["name:ISC License"]),
        ("Classifier: Typing\nClassifier: License :: OSI Approved :: MIT License", ["name:MIT License"]),
        ("Summary: says nothing", []),
    ],
)
def test_a_wheel_is_believed(metadata: str, expected: list[str]) -> None:
    assert written(licences.of_wheel(Parser().parsestr(metadata))) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["Zlib", "Zlib"], ["id:Zlib"]),
        (["Expat"], ["id:MIT"]),
        (["GPL-2", "GPL-3+", "LGPL-2.1+"], ["id:GPL-2.0-only", "id:GPL-3.0-or-later", "id:LGPL-2.1-or-later"]),
        (["MPL-1.1 or GPL-2+"], ["id:GPL-2.0-or-later", "id:MPL-1.1"]),
        (["Expat", "GPL-3+ with Autoconf-exception-3.0"], ["id:MIT", "name:GPL-3+ with Autoconf-exception-3.0"]),
        (["Expat", "GPL-2.0-only AND MIT"], ["id:MIT", "name:GPL-2.0-only AND MIT"]),
        (["public-domain", "none", ""], ["name:public-domain"]),
    ],
)
def test_names_of_debian_become_those_of_spdx(fields: list[str], expected: list[str]) -> None:
    text = FORMAT + "".join(f"\nLicense: {field}\n words\n" for field in fields)
    assert written(licences.of_debian("libssl3", text)) == expected


@pytest.mark.parametrize("text", [None, "This package was debianized by somebody.\nLicense: GPL-2\n"])
def test_a_package_whose_licence_nobody_has_read_stops_the_build(text: str | None) -> None:
    with pytest.raises(LabError, match="copyright file of libnew must be read by hand"):
        licences.of_debian("libnew", text)
