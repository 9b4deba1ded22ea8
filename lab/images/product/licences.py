"""Licences of what the image holds, as its packages declare them.

A wheel names them in its metadata, a Debian package in its copyright file if that is
machine-readable (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/), which covers
the whole source, build files too.
"""

import re
from collections.abc import Iterable
from email.message import Message

from cyclonedx.contrib.license.exceptions import InvalidSpdxLicenseException
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.license import DisjunctiveLicense, License, LicenseAcknowledgement

from lab.errors import LabError

# The packages whose copyright files are prose: what these say of the files in the image.
_READ_BY_HAND = {
    "base-files": "GPL-2.0-or-later",
    "gcc-12-base": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libc6": "LGPL-2.1-or-later",
    "libcrypt1": "LGPL-2.1-or-later",
    "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libpython3.11-minimal": "PSF-2.0",
    "libpython3.11-stdlib": "PSF-2.0",
    "python3.11-minimal": "PSF-2.0",
}
_MACHINE_READABLE = re.compile(
    r"Format: *https?://www\.debian\.org/doc/packaging-manuals/copyright-format/1\.0"
)
_FIELD = re.compile(r"^License:[ \t]*(\S.*)$", re.MULTILINE)
_GNU = re.compile(r"(A?L?GPL)-(\d)(?:\.(\d))?(\+?)")
_CLASSIFIER = "License :: OSI Approved :: "


def of_wheel(metadata: Message) -> list[License]:
    """Return what a wheel declares: an SPDX expression, else the older field, else its classifiers."""
    field = metadata["License-Expression"] or metadata["License"]
    classifiers = [one for one in metadata.get_all("Classifier", []) if one.startswith(_CLASSIFIER)]
    return _licences([field] if field else [one.removeprefix(_CLASSIFIER) for one in classifiers])


def of_debian(package: str, copyright_file: str | None) -> list[License]:
    """Return the licences of a Debian package. Raise LabError if nothing says them."""
    if package in _READ_BY_HAND:
        return _licences([_READ_BY_HAND[package]], LicenseAcknowledgement.CONCLUDED)
    if copyright_file is None or _MACHINE_READABLE.match(copyright_file) is None:
        raise LabError(
            f"the copyright file of {package} must be read by hand: add the package to {__name__}."
        )
    names = {
        name
        for field in _FIELD.findall(copyright_file)
        for name in re.split(r",? (?:or|and) ", field.strip())
    }
    return _licences(map(_spdx, sorted(names - {"none"})))


def _licences(
    names: Iterable[str], acknowledgement: LicenseAcknowledgement = LicenseAcknowledgement.DECLARED
) -> list[License]:
    """Return licences by their SPDX name where they have one, else by the name that is given."""
    made = LicenseFactory()
    match list(dict.fromkeys(names)):
        case [name]:
            return [made.make_from_string(name, license_acknowledgement=acknowledgement)]
        case several:  # CycloneDX has no expression beside others
            return [_single(name, acknowledgement) for name in several]


def _single(name: str, acknowledgement: LicenseAcknowledgement) -> DisjunctiveLicense:
    made = LicenseFactory()
    try:
        return made.make_with_id(name, acknowledgement=acknowledgement)
    except InvalidSpdxLicenseException:
        return made.make_with_name(name, acknowledgement=acknowledgement)


def _spdx(name: str) -> str:
    """Return what SPDX calls a licence that Debian calls `name`."""
    if name == "Expat":
        return "MIT"
    if match := _GNU.fullmatch(name):
        family, major, minor, later = match.groups()
        return f"{family}-{major}.{minor or 0}-{'or-later' if later else 'only'}"
    return name
