"""Skills, commands and agents of a project or a person, lent to an agent as a plugin of its own.

A lent plugin is a copy. It holds what instructs a model and nothing that configures a program:
hooks, servers and settings stay behind, also those in the head of a skill. The head of each file is
written anew from the few fields that are kept, so that no other way to write YAML carries one of
the rest.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from remit.clock import Micros
from remit.errors import BadInput, TooLarge
from remit.ids import AgentId, CompanyId, LentPluginId
from remit.model.connections.file_roles import leads_to_keys
from remit.model.text import clean_name

LARGEST_PLUGIN = 1 << 20
MOST_FILES = 300
LONGEST_PATH = 300
MOST_PLUGINS = 10
LONGEST_SOURCE = 500
#: The folder that marks a plugin.
PLUGIN_FOLDER = ".claude-plugin"
#: Folders of a project in which programs look.
PROJECT_FOLDERS = (".claude", ".agents", ".codex")
#: The name of the plugin with Remit's own skills.
RESERVED = frozenset({"remit"})
_LONGEST_FIELD = 2000
_MOST_RUN = 20

ItemKind = StrEnum("ItemKind", "SKILL COMMAND AGENT")
#: Fields of the head that are kept, by the kind of the file.
_KEPT = {
    ItemKind.SKILL: frozenset(
        {"name", "description", "license", "version", "when_to_use", "argument-hint"}
    ),
    ItemKind.COMMAND: frozenset({"description", "argument-hint", "when_to_use"}),
    # Tools that an agent is limited to.
    ItemKind.AGENT: frozenset({"name", "description", "tools", "disallowedTools", "color"}),
}
_FLAGS = frozenset({"disable-model-invocation", "user-invocable"})
_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:\r?\n|\A)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)")
_STARTS = re.compile(r"!`([^`\n]{1,500})`|^```!\s*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FOLDERS = {"skills": ItemKind.SKILL, "commands": ItemKind.COMMAND, "agents": ItemKind.AGENT}
_BAD_IN_PATH = re.compile(r"[\x00-\x1f\x7f\\:]")


@dataclass(frozen=True, slots=True)
class LentPlugin:
    id: LentPluginId
    company_id: CompanyId
    created_at: Micros
    agent_id: AgentId
    #: The prefix of each skill in a program: `name:skill`.
    name: str
    #: Where it was copied from, in words.
    source: str
    #: Digest of the copy.
    sha256: str
    #: JSON: the contents by path, in base64; empty once it was taken back.
    contents: str
    removed_at: Micros | None = None

    def files(self) -> dict[PurePosixPath, bytes]:
        """Return the files of the plugin as a program reads it."""
        manifest = {"name": self.name, "description": f"Lent from {self.source}."}
        return {
            PurePosixPath(PLUGIN_FOLDER, "plugin.json"): json.dumps(manifest).encode(),
            **{PurePosixPath(path): content for path, content in unpacked(self.contents).items()},
        }


@dataclass(frozen=True, slots=True)
class LentItem:
    """A skill, command or agent that is lent."""

    kind: ItemKind
    name: str
    description: str
    files: tuple[str, ...]
    #: Commands that a program starts by itself when a model uses it.
    starts: tuple[str, ...] = ()
    #: The text that a model reads first.
    text: str = ""


@dataclass(frozen=True, slots=True)
class Lendable:
    """The part of some files that can be lent."""

    contents: Mapping[str, bytes]
    items: tuple[LentItem, ...]
    #: Files, and fields of their heads, that stay behind.
    left_out: tuple[str, ...]

    @property
    def packed(self) -> str:
        return json.dumps(
            {path: base64.b64encode(raw).decode() for path, raw in sorted(self.contents.items())}
        )

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.packed.encode()).hexdigest()


def unpacked(contents: str) -> dict[str, bytes]:
    return {path: base64.b64decode(raw) for path, raw in json.loads(contents or "{}").items()}


def plugin_name(text: object) -> str:
    name = clean_name(text).lower()
    if name in RESERVED:
        raise BadInput(f"{name} is the plugin with Remit's own skills.", "Choose another name.")
    return name


# ── which files of a folder are lent ────────────────────────────────────────────────────────────


def arranged(paths: Iterable[str], name: str) -> tuple[dict[str, str], list[str]]:
    """Choose what of a folder can be lent: its files by their paths in the plugin, and those that
    stay behind. A folder is a project, a plugin, the home of a program, a folder of skills, or one
    skill, which is called `name`."""
    here = sorted(paths)
    roots = [f"{root}/" for root in PROJECT_FOLDERS if _any_below(here, f"{root}/")]
    if _any_below(here, "SKILL.md"):
        chosen = {f"skills/{name}/{path}": path for path in here}
    elif roots and not _any_below(here, f"{PLUGIN_FOLDER}/"):
        # Of a project, files outside of these folders are its own.
        here = [path for path in here if path.startswith(tuple(roots)) or path == ".mcp.json"]
        chosen = {
            path.removeprefix(root): path
            for root in reversed(roots)
            for path in here
            if path.startswith(root) and path.removeprefix(root).startswith(_LENT)
        }
    elif any(_any_below(here, f"{folder}/") for folder in _FOLDERS):
        chosen = {path: path for path in here if path.startswith(_LENT)}
    else:
        named = {path.split("/")[0] for path in here if path.endswith("/SKILL.md")}
        chosen = {f"skills/{path}": path for path in here if path.split("/")[0] in named}
    chosen = {path: source for path, source in chosen.items() if _is_lent(path)}
    taken = set(chosen.values())
    return chosen, [path for path in here if path not in taken]


_LENT = tuple(f"{folder}/" for folder in _FOLDERS)


def _any_below(paths: Iterable[str], start: str) -> bool:
    return any(path == start or (start.endswith("/") and path.startswith(start)) for path in paths)


def _is_lent(path: str) -> bool:
    """Return whether a file at this path of a plugin instructs a model."""
    folder, _, inner = path.partition("/")
    if leads_to_keys(path) or any(part.startswith(".") for part in path.split("/")):
        return False
    if folder == "skills":
        return inner.count("/") >= 1
    return path.endswith(".md")


# ── what is lent of these files ─────────────────────────────────────────────────────────────────


def lendable(files: Mapping[str, bytes]) -> Lendable:
    """Return the part of these files that is lent; they are arranged as a plugin."""
    if len(files) > MOST_FILES or sum(map(len, files.values())) > LARGEST_PLUGIN:
        raise TooLarge(
            f"A plugin has at most {MOST_FILES} files and {LARGEST_PLUGIN >> 10} KiB.",
            "Lend less of it.",
        )
    contents: dict[str, bytes] = {}
    left_out: list[str] = []
    for path, raw in sorted(files.items()):
        _check_path(path)
        if not _is_lent(path):
            left_out.append(path)
            continue
        kind = _head_kind(path)
        if kind is None:
            contents[path] = raw
            continue
        text, dropped = _rewritten(path, raw, kind)
        contents[path] = text.encode()
        left_out += [f"{path}: {field}" for field in dropped]
    items = tuple(_items(contents))
    if not items:
        raise BadInput(
            "There are no skills, commands or agents in it.",
            "Give a folder with skills/NAME/SKILL.md, commands/NAME.md or agents/NAME.md.",
        )
    return Lendable(contents, items, tuple(left_out))


def _check_path(path: str) -> None:
    parts = path.split("/")
    if (
        len(path) > LONGEST_PATH
        or _BAD_IN_PATH.search(path)
        or not path.isprintable()
        or any(part in ("", ".", "..") for part in parts)
        or parts[0] not in _FOLDERS
    ):
        raise BadInput(
            f"{path[:100]!r} is not the path of a file that can be lent.",
            "Arrange them as skills/NAME/SKILL.md, commands/NAME.md and agents/NAME.md.",
        )


def _head_kind(path: str) -> ItemKind | None:
    """Return the kind of a file whose head a program reads; None for files beside it."""
    kind = _FOLDERS[path.partition("/")[0]]
    if kind is ItemKind.SKILL and PurePosixPath(path).name.lower() != "skill.md":
        return None
    return kind


def _rewritten(path: str, raw: bytes, kind: ItemKind) -> tuple[str, list[str]]:
    """Return the text of a file with a head of kept fields alone, and the names of the others."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text.", "Write it as UTF-8.") from None
    match = _HEAD.match(text)
    fields = _fields(match[1]) if match else {}
    body = text[match.end() :] if match else text.removeprefix("\ufeff")
    kept = [_line(name, value) for name, value in fields.items() if name in _KEPT[kind]]
    kept += [
        f"{name}: {value.lower()}"
        for name, value in fields.items()
        if name in _FLAGS and value.lower() in ("true", "false")
    ]
    dropped = [name for name in fields if name not in _KEPT[kind] | _FLAGS]
    # Never empty, so that every reader of heads sees the same end of it.
    return "\n".join(["---", *(kept or [_line("description", "")]), "---", ""]) + body, dropped


def _fields(head: str) -> dict[str, str]:
    """Read the fields of a head in plain words; anything else counts as a field to leave out."""
    fields: dict[str, str] = {}
    name = ""
    for line in head.splitlines():
        match = None if line[:1] in (" ", "\t", "-", "#") else _FIELD.fullmatch(line)
        if match is not None:
            name = match[1]
            value = (match[2] or "").strip()
            fields[name] = "" if value in (">", ">-", ">+", "|", "|-", "|+") else _bare(value)
        elif line[:1] in (" ", "\t", "-") and name and line.strip():
            inner = _bare(line.strip().removeprefix("- "))
            mark = ", " if line.strip().startswith("- ") else " "
            fields[name] = f"{fields[name]}{mark}{inner}" if fields[name] else inner
        elif line.strip() and not line.startswith("#"):
            name = ""
            fields[line.strip()[:60]] = ""
    return fields


def _bare(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return value.strip("[]") if value.startswith("[") else value


def _line(name: str, value: str) -> str:
    return f"{name}: {json.dumps(value[:_LONGEST_FIELD], ensure_ascii=False)}"


def _items(contents: Mapping[str, bytes]) -> Iterable[LentItem]:
    for path, raw in contents.items():
        kind = _head_kind(path)
        if kind is None:
            continue
        text = raw.decode()
        match = _HEAD.match(text)
        fields = _fields(match[1]) if match else {}
        folder, _, inner = path.partition("/")
        name = inner.rpartition("/")[0] if kind is ItemKind.SKILL else inner.removesuffix(".md")
        start = f"{folder}/{name}/"
        beside = [other for other in contents if kind is ItemKind.SKILL and other.startswith(start)]
        starts = [line or more for line, more in _STARTS.findall(text)]
        yield LentItem(
            kind,
            name,
            fields.get("description", ""),
            tuple(beside or [path]),
            tuple(line.strip() for line in starts[:_MOST_RUN]),
            text,
        )
