"""Errors of the command line: as JSON, by exit code, and answers that say what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_cli import NOWHERE, Home, only, refused, remit

__all__ = ["only", "remit"]


def answered(home: Home, *arguments: str) -> tuple[int, dict[str, object]]:
    """The exit code and the JSON of an error; nothing else is printed."""
    result = home(*arguments)
    assert result.out == ""
    (line,) = result.err.splitlines()
    answer = json.loads(line)
    assert isinstance(answer, dict)
    return result.code, answer


def test_with_json_an_error_is_json_in_the_shape_of_http(only: Home) -> None:
    code, answer = answered(only, "agent", "show", "nobody", "--json")
    assert code == 3
    assert (answer["code"], set(answer)) == ("not_found", {"error", "code", "next_step"})

    only("agent", "create", "ann")
    key = only.json("agent", "token", "ann")["token"]
    code, answer = answered(only, "kb", "cat", "no", "--json", "--token", key)
    assert code in (2, 3)
    code, answer = answered(only, "agent", "pause", "ann", "--json", "--token", key)
    assert (code, bool(answer["decision"])) == (1, True), answer

    code, answer = answered(only, "--json", "company", "list", "--url", NOWHERE)
    assert (code, answer["code"]) == (5, "unreachable")
    assert "remit up" in str(answer["next_step"])


@pytest.mark.parametrize(
    "typed",
    [
        "agent list --limit lots --json",  # the wrong argument comes before the option
        "--json agent list --limit lots",
        "--json nonsense",
        "--json agent",
        "--frobnicate --json",
    ],
)
def test_with_json_a_wrong_command_line_is_json(tmp_path: Path, typed: str) -> None:
    code, answer = answered(Home(tmp_path), *typed.split())
    assert (code, answer["code"]) == (2, "usage")
    assert "--help" in str(answer["next_step"])


def test_every_wrong_argument_is_exit_code_2(only: Home, tmp_path: Path) -> None:
    only("agent", "create", "ann")
    company_file = tmp_path / "company.toml"
    company_file.write_text("agents = 7")
    for wrong in (
        ["agent", "create", "bob", "--adapter", "gpt"],
        ["agent", "create", "two words"],
        ["agent", "permissions", "ann", "--level", "king"],
        ["grant", "give", "ann", "agent.create", "own"],
        ["send", "everything:", "x"],
        ["company", "list", "--url", "ftp://x"],
        ["agent", "create", "bob", "--config", "@missing.json"],
        ["kb", "create", "x", str(tmp_path / "missing")],
        ["kb", "create", "x", str(tmp_path)],
        ["apply", str(tmp_path / "missing.toml")],
        ["apply", str(company_file)],
        ["simulate", str(tmp_path / "missing.yaml")],
        ["backup", str(tmp_path / "no" / "such" / "x.tar")],
    ):
        result = only(*wrong)
        assert result.code == 2, (wrong, result)
        refused(result, 2, "")


def test_refusals_and_failures_are_exit_code_1(only: Home) -> None:
    only("agent", "create", "ann")
    key = only.json("agent", "token", "ann")["token"]
    refused(only("company", "set", "--name", "x", "--token", key), 1, "")
    refused(only("agent", "list", "--token", "rmt_user_wrong"), 1, "not known")


@pytest.mark.parametrize(
    ("typed", "said", "unsaid"),
    [
        ("up --frobnicate", "No such option '--frobnicate'.", "Did you mean"),
        ("up --prt 1", "Did you mean --port?", "integer range"),
        ("agent list --limit lots", "'lots' is not a valid integer.", "range"),
    ],
)
def test_a_wrong_option_is_answered_plainly(
    tmp_path: Path, typed: str, said: str, unsaid: str
) -> None:
    result = Home(tmp_path)(*typed.split())
    refused(result, 2, said)
    assert unsaid not in result.err


def test_a_backup_where_none_can_be_written_names_the_folder(only: Home, tmp_path: Path) -> None:
    nowhere = tmp_path / "no" / "such"
    result = only("backup", str(nowhere / "x.tar"))
    refused(result, 2, f"There is no folder {nowhere}.")
    assert "idempotency" not in result.err
    file = tmp_path / "file"
    file.touch()
    refused(only("backup", str(file / "x.tar")), 2, f"{file} is not a folder.")
    refused(only("backup", str(tmp_path)), 4, "exists already")


def test_a_time_that_is_none_says_how_to_write_one(only: Home) -> None:
    result = only("as-of", "10m", "org")
    refused(result, 2, "is not a time")
    assert "2026-05-01T09:00:00" in result.err


def test_a_scenario_that_is_a_company_file_says_what_it_is(only: Home, tmp_path: Path) -> None:
    file = tmp_path / "company.toml"
    file.write_text('[company]\nname = "x"\n')
    result = only("simulate", str(file))
    refused(result, 2, "is not a scenario")
    assert "remit apply" in result.err


def test_the_levels_of_a_file_are_those_of_a_file(only: Home) -> None:
    only("agent", "create", "ann")
    file = only.json("kb", "create", "A note", stdin=b"x")["id"]
    result = only("grant", "give", "ann", f"kb_file:{file}", "own")
    refused(result, 2, "none, read, write")
    assert "merge" not in result.err


def test_a_backup_says_what_it_leaves_out(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home("up", "--detach", "--port", "0", "--slots", "0")
    try:
        for left_out in ("the board's token", "values of secrets", "home folders of agents"):
            assert left_out in home("backup", str(tmp_path / f"{left_out}.tar")).out
            assert left_out in " ".join(home("backup", "--help").out.split())
        answer = home.json("backup", str(tmp_path / "x.tar"))
        assert "the board's token" in answer["left_out"]
        refused(home("backup", str(tmp_path / "x.tar")), 4, "exists already")
    finally:
        home("down")
