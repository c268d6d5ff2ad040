"""Every command explains itself, is in the reference, and takes the shared options."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from remit.entrypoints.cli import output
from remit.entrypoints.cli.commands.login import keep
from remit.entrypoints.cli.main import COMMANDS, cli
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


@pytest.mark.parametrize("name", ALL)
def test_a_command_explains_itself(name: str) -> None:
    command = ALL[name]
    assert command.help, f"{name} has no help text"
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            described = parameter.help or isinstance(parameter.type, click.Choice)
            assert described, f"{name} does not explain {parameter.opts[0]}"


@pytest.mark.parametrize("name", ALL)
def test_a_command_takes_the_shared_options(name: str) -> None:
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert {"--json", "--company", "--url", "--token"} <= options


@pytest.mark.parametrize("name", [name for name in ALL if name != "remit"])
def test_the_reference_has_every_command(name: str) -> None:
    command = ALL[name]
    text = REFERENCE.read_text()
    if isinstance(command, click.Group):
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
    assert "Instance:" in home("--help").out
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


def test_short_ids_stay_apart() -> None:
    close = ["01a1dead-6a98-724d-a6d3-4bae5ac4614c", "01a1dead-6a98-724e-a6d3-4bae5ac4614c"]
    assert set(output.short_ids(close).values()) == {"01a1dead-6a98-724d", "01a1dead-6a98-724e"}
    assert output.short_ids(close[:1] * 2) == {close[0]: "01a1dead-6a98"}
    assert output.short_ids([]) == {}
    assert output.short_resources([f"kb_file:{close[0]}", "full_access"]) == [
        "kb_file:01a1dead-6a98",
        "full_access",
    ]


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
