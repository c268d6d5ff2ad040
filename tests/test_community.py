"""Pages for those who report, contribute and release: they are whole, and invent nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.releasing import report
from tests.releasing.steps import Failed, Steps, run

pytestmark = pytest.mark.requirement("FX-53")

ROOT = Path(__file__).parent.parent
FORMS = [ROOT / ".github/ISSUE_TEMPLATE" / name for name in ("bug.yml", "idea.yml")]
WORKFLOW = ROOT / ".github/workflows/release.yml"


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_asks_for_what_it_requires(path: Path) -> None:
    form = loaded(path)
    assert {"name", "description", "body"} <= form.keys()
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] and field["id"] for field in asked)
    assert any(field.get("validations", {}).get("required") for field in asked)


@pytest.mark.parametrize(
    "name",
    ["SECURITY.md", "CODE_OF_CONDUCT.md", ".github/pull_request_template.md", "docs/releasing.md"],
)
def test_no_address_is_invented(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.findall(r"\b[\w.+-]+@[\w-]+\.\w+|https?://", text) == []


def test_only_the_publishing_job_of_the_workflow_may_publish() -> None:
    workflow = loaded(WORKFLOW)
    assert workflow["permissions"] == {}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert build["permissions"]["contents"] == "read"
    assert publish["environment"] == "release"
    # Trusted publishing: a short-lived identity, and no stored secret.
    assert publish["permissions"]["id-token"] == "write"
    assert "secrets." not in WORKFLOW.read_text(encoding="utf-8")
    assert {"run": "make release"} in build["steps"]


def test_the_workflow_is_said_not_to_have_run() -> None:
    assert "never run yet" in WORKFLOW.read_text(encoding="utf-8")
    assert "**never run**" in (ROOT / "docs/releasing.md").read_text(encoding="utf-8")


# ── the record of an acceptance ─────────────────────────────────────────────────────────────────


def test_the_acceptance_is_kept_with_version_commit_and_day(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = Steps()
    with steps.step("a step") as remarks:
        remarks += ["3 a|b", "0 c"]
    page = report.text("0.2.0", "abc", "2026-01-02", steps)
    assert "- Version: `0.2.0`\n- Commit: `abc`\n- Day: 2026-01-02\n" in page
    assert "| a step | ok | 0 | 3 a/b; 0 c |" in page
    assert "ok, 0.0 s: 3 a|b; 0 c" in capsys.readouterr().out


def test_a_step_that_fails_ends_all_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps()
    with pytest.raises(Failed, match="nothing there"), steps.step("a step"):
        run("sh", "-c", "echo nothing there >&2; exit 3")
    assert steps.done["a step"][0] == "failed"
    assert "ended with 3" in capsys.readouterr().out
