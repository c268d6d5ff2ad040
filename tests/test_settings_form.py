"""An adapter's settings as fields: what is typed is what is meant, for each adapter."""

from __future__ import annotations

from typing import Any

import pytest

from remit.adapters import registry
from remit.entrypoints.web.forms import Form
from remit.entrypoints.web.text import settings_form
from remit.entrypoints.web.text.words import diff
from remit.errors import BadInput

EXAMPLES = [
    pytest.param(adapter.type, dict(config), id=f"{adapter.type}-{number}")
    for adapter in registry.all()
    for number, config in enumerate(adapter.examples.values())
]


def form(fields: dict[str, str]) -> Form:
    return Form({name: [text] for name, text in fields.items()})


@pytest.mark.parametrize(("adapter", "config"), EXAMPLES)
def test_an_example_is_the_same_after_a_person_typed_it(
    adapter: str, config: dict[str, Any]
) -> None:
    fields = settings_form.written(adapter, config)
    assert fields is not None
    assert settings_form.read(adapter, form(fields)) == config
    registry.validate(adapter, config)


def test_settings_are_fields_that_fit_them() -> None:
    kinds = {one.key: one.kind for one in settings_form.settings("claude")}
    assert (kinds["model"], kinds["maxTurns"], kinds["sandbox"]) == ("text", "number", "choice")
    assert (kinds["allowedTools"], kinds["env"]) == ("lines", "pairs")
    assert (kinds["sessionPolicy.maxAge"], kinds["sessionPolicy.maxContextTokens"]) == (
        "text",
        "number",
    )
    assert "json" not in kinds.values()  # whatever a model describes is fields
    first = settings_form.settings("process")[0]
    assert (first.key, first.required) == ("command", True)


@pytest.mark.parametrize(
    ("key", "text", "what"),
    [
        ("maxTurns", "many", "must be a number"),
        ("maxTurns", "1e999999999x", "must be a number"),
        ("env", "A", "has a line without =; write NAME=VALUE"),
    ],
)
def test_what_is_no_value_is_said_at_its_field(key: str, text: str, what: str) -> None:
    with pytest.raises(BadInput) as wrong:
        settings_form.read("claude", form({f"c-{key}": text}))
    assert wrong.value.details["path"] == f"adapterConfig.{key}"
    assert settings_form.problems(wrong.value) == {key: what[0].upper() + what[1:] + "."}


def test_values_that_fields_cannot_say_are_left_to_json() -> None:
    configs: tuple[dict[str, Any], ...] = (
        {"tools": []},
        {"unknown": 1},
        {"env": {"A": "two\nlines"}},
        {"allowedTools": ["two\nlines"]},
        {"maxTurns": True},
    )
    for config in configs:
        assert settings_form.written("claude", config) is None


def test_numbers_that_are_none_are_the_adapters_to_refuse() -> None:
    for text in ("1e400", "nan", "-5", "9" * 5000):
        with pytest.raises(BadInput):
            registry.validate("claude", settings_form.read("claude", form({"c-maxTurns": text})))


def test_comparing_very_long_texts_takes_no_time() -> None:
    same = [f"line {number % 7}" for number in range(1999)]
    found = diff("\n".join(same), "\n".join([*same, "more"]))
    assert found[-1] == ("added", "more")
    huge = diff("a\n" * 60_000, "b\n" * 60_000)
    assert len(huge) < 10_000
    assert huge[-1] == ("same", "… and 112,000 more lines")
