"""Well-formed form fields, as they were typed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.requests import Request

from remit.entrypoints import bodies
from remit.errors import BadInput, TooLarge
from remit.services.fields import Field
from remit.services.verbs import Verb

LARGEST_FORM: Final = 1024 * 1024
MOST_FIELDS: Final = 200
#: Longest idempotency key that a page may send.
LONGEST_KEY: Final = 100


@dataclass(frozen=True)
class Form:
    """Fields by name. Browsers send text; an absent field is empty."""

    fields: dict[str, list[str]] = field(default_factory=dict)

    @property
    def key(self) -> str | None:
        return self.text("key")[:LONGEST_KEY] or None

    def text(self, name: str, default: str = "") -> str:
        """Return a text of one or more lines, with line feeds instead of CR LF."""
        texts = self.fields.get(name)
        return texts[0].replace("\r\n", "\n").strip() if texts else default

    def maybe(self, name: str) -> str | None:
        return self.text(name) or None

    def every(self, name: str) -> list[str]:
        return self.fields.get(name, [])

    def ticked(self, name: str) -> bool:
        return self.text(name) in ("on", "true", "1", "yes")

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if not text:
            return None
        if not text.isascii() or not text.lstrip("-").isdecimal() or len(text) > 18:
            raise BadInput(f"{name}: must be a whole number.", "Correct the field.")
        return int(text)

    def arguments(self, verb: Verb[..., Any], names: Iterable[str]) -> dict[str, Any]:
        """Return fields as the parameters of a verb that have their names."""
        return {name: self._argument(verb.fields[name]) for name in names}

    def _argument(self, field: Field) -> str | bool | int | None:
        if field.kind in (bool, int):
            return self.ticked(field.name) if field.kind is bool else self.number(field.name)
        may_be_empty = not field.optional or (field.text is not None and field.text.empty)
        return self.text(field.name) if may_be_empty else self.maybe(field.name)


async def read_form(request: Request) -> Form:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadInput("This is not a form.", "Send it from the page.")
    try:
        body = await bodies.whole(request.scope, request.receive, LARGEST_FORM)
    except TooLarge:
        raise TooLarge(
            f"The form is larger than {LARGEST_FORM >> 10} KiB.", "Shorten the text."
        ) from None
    return Form(await bodies.apart(len(body), _fields, body))


def _fields(body: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(
            body.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=MOST_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise BadInput("The form cannot be read.", "Load the page again.") from None
