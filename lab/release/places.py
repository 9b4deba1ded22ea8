"""Where a release is published, as far as whoever makes it says."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from lab.images.product.image import NAME, ROOT, VERSION

DIST = ROOT / "dist"
AUTHORS = "The mpijob-elastic authors"
TAG = f"v{VERSION}"
# Stand in files for what was not said, as REPOSITORY does in docs/.
HOME_PLACEHOLDER, REPOSITORY_PLACEHOLDER = "https://HOME_URL", "REPOSITORY"


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where a release can be found."""

    #: The project's page on GitHub, or on a server with the same paths; "" if it is not said.
    home: str = ""
    #: The registry and path of the image, without its tag; "" if it is not said.
    image: str = ""
    #: The id that Artifact Hub gave the chart's repository; "" if it has none.
    artifact_hub_id: str = ""

    @property
    def pages(self) -> str:
        """The address of the files of this version."""
        return f"{self.home or HOME_PLACEHOLDER}/blob/{TAG}"

    def download(self, name: str) -> str:
        """Return the address of a file of the release."""
        return f"{self.home or HOME_PLACEHOLDER}/releases/download/{TAG}/{name}"

    @property
    def reference(self) -> str:
        """The reference to the image."""
        return f"{self.image or f'{REPOSITORY_PLACEHOLDER}/{NAME}'}:{VERSION}"

    def unsaid(self) -> list[str]:
        """Return what was not said, each as a sentence."""
        found = []
        if not self.home:
            found.append(
                "HOME_URL was not given: wheel and chart have no links, and the krew manifest and the "
                f"notes have {HOME_PLACEHOLDER}."
            )
        if not self.image:
            found.append(
                f"IMAGE was not given: the chart runs {NAME}, and does not say where that is."
            )
        return found


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
