"""Roles of files: what a forge executes, what configures a program, what instructs agents."""

import pytest

from remit.model.connections.file_roles import (
    CONFIGURATION,
    EXECUTED_BY_FORGES,
    INSTRUCTIONS,
    FileRole,
    instructs,
    is_guarded,
    marks,
    names_guarded,
    roles,
)

CONFIGURES = (
    *(".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/a.sh", ".mcp.json"),
    *(".claude/agents/x.md", ".claude/commands/x.md", ".claude/plugins/x", ".claude/agents"),
    *(".claude-plugin/plugin.json", ".codex/config.toml", ".codex/hooks.json", ".agents/x.json"),
    *(".gemini/settings.json", ".cursor/mcp.json", ".vscode/tasks.json", ".vscode/settings.json"),
    *(".vscode/launch.json", ".envrc", ".npmrc", ".devcontainer.json", "web/.devcontainer/x"),
    *("web/.mcp.json", "a/b/.claude/settings.json", "opencode.json", ".cargo/config.toml"),
)
INSTRUCTS = (
    *("CLAUDE.md", "AGENTS.md", "GEMINI.md", "src/web/AGENTS.md", "CLAUDE.local.md"),
    *(".claude/CLAUDE.md", ".claude/rules/style.md", ".claude/skills/deploy/SKILL.md"),
    *(".cursor/rules/a.mdc", ".cursorrules", ".agents/skills/a/SKILL.md"),
)


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize("path", CONFIGURES)
def test_configuration_is_guarded(path: str) -> None:
    assert is_guarded(path)
    assert FileRole.CONFIGURATION in roles(path)
    assert FileRole.EXECUTED not in roles(path)


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize("path", INSTRUCTS)
def test_instructions_are_marked_and_need_no_grant(path: str) -> None:
    assert instructs(path)
    assert not is_guarded(path)


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize(
    "path",
    [
        *("src/claude.py", "docs/settings.json", "README.md", "npmrc", "a/claude/hooks/b"),
        *("claude", "my.claude/settings.json", "docs/agents.md.txt", ".env.example"),
    ],
)
def test_other_files_have_no_role(path: str) -> None:
    assert not roles(path)


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize(
    "path",
    [
        *(".Claude/settings.json", ".CLAUDE/Settings.JSON", ".claude /settings.json"),
        *(".claude./settings.json", ".claude/settings.json...", ".cl\u200daude/settings.json"),
        *(".mcp.json ", ".mcp.json::$DATA", "\uff0eclaude/x", ".\u212audex/a", ".clau\ufe0fde/x"),
    ],
)
def test_a_name_that_some_system_reads_as_configuration_is_configuration(path: str) -> None:
    assert is_guarded(path) is ("\u212a" not in path)  # that one is `.kdex`: the control


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize("path", [".claude", ".Codex", "web/.vscode", ".github", ".claude/rules"])
def test_a_link_in_the_place_of_such_a_folder_is_guarded(path: str) -> None:
    assert is_guarded(path)


@pytest.mark.requirement("FX-80")
def test_an_agent_definition_called_like_instructions_is_configuration() -> None:
    assert is_guarded(".claude/agents/CLAUDE.md")
    assert is_guarded(".claude/commands/AGENTS.md")


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        *((".claude/**", True), (".claude/settings.json", True), ("web/.mcp.json", True)),
        *((".Claude/**", True), ("packages/*/.npmrc", True), (".github/**", True)),
        *(("**", False), ("*/**", False), ("*.json", False), ("src/**", False), (".*/**", False)),
        *((".c*/**", False), ("CLAUDE.md", False)),
    ],
)
def test_a_pattern_names_configuration_by_a_literal_beginning(pattern: str, named: bool) -> None:
    assert names_guarded(pattern) is named


def test_the_lists_are_in_the_spelling_that_names_are_compared_in() -> None:
    for pattern in (*EXECUTED_BY_FORGES, *CONFIGURATION, *INSTRUCTIONS):
        assert pattern == pattern.casefold().strip()
        assert "*" not in pattern.removesuffix("/**")


def test_a_file_that_was_moved_has_the_marks_of_both_of_its_paths() -> None:
    assert marks("docs/settings.json", ".claude/settings.json") == ("configures programs",)
    assert marks("docs/settings.json") == ()
