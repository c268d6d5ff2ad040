"""docs/configuration.md: every setting, as `settings.py` declares it."""

import re
import tomllib
from pathlib import Path

import pytest

from remit import settings
from remit.entrypoints import configuration_page

SOURCE = Path(settings.__file__).parent
ROW = r"^\| `(\w+)` \| `(REMIT_\w+)` \|.*\| `(.+)` \|$"
ROWS = re.findall(ROW, configuration_page.page(), re.MULTILINE)
#: Variables between git and its helper, and between a shell and its completion.
INTERNAL = {"REMIT_GIT_USERNAME", "REMIT_GIT_PASSWORD", "REMIT_COMPLETE"}


@pytest.mark.requirement("FX-59")
def test_the_page_is_up_to_date() -> None:
    assert configuration_page.PLACE.read_text() == configuration_page.page(), (
        "run: python -m remit.entrypoints.reference"
    )


def test_the_page_has_every_setting_with_its_meaning() -> None:
    assert {name for name, _, _ in ROWS} == set(settings.known())
    for name, meaning in configuration_page.described().items():
        assert meaning or name == "more_urls", f"the field {name} has no `#:` comment"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_example_means_the_same_in_the_file_and_in_the_environment(
    row: tuple[str, str, str], tmp_path: Path
) -> None:
    name, variable, example = row
    (tmp_path / "remit.toml").write_text(example)
    home = {"REMIT_HOME": str(tmp_path)}
    in_file = settings.load(home)
    assert settings.load({**home, variable: tomllib.loads(example)[name]}) == in_file
    shown = configuration_page.EXAMPLES.get(name)
    (tmp_path / "remit.toml").unlink()
    assert (settings.load(home) != in_file) == (shown is not None), "the default is the example"


def test_the_page_has_every_variable_that_the_source_names() -> None:
    named = {
        variable
        for file in SOURCE.rglob("*.py")
        for variable in re.findall(r"\bREMIT_[A-Z_]*[A-Z]\b", file.read_text())
    }
    page = configuration_page.page()
    assert sorted(one for one in named - INTERNAL if f"`{one}`" not in page) == []


def test_the_page_names_no_setting_that_is_not_there(tmp_path: Path) -> None:
    """Its file of settings is read as it stands."""
    blocks = re.findall(r"```toml\n(.*?)```", configuration_page.page(), re.DOTALL)
    (tmp_path / "remit.toml").write_text("\n".join(blocks))
    assert settings.load({"REMIT_HOME": str(tmp_path)}).proxies == ("127.0.0.1/32",)
