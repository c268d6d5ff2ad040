"""Settings with which the folder that Codex works in does not configure Codex.

Without them Codex takes from it, before a model says a word, settings with programs to start
(`.codex/config.toml`, `.codex/hooks.json`), instructions (`AGENTS.md`) and skills, and runs git
there, whose settings name programs as well.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from remit.errors import Unsupported

#: Options: no settings and rules of a person; neither hooks nor the start-up files of a shell.
OPTIONS: Final = (
    *("--ignore-user-config", "--ignore-rules"),
    *("--disable", "hooks", "--disable", "shell_snapshot"),
)
#: Files of its home that Codex reads whenever they appear, also while a run is under way.
INSTRUCTIONS: Final = ("AGENTS.md", "AGENTS.override.md")
#: Folders in which Codex looks for skills, seen from the one in which it starts.
_SKILLS: Final = (".codex/skills", ".agents/skills")
_SKILL: Final = "SKILL.md"
#: Codex looks less deep, and into fewer folders.
_DEEPEST, _MOST_FOLDERS = 12, 10_000
#: A single argument of a program has at most 128 KiB.
_LONGEST_SETTING: Final = 100_000
#: Git finds no repository with it, so Codex has git read none; commands of the model go without it.
NO_REPOSITORY: Final = {"GIT_DIR": "/nonexistent"}


def settings(folder: Path) -> dict[str, Any]:
    """Return the settings for a start in this folder."""
    names = (str(folder), os.path.realpath(folder))
    skills = {
        # The list of skills would name those of the folder as well; Remit lists its own.
        "include_instructions": False,
        "bundled": {"enabled": False},
        # A letter that says `$name` would have that skill quoted as the words of the user.
        "config": [{"path": path, "enabled": False} for path in skills_in(folder)],
    }
    if len(toml(skills)) > _LONGEST_SETTING:
        raise Unsupported(
            "The folder has too many skills of its own to switch each of them off.",
            "Remove some from its .codex/skills and .agents/skills.",
            code="too_many_skills",
        )
    return {
        # As one table: Codex ignores a path within a dotted name, without a word.
        "projects": {name: {"trust_level": "untrusted"} for name in names},
        "project_doc_max_bytes": 0,
        "project_root_markers": [],
        "skills": skills,
        # A login shell reads start-up files from the home.
        "allow_login_shell": False,
        "shell_environment_policy.exclude": list(NO_REPOSITORY),
    }


def skills_in(folder: Path) -> list[str]:
    """Return the paths of all skills that Codex would find from a folder."""
    return sorted({path for name in _SKILLS for path in _below(folder / name)})


def _below(root: Path) -> Iterator[str]:
    """Yield skills level by level, as Codex looks for them; it follows links to folders."""
    pending = deque([(str(root), 0)])
    seen: set[str] = set()
    while pending and len(seen) < _MOST_FOLDERS:
        folder, depth = pending.popleft()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as entries:
                listed = [(entry.name, entry.is_dir()) for entry in entries]
        except OSError:
            continue
        for name, is_folder in listed:
            path = f"{folder}/{name}"
            if is_folder and depth < _DEEPEST:
                pending.append((path, depth + 1))
            elif name == _SKILL:
                yield from filter(_is_text, (path, f"{real}/{name}"))


def _is_text(path: str) -> bool:
    """Return whether a path is Unicode; Codex loads no skill from any other."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def toml(value: Any) -> str:
    """Return a value of a setting as TOML, on one line."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            # TOML has no surrogate pairs, and refuses this one character of ASCII.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case dict():
            return f"{{{','.join(f'{toml(name)}={toml(item)}' for name, item in value.items())}}}"
        case list():
            return f"[{','.join(map(toml, value))}]"
        case _:
            return str(value)
