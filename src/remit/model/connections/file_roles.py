"""Roles of files in a repository or a folder: executed by a forge, configuration of a program,
instructions for agents, keys.

Names are compared as the most tolerant file system reads them: without case, invisible characters,
trailing dots and blanks.
"""

import unicodedata
from collections.abc import Iterator
from enum import StrEnum

from remit.model.connections.folder import KEYS, OF_PROJECTS, holds_keys
from remit.model.organisation.path_pattern import matches, within

_BELOW = "/**"

#: Files that a forge, or a program beside it, executes by itself, from the root of the repository.
EXECUTED_BY_FORGES = (
    *(".github/**", ".gitlab/**", ".gitea/**", ".forgejo/**", ".circleci/**", ".woodpecker/**"),
    *(".buildkite/**", ".githooks/**", ".husky/**", ".gitlab-ci.yml"),
    *(".woodpecker.yml", ".woodpecker.yaml", ".travis.yml", ".drone.yml", ".cirrus.yml"),
    *("azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile", ".gitmodules"),
    *(".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".lefthook/**"),
    *("appveyor.yml", ".appveyor.yml", ".semaphore/**", ".teamcity/**", ".tekton/**"),
    *(".build.yml", ".builds/**", "bitrise.yml", ".mergify.yml", ".mergify/**"),
    *("azure-pipelines.yaml", "cloudbuild.yaml", "buildspec.yml", ".cirrus.star", ".drone.star"),
    *(".drone.jsonnet", ".devcontainer/**", ".gitpod.yml"),
    # Address of the contents of large files.
    ".lfsconfig",
    # The required reviewers of files.
    *("codeowners", "docs/codeowners"),
)

#: Files from which an agent program, an editor or a tool around them takes settings, hooks,
#: servers, environment or permissions; in any folder, because each may be the one it starts in.
CONFIGURATION = (
    *(".claude/**", ".claude-plugin/**", ".claude.json", ".mcp.json"),
    *(".codex/**", ".codex-plugin/**", ".agents/**"),
    *(".gemini/**", "gemini-extension.json", ".qwen/**"),
    *(".cursor/**", ".windsurf/**", ".opencode/**"),
    *("opencode.json", "opencode.jsonc", ".continue/**", ".roo/**", ".kiro/**", ".amp/**"),
    *(".aider.conf.yml", ".aider.model.settings.yml", ".goosehints", ".crush.json", "crush.json"),
    *(".vscode/**", ".idea/**", ".zed/**", ".fleet/**", ".exrc", ".nvim.lua"),
    *(".devcontainer/**", ".devcontainer.json"),
    *(".envrc", ".env", ".direnv/**", ".mise.toml", "mise.toml", ".mise/**", ".tool-versions"),
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml"),
    *(".cargo/**", ".mvn/**", ".gdbinit", ".lldbinit", ".bazelrc"),
    *(".husky/**", ".githooks/**", ".lefthook/**", "lefthook.yml", "lefthook.yaml"),
    *("lefthook.toml", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".overcommit.yml"),
    *(".pre-commit-config.yaml", ".gitconfig", ".lfsconfig"),
)

#: Files that tell an agent how to work, in any folder. Some lie among configuration.
INSTRUCTIONS = (
    *("agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md"),
    *(".claude/agents.md", ".claude/claude.md", ".claude/claude.local.md", ".claude/rules/**"),
    *(".claude/skills/**", ".agents/skills/**", ".codex/skills/**", ".gemini/skills/**"),
    *(".codex/agents.md", ".gemini/gemini.md", ".cursor/rules/**", ".cursor/skills/**"),
    *(".cursorrules", ".windsurfrules", ".windsurf/rules/**", ".clinerules", ".clinerules/**"),
    *(".github/copilot-instructions.md", ".github/instructions/**", ".github/skills/**"),
)


#: Further names of files and folders that may hold keys, for what Remit itself passes on.
_MAY_HOLD_KEYS = KEYS - OF_PROJECTS | {
    *("credentials", "credentials.json", "credentials.toml", ".npmrc", ".pypirc"),
    # The address of a remote may have a password in it.
    ".git",
}


def leads_to_keys(path: str) -> bool:
    """Return whether a path names a file with keys, or leads into a folder of them."""
    return any(
        name in _MAY_HOLD_KEYS or holds_keys(name)
        for name in (*path.split("/"), *_plain(path).split("/"))
    )


class FileRole(StrEnum):
    """The effect of a file on programs and agents that work in its folder."""

    EXECUTED = "executed"
    CONFIGURATION = "configuration"
    INSTRUCTIONS = "instructions"


def roles(path: str) -> frozenset[FileRole]:
    """Return the roles of the file, link or folder at a path of a repository."""
    plain = _plain(path)
    its_roles = set()
    if any(_leads_into(plain, pattern) for pattern in EXECUTED_BY_FORGES):
        its_roles.add(FileRole.EXECUTED)
    if any(_configures(tail) for tail in _tails(plain)):
        its_roles.add(FileRole.CONFIGURATION)
    if any(_instructs(tail) for tail in _tails(plain)):
        its_roles.add(FileRole.INSTRUCTIONS)
    return frozenset(its_roles)


#: Marks of such files in the difference of a change.
_WORDS = {
    FileRole.INSTRUCTIONS: "will instruct agents",
    FileRole.CONFIGURATION: "configures programs",
    FileRole.EXECUTED: "run by the forge",
}
#: All marks, in the order in which files that have them are shown.
MARKS = tuple(_WORDS.values())


def marks(*paths: str) -> tuple[str, ...]:
    """Return the roles of a file in words, by its present and former paths; instructions first."""
    its_roles = frozenset[FileRole]().union(*map(roles, paths))
    return tuple(words for role, words in _WORDS.items() if role in its_roles)


def is_guarded(path: str) -> bool:
    """Return whether only a capability that names the file reaches it."""
    return bool(roles(path) - {FileRole.INSTRUCTIONS})


def instructs(path: str) -> bool:
    """Return whether agents that work with the file's folder are told what it says."""
    return FileRole.INSTRUCTIONS in roles(path)


def names_guarded(pattern: str) -> bool:
    """Return whether a pattern itself names files that only a capability naming them reaches."""
    plain = _plain(pattern)
    return any(_names(plain, executed) for executed in EXECUTED_BY_FORGES) or any(
        _names(tail, configuration) for tail in _tails(plain) for configuration in CONFIGURATION
    )


def _names(pattern: str, guarded: str) -> bool:
    return within(pattern, guarded) or pattern == guarded.removesuffix(_BELOW)


def _configures(tail: str) -> bool:
    return not any(matches(tail, pattern) for pattern in INSTRUCTIONS) and any(
        _leads_into(tail, pattern) for pattern in CONFIGURATION
    )


def _instructs(tail: str) -> bool:
    return any(_leads_into(tail, pattern) for pattern in INSTRUCTIONS)


def _leads_into(path: str, pattern: str) -> bool:
    """Match a path; also a link in place of the folder that the pattern names."""
    return matches(path, pattern) or path == pattern.removesuffix(_BELOW)


def _tails(path: str) -> Iterator[str]:
    """Yield the path as it is called from each folder above it."""
    segments = path.split("/")
    for start in range(len(segments)):
        yield "/".join(segments[start:])


def _plain(path: str) -> str:
    return "/".join(map(_plain_name, path.split("/")))


def _plain_name(name: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    seen = "".join(char for char in folded if unicodedata.category(char) not in ("Cf", "Mn"))
    # Windows drops dots and blanks at the end, and calls a file's default stream `name::$DATA`.
    return seen.partition(":")[0].rstrip(" .")
