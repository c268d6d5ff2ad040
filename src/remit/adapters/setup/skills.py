"""Skills that ship with Remit, as a plugin: a folder that an agent's program is shown read only.

A skill is a folder with a SKILL.md, which a model reads only when it is needed, so that it costs
few tokens until then. The layout is that of a plugin of Claude Code, to which its `--plugin-dir`
points; models behind other programs are told names, descriptions and paths (`listing`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import NamedTuple

#: The name of the plugin, which Claude Code puts before those of the skills: `remit:NAME`.
PLUGIN = "remit"
_MANIFEST = PurePosixPath(".claude-plugin/plugin.json")
_FOLDER = PurePosixPath("skills")
_HEAD = re.compile(r"\A---\n(?P<head>.*?)\n---\n", re.DOTALL)
_FIELD = re.compile(r"^(name|description): *(.+)$", re.MULTILINE)
_HOW_TO_USE = (
    "Skills are instructions for one kind of task, each in a file. Read the file before you begin "
    "such a task."
)


class Skill(NamedTuple):
    name: str
    description: str
    file: Path


def names() -> list[str]:
    """Return the names of Remit's skills."""
    return sorted({path.parts[0] for path in _skills()})


def plugin() -> dict[PurePosixPath, bytes]:
    """Return the files of the plugin with Remit's skills, by their relative paths."""
    manifest = {"name": PLUGIN, "description": "How to work in Remit."}
    return {
        _MANIFEST: json.dumps(manifest).encode(),
        **{_FOLDER / path: content for path, content in _skills().items()},
    }


def listing(plugins: Iterable[Path]) -> str:
    """Return what a model is told of the skills in these folders; empty without any."""
    lines = [
        f"- {skill.name}: {skill.description} (file: {skill.file})"
        for folder in plugins
        for skill in _in(folder)
    ]
    return "\n".join([_HOW_TO_USE, *lines]) if lines else ""


def _in(folder: Path) -> list[Skill]:
    return [_described(file) for file in sorted(folder.glob(f"{_FOLDER}/*/SKILL.md"))]


def _described(file: Path) -> Skill:
    head = _HEAD.match(file.read_text(errors="replace"))
    fields = dict(_FIELD.findall(head["head"])) if head else {}
    return Skill(
        fields.get("name", file.parent.name).strip('"'),
        fields.get("description", "").strip('"'),
        file,
    )


def _skills() -> dict[PurePosixPath, bytes]:
    contents: dict[PurePosixPath, bytes] = {}
    pending = [(PurePosixPath(), files("remit") / "skills")]
    while pending:
        path, place = pending.pop()
        for inner in place.iterdir():
            if inner.is_dir():
                pending.append((path / inner.name, inner))
            elif inner.name.endswith(".md"):
                contents[path / inner.name] = inner.read_bytes()
    return dict(sorted(contents.items()))
