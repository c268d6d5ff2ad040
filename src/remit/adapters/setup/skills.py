"""Skills that ship with Remit, written into the folder in which an agent's program looks for them.

A skill is a folder with a SKILL.md, which a program loads only when it is needed, so that it costs
few tokens until then. The adapter names the folder (`Adapter.skills_folder`).
"""

from importlib.resources import files
from pathlib import Path, PurePosixPath

from remit.adapters import registry


def names() -> list[str]:
    """Return the names of all skills."""
    return sorted({path.parts[0] for path in _contents()})


def give(workspace: Path, adapter_type: str) -> list[Path]:
    """Write the skills into a new workspace; returns their folders, none if the adapter has no
    skills."""
    folder = registry.get(adapter_type).skills_folder
    if folder is None:
        return []
    root = workspace / folder
    for path, content in _contents().items():
        place = root / path
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with place.open("xb") as file:  # never through an existing file or link
            file.write(content)
    return [root / name for name in names()]


def _contents() -> dict[PurePosixPath, bytes]:
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
