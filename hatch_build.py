"""The README as the package index shows it, where a link to a file of the repository leads nowhere.

Hatchling calls this when it builds. With a public address (`Source` in `[project.urls]`) such links
lead to the files of this version there; without one they become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")


class Readme(MetadataHookInterface):
    """Sets `readme`, which pyproject.toml therefore calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata of the package."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        tag = f"v{metadata.get('version', '')}"
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_the_index(text, source, tag),
        }


def for_the_index(text: str, source: str | None, tag: str) -> str:
    """Return the text with links to files below `source` at a tag, or without any."""

    def replaced(link: re.Match[str]) -> str:
        picture, shown, path = link.groups()
        if path.startswith("#"):
            return link[0]
        if source is None:
            return f"*{shown}*" if picture else shown
        return f"{picture}[{shown}]({source}/{'raw' if picture else 'blob'}/{tag}/{path})"

    return LINK.sub(replaced, text)
