"""The examples in the help of commands: each is understood, and those of a company are played."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from remit.entrypoints.cli.main import cli
from remit.entrypoints.cli.options import Command
from remit.entrypoints.cli.overview import COMMANDS
from tests.test_cli import Home, only, remit
from tests.test_cli_help import ALL

__all__ = ["only", "remit"]

EXAMPLES = [
    (name, example)
    for name, command in ALL.items()
    if isinstance(command, Command)
    for example in command.examples
]
#: An id in an example, which stands for one of the company that plays it.
ID = "4b6f2d91a0c7"
#: What is only parsed: it runs until it is ended, asks a person, or needs an outside server or what
#: its own tests set up.
NOT_PLAYED = (
    *("remit up", "remit doctor", "remit backup", "REMIT_HOME=", "remit inbox --watch"),
    *("remit needs-you --watch", 'remit send writer "When', "remit open --browser"),
    *("remit approve writer", "remit reject writer", "remit change", "remit repo", "remit bind"),
    *("remit question", "remit grant refuse", "remit agent lend", "remit outcome return"),
    *("remit as-of 2026-01-15 file", "remit agent hire writer --adapter", "remit outcome delegate"),
)


def line(example: str) -> tuple[list[str], str | None, bytes]:
    """The words of the command in an example, its input file, and its input."""
    text, _, _ = example.partition("  # ")
    said, piped, command = text.rpartition(" | ")
    words = shlex.split(command if piped else text)
    while "=" in words[0]:
        words = words[1:]  # a variable
    assert words.pop(0) == "remit"
    file = None
    if "<" in words:
        words, file = words[:-2], words[-1]
    return words, file, f"{shlex.split(said)[1]}\n".encode() if piped else b""


def parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> str:
    """Parse words as the command line does, to the end; return the command that they lead to."""
    context = command.make_context(command.name if parent else "remit", words, parent=parent)
    if not isinstance(command, click.Group):
        return context.command_path
    _, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    assert inner is not None
    return parse(inner, rest, context)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_an_example_is_understood_and_in_the_help_of_its_command(
    name: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("brief.md", "monday.tar", "settings.json", "style.md"):
        (tmp_path / file).write_text("{}")
    monkeypatch.chdir(tmp_path)
    words, _, _ = line(example)
    meant = parse(cli, words)
    assert meant in (name, name.replace("approval ", ""))  # approve and reject have two names


def test_everyday_commands_and_those_with_several_arguments_have_examples() -> None:
    shown = {name for name, _ in EXAMPLES}
    everyday = {f"remit {name}" for name in COMMANDS["Everyday"]}
    assert everyday <= shown, everyday - shown
    several = {
        name
        for name, command in ALL.items()
        if sum(isinstance(param, click.Argument) for param in command.params) > 1
    }
    assert several <= shown, several - shown


def test_examples_are_at_the_end_of_the_help(tmp_path: Path) -> None:
    shown = Home(tmp_path)("why", "--help").out
    assert shown.endswith(
        "\nExamples:\n"
        "  remit why writer                        # who wanted this agent\n"
        '  remit why "Write a page about our app"  # an outcome by its title\n'
    )


def story(home: Home) -> Iterator[str | Callable[[], str]]:
    """Examples in an order in which a company can play them, and what stands for their ids."""
    yield 'remit agent hire writer --boss ceo --prompt "Write pages."'
    yield 'remit approval comment writer "Which model would it use?"'
    yield lambda: str(home.json("approval", "list")[0]["id"])
    yield f'remit approve {ID} --revision 1 --note "As agreed."'
    yield lambda: str(home.json("agent", "hire", "other")["approval"]["id"])
    yield f'remit reject {ID} --revision 1 --note "As agreed."'
    for name in (
        "researcher --boss ceo --adapter claude",
        "translator --boss ceo --prompt @brief.md",
    ):
        yield f"remit agent create {name}"
    yield "remit agent set writer title=Editor budgetMonthlyCents=2000"
    yield "remit agent set writer adapterType=claude adapterConfig.model=opus"
    yield "remit agent set writer settings.json --propose"
    yield 'remit agent wake writer "The brief has changed."'

    yield 'remit send ceo "Write a page about our app."'
    yield 'remit send writer "Use this." --attach brief.md'
    yield lambda: str(home.json("inbox", "--sent")[0]["id"])
    yield f'remit reply {ID} "Yes, go ahead."'
    yield f"remit reply {ID} - < answer.txt"
    yield from ("remit inbox", "remit inbox --agent writer --all", "remit needs-you")
    yield from ("remit top", "remit top --once", "remit open")

    yield lambda: str(
        home.json("outcome", "create", "Write a page about our app", "--parent", "ceo")
    )
    yield "remit why writer  # who wanted this agent"
    yield 'remit why "Write a page about our app"  # an outcome by its title'
    yield "remit as-of 2026-01-15 org"
    yield "remit as-of 2026-01-15T09:00:00Z grants --agent writer"
    yield 'remit outcome create "Translate the page" --parent ceo --urgent'
    yield lambda: str(home.json("outcome", "delegate", "Translate the page", "--to", "writer"))
    yield 'remit outcome reclaim "Translate the page" "The market has changed."'
    yield 'remit outcome close "Translate the page" "Nobody reads it."'

    yield 'remit kb create "House style" style.md'
    yield 'echo "Be brief." | remit kb create "Tone"'
    yield 'remit kb write "House style" style.md'
    yield lambda: str(home.json("kb", "list")[0]["id"])
    yield f"remit grant give writer kb_file:{ID} read"
    yield "remit grant give writer repo:site propose --branch main"
    yield "remit grant give writer agent.create use --mode ask"

    yield "remit org insert-layer editor writer researcher --dry-run"
    yield "remit org insert-layer editor writer --role pm"
    yield "remit org move writer ceo"
    yield lambda: str(home.json("org", "move", "writer", "editor"))
    yield "remit org move writer board --dry-run"
    yield "remit agent move writer ceo"

    yield "remit stop"
    yield "remit resume"
    yield 'remit stop writer --note "wrong brief"'
    yield "remit resume writer"


def test_a_company_plays_the_examples(only: Home, tmp_path: Path) -> None:
    for file, text in (
        *(("brief.md", "Short."), ("style.md", "Be brief."), ("answer.txt", "Yes.")),
        ("settings.json", '{"title": "Author"}'),
    ):
        (tmp_path / file).write_text(text)
    played, id_ = set(), ""
    for step in story(only):
        if callable(step):
            id_ = step()
            continue
        words, piped_in, given = line(step)
        words = [word.replace(ID, id_) for word in words]
        for name in ("brief.md", "style.md", "settings.json"):
            words = [word.replace(name, str(tmp_path / name)) for word in words]
        result = only(*words, stdin=(tmp_path / piped_in).read_bytes() if piped_in else given)
        assert result.code == 0, (step, result)
        played.add(step)
    left = {example for _, example in EXAMPLES if not example.startswith(NOT_PLAYED)}
    assert left == played
