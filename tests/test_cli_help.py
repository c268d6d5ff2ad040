"""Every command explains itself, is in the reference, and takes the shared options."""

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from remit.entrypoints.cli.commands.instance.login import keep
from remit.entrypoints.cli.declared import TABLE
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.main import cli
from remit.entrypoints.cli.overview import ADVICE, ALIASES, COMMANDS
from remit.entrypoints.cli.parameters import REFERENCES
from tests.test_cli import Home, refused

REFERENCE = Path(__file__).parent.parent / "docs" / "cli.md"


def commands(command: click.Command, name: str = "remit") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            yield from commands(inner, f"{name} {each}")


ALL = dict(commands(cli))
#: Those are in docs/reference.md, which is made from the declarations.
DECLARED = {
    f"remit {group} {entry['name']}"
    for group, entries in json.loads(TABLE.read_text()).items()
    for entry in entries
}


@pytest.mark.parametrize("name", ALL)
def test_a_command_explains_itself(name: str) -> None:
    command = ALL[name]
    assert command.help, f"{name} has no help text"
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            described = parameter.help or isinstance(parameter.type, click.Choice)
            assert described, f"{name} does not explain {parameter.opts[0]}"


@pytest.mark.parametrize("kind", REFERENCES)
def test_what_a_declared_command_is_given_can_be_found(kind: str) -> None:
    find = REFERENCES[kind].find
    if isinstance(find, str):
        place, _, name = find.rpartition(".")
        find = getattr(import_module(f"remit.entrypoints.cli.{place}"), name)
    assert callable(find)


def test_a_declared_list_is_drawn_by_its_group() -> None:
    groups = {name.split()[-1]: one for name, one in ALL.items() if isinstance(one, click.Group)}
    for group, entries in json.loads(TABLE.read_text()).items():
        drawn = {entry["name"] for entry in entries if entry["is_list"]}
        assert getattr(groups.get(group), "tables", {}).keys() == drawn, group


@pytest.mark.parametrize("name", ALL)
def test_a_command_takes_the_shared_options(name: str) -> None:
    options = [option for parameter in ALL[name].params for option in parameter.opts]
    assert {"--json", "--company", "--url", "--token"} <= set(options)
    assert len(options) == len(set(options)), "one of its own is called like a shared one"


@pytest.mark.parametrize("name", [name for name in ALL if name != "remit"])
def test_the_reference_has_every_command(name: str) -> None:
    command = ALL[name]
    text = REFERENCE.read_text()
    if isinstance(command, click.Group) or name in DECLARED:
        return
    assert f"`{name}" in text, f"docs/cli.md does not mention {name}"
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.opts[0] in text, f"docs/cli.md does not mention {parameter.opts[0]}"


def test_the_overview_says_what_the_commands_say() -> None:
    for section in COMMANDS.values():
        for name, entry in section.items():
            help_text = ALL[f"remit {name}"].help or ""
            assert help_text.splitlines()[0] == entry.help


def test_the_overview_and_the_version_need_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "none")
    assert "Everyday:" in home("--help").out
    assert home("--version").out.startswith("remit ")
    assert home("version").out == home("--version").out
    assert set(home.json("version")) == {"version"}
    assert not home.folder.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], "nonsense"),
        (["agent", "nonsense"], "nonsense"),
        (["agent", "list", "--nonsense"], "--nonsense"),
        (["agent", "list", "--limit", "-1"], "--limit"),
        (["kb", "cat"], "ID"),
        (["kb", "cat", "x", "--version", "x"], "--version"),
        (["event", "tail", "--after", "x"], "--after"),
        (["login", "--show", "x"], "--show"),
        (["demo", "--speed", "x"], "--speed"),
        (["read", "nonsense"], "'nonsense' is not an id"),
        (["job", "show", "nonsense"], "'nonsense' is not an id"),
        (["grant", "revoke", "nonsense"], "'nonsense' is not an id"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    refused(Home(tmp_path)(*arguments), 2, sentence)


def test_a_noun_without_a_verb_shows_its_verbs(tmp_path: Path) -> None:
    result = Home(tmp_path)("agent")
    assert (result.code, result.out) == (2, "")
    assert "terminate" in result.err


def test_a_settings_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").write_text("url = ")
    refused(Home(tmp_path)("company", "list"), 1, "remit.toml")


def test_values_are_kept_in_any_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "remit.toml"
    hidden = 'company = """\nurl = 1\n"""\n'
    escaped = 'company = "a\\u007f\\"b"\nurl="x" # old\n'
    for before in ("", hidden, escaped):
        file.write_text(before)
        keep(file, {"url": "http://x", "token": "t"})
        now = tomllib.loads(file.read_text())
        was = tomllib.loads(before)
        assert now == {**was, "url": "http://x", "token": "t"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["remit.toml"]


def test_the_ids_in_a_text_are_shown_short() -> None:
    command = "remit grant give ann kb_file:01a1dead-6a98-724d-a6d3-4bae5ac4614c read"
    assert output.shortened(command) == "remit grant give ann kb_file:4bae5ac4614c read"
    assert output.shortened("full_access") == "full_access"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ls", "agent list"),
        ("agents", "agent list"),
        ("agent ls", "agent list"),
        ("agent get", "agent show"),
        ("user create", "user add"),
        ("ps", "run list"),
        ("logs", "run tail"),
        ("approvals", "approval list"),
        ("files", "kb list"),
        ("companies", "company list"),
    ],
)
def test_names_of_other_programs_are_understood(tmp_path: Path, typed: str, meant: str) -> None:
    asked = Home(tmp_path)("help", *typed.split())
    assert asked.out == Home(tmp_path)(*meant.split(), "--help").out
    assert asked.out.startswith(f"Usage: remit {meant} ")


def test_every_alias_leads_to_a_command_and_hides_none() -> None:
    for name, path in ALIASES.items():
        assert f"remit {' '.join(path)}" in ALL
        assert f"remit {name}" not in ALL
    for advice in ADVICE.values():
        for command in re.findall(r"`remit ([a-z ]+)", advice):
            assert f"remit {command.strip()}" in ALL


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("sned", "'send'"),
        ("agnet", "'agent'"),
        ("inbx", "'inbox'"),
        ("rm", "remit agent terminate NAME"),
        ("delete", "remit agent terminate NAME"),
        ("budget", "`remit agent budget`"),
        ("budgets worker", "`remit agent set NAME`"),
        ("agent rm", "`remit agent terminate`"),
        ("outcome delete", "`remit outcome close`"),
        ("agent lst", "'list'"),
        ("help agnet", "'agent'"),
        ("help version more", "no commands"),
    ],
)
def test_what_is_not_a_command_is_answered_with_what_could_be(
    tmp_path: Path, typed: str, hint: str
) -> None:
    refused(Home(tmp_path)(*typed.split()), 2, hint)


def test_bash_completes_commands(tmp_path: Path) -> None:
    """Really: the script is read by a bash, which then asks this command line."""
    home = Home(tmp_path)
    script = home("completion", "bash").out
    (tmp_path / "remit").write_text(
        f'#!/bin/sh\nexec {shlex.join(home.command(warnings=False))} "$@"\n'
    )
    (tmp_path / "remit").chmod(0o755)
    told = (
        script
        + """
    COMP_WORDS=(remit outcome re) COMP_CWORD=2 COMPREPLY=()
    _remit_completion remit && printf '%s\\n' "${COMPREPLY[@]}"
    complete -p remit
    """
    )
    path = f"{tmp_path}:{home.environment['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", told],
        capture_output=True,
        text=True,
        env={**home.environment, "PATH": path},
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    *words, registered = done.stdout.splitlines()
    assert sorted(words) == ["reclaim", "reopen", "return"]
    assert registered.endswith("-F _remit_completion remit")


def test_other_shells_have_a_script_of_their_own(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home("completion", "zsh").out.startswith("#compdef remit")
    assert "complete --no-files --command remit" in home("completion", "fish").out
    refused(home("completion", "tcsh"), 2, "tcsh")


def test_a_table_is_drawn_for_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    output.table(("name", "description"), [("a[b]", "[red]x[/red]\x1b[31m " * 9)], empty="")
    drawn = capsys.readouterr().out
    assert "a[b]" in drawn
    assert "[red]x[/red]\\x1b[31m" in drawn
    assert max(map(len, drawn.splitlines()[1:])) <= 80
