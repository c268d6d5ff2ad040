"""The pages without a browser: signed in by cookie, with whatever headers an attacker may set."""

from __future__ import annotations

import html.parser
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from remit.entrypoints.http.wire.caller import COOKIE
from remit.entrypoints.web import routes as web
from tests.attack_stage import Estate
from tests.http_client import Answer, Client

#: Which of a company's things stands in the address of a page, by the name of the parameter.
OWN = {
    "company_id": "company",
    "agent": "report",
    "approval": "approval",
    "outcome": "own",
    "file": "file",
    "message": "message",
    "question": "question",
    "run": "run",
    "event": "event",
    "grant": "grant",
    "user": "user",
    "token": "token",
    "session": "token",
    "account": "account",
    "confirmation": "confirmation",
    "company": "company",
    "change": "change",
    "plugin": "lent",
}


@dataclass
class Pages:
    """Somebody who is signed in."""

    client: Client
    cookie: str

    @classmethod
    def of(cls, person: Client) -> Pages:
        link = person.must("POST", "/api/login-links")["url"].partition("token=")[2]
        anonymous = person.as_(None)
        answer = anonymous(
            "POST",
            "/login",
            body=urlencode({"token": link}),
            headers={"Origin": person.url, **FORM},
        )
        assert answer.status == 303, answer.body
        value = re.search(rf"{COOKIE}=([^;]+)", answer.headers["Set-Cookie"])
        assert value is not None
        return cls(anonymous, value[1])

    def get(self, path: str, **headers: str) -> Answer:
        return self.client("GET", path, headers={"Cookie": f"{COOKIE}={self.cookie}", **headers})

    def post(self, path: str, fields: dict[str, str], headers: dict[str, str]) -> Answer:
        sent = {"Cookie": f"{COOKIE}={self.cookie}", **FORM, **headers}
        return self.client("POST", path, body=urlencode(fields), headers=sent)

    def send(self, path: str, fields: dict[str, str]) -> Answer:
        """As a page of ours does."""
        return self.post(path, fields, {"Origin": self.client.url})


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def web_routes(app: Any) -> list[tuple[str, str]]:
    """Method and path of everything that browsers are for."""
    return [
        (method, route.path)
        for route in web.build(app, _Nobody())  # type: ignore[arg-type]
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]


class _Nobody:
    """Announces nothing."""

    closing = True


def address(template: str, estate: Estate, **instead: str) -> str:
    """A page's address with things of one's own, or with something else."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        usual = "page.css" if name == "name" else estate.ids[OWN[name]]
        return quote(instead.get(name, usual), safe="")

    return re.sub(r"\{(\w+)\}", fill, template)


@dataclass
class FoundForm:
    """A form that a page has: where it goes, and its fields as they stand."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


class _Forms(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[FoundForm] = []
        self._open: FoundForm | None = None
        self._chosen = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form" and attributes.get("method", "get").lower() == "post":
            self._open = FoundForm(urlsplit(attributes.get("action", "")).path)
            self.found.append(self._open)
        elif self._open is not None and tag in ("input", "textarea", "select", "button"):
            if name := attributes.get("name"):
                self._open.fields.setdefault(name, attributes.get("value", ""))
            self._chosen = attributes.get("name", "") if tag == "select" else self._chosen
        elif (
            self._open is not None and tag == "option" and self._chosen and "selected" in attributes
        ):
            self._open.fields[self._chosen] = attributes.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


def forms_of(page: bytes) -> list[FoundForm]:
    parser = _Forms()
    parser.feed(page.decode())
    return parser.found
