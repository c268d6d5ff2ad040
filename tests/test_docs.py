"""What the documents claim exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_requirements import all_tests

REPOSITORY = Path(__file__).parent.parent
DOCUMENTS = sorted([REPOSITORY / "README.md", *REPOSITORY.glob("docs/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_proof_that_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"tests/\w+\.py::\w+", document.read_text()))
    known = set(all_tests())
    assert named <= known, sorted(named - known)


def test_the_guarantees_name_proofs() -> None:
    text = (REPOSITORY / "docs" / "guarantees.md").read_text()
    assert len(re.findall(r"tests/\w+\.py::\w+", text)) >= 20


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_source_files_that_a_document_names_exist(document: Path) -> None:
    for name in re.findall(
        r"`((?:services|authority|store|entrypoints|model)/[\w/]+\.py)`", document.read_text()
    ):
        assert (REPOSITORY / "src" / "remit" / name).exists(), f"{document.name} names {name}"


def test_the_readme_stays_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) < 150
