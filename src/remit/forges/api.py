"""Requests to the API of a forge: bounded, to that host alone, with respect for rate limits.

Answers are untrusted: each is limited in size and time, and every value is validated. The token
goes into a header of these requests only; it is redacted from errors, if a forge repeats it there.
"""

import asyncio
import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from remit.adapters import guarded_http
from remit.adapters.guarded_http import Answer

SECONDS = 30.0
LARGEST = 8 << 20
#: Most bytes of a log, from its end.
TAIL = 64 << 10
MOST_PAGES = 10
#: Requests of a rate limit that are left for other users of the token.
_SPARE = 100
_LONGEST_SAID = 200
_NEXT = re.compile(r'rel="?next"?')


class ForgeFailed(Exception):
    """A failed request to a forge; the sentence is for people, without the token."""

    def __init__(self, sentence: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status
        self.retry_after = retry_after


class Api:
    def __init__(
        self,
        base: str,
        headers: Mapping[str, str],
        without_token: Callable[[str], str],
        *,
        tags: Mapping[str, str] | None = None,
        private: bool = False,
    ) -> None:
        """`tags` are the entity tags from `kept` of an earlier instance; `private` allows logs in
        private networks."""
        self._base = base
        self._headers = {"User-Agent": "Remit", "Accept": "application/json", **headers}
        self._without_token = without_token
        self._tags = tags or {}
        self._private = private
        self.kept: dict[str, str] = {}
        #: Seconds for which the forge wants no further requests.
        self.pause = 0.0

    async def get(self, path: str, **query: Any) -> Any:
        return self._json(await self._ask("GET", path, query), path)

    async def maybe(self, path: str) -> Any:
        """Get a document; None if there is none."""
        try:
            return await self.get(path)
        except ForgeFailed as failed:
            if failed.status == 404:
                return None
            raise

    async def fresh(self, path: str, **query: Any) -> Any | None:
        """Get a document; None if it is unchanged, by its entity tag."""
        place = _place(path, query)
        answer = await self._ask("GET", path, query, tag=self._tags.get(place))
        self._keep(place, answer)
        return None if answer.status == 304 else self._json(answer, path)

    async def pages(self, path: str, *, known: bool = False, **query: Any) -> list[Any]:
        """Get the entries of a list, within a limit; with `known`, none if it is unchanged."""
        entries: list[Any] = []
        for page in range(1, MOST_PAGES + 1):
            place = _place(path, page_query := {**query, "page": page})
            tag = self._tags.get(place) if known and page == 1 else None
            answer = await self._ask("GET", path, page_query, tag=tag)
            if known and page == 1:
                self._keep(place, answer)
            if answer.status == 304:
                break
            entries += many(self._json(answer, path))
            # The link only shows whether there is a next page; its address is not used.
            if not _NEXT.search(answer.headers.get("link", "")):
                break
        return entries

    async def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        answer = await self._ask(method, path, {}, content=orjson.dumps(body))
        return self._json(answer, path) if answer.body.strip() else None

    async def tail(self, path: str) -> str:
        """Get the end of a text. One redirect is followed, without the token, because logs are
        stored on other hosts."""
        answer = await self._ask("GET", path, {}, tail=True)
        if answer.status in (301, 302, 303, 307, 308):
            there = answer.headers.get("location", "")
            parts, ours = urlsplit(there), urlsplit(self._base)
            private = self._private or parts.hostname == ours.hostname
            if parts.scheme != "https" and not (private and parts.scheme == ours.scheme):
                raise ForgeFailed("the forge redirects the log to an address without HTTPS")
            answer = await self._call("GET", there, {}, private=private, tail=True)
            if answer.status != 200:
                raise ForgeFailed(f"the log was answered with {answer.status}")
        return self._without_token(answer.body.decode(errors="replace"))

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, object],
        *,
        content: bytes = b"",
        tag: str | None = None,
        tail: bool = False,
    ) -> Answer:
        headers = dict(self._headers)
        if content:
            headers["Content-Type"] = "application/json"
        if tag is not None:
            headers["If-None-Match"] = tag
        answer = await self._call(
            method, self._base + _place(path, query), headers, content=content, tail=tail
        )
        self._mind_limits(answer)
        status = answer.status
        if 200 <= status < 300 or (status == 304 and tag is not None) or (tail and status < 400):
            return answer
        if 300 <= status < 400:
            raise ForgeFailed(
                "the forge answers with a redirect, which is not followed", status=status
            )
        raise self._refused(answer)

    async def _call(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        *,
        content: bytes = b"",
        private: bool = True,
        tail: bool = False,
    ) -> Answer:
        try:
            # A limit for the whole answer, also of a server that sends one byte at a time.
            async with asyncio.timeout(2 * SECONDS):
                return await guarded_http.request(
                    method,
                    url,
                    content=content,
                    headers=headers,
                    seconds=SECONDS,
                    largest=TAIL if tail else LARGEST,
                    private=private,
                    trusts=_trusted(
                        os.environ.get("GIT_SSL_CAINFO") or os.environ.get("SSL_CERT_FILE")
                    ),
                    tail=tail,
                )
        except TimeoutError:
            raise ForgeFailed("the forge takes too long to answer") from None
        except OSError as error:
            raise ForgeFailed(self._without_token(f"the forge cannot be asked ({error})")) from None

    def _json(self, answer: Answer, path: str) -> Any:
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            raise ForgeFailed(f"the forge does not answer in JSON at {path[:100]}") from None

    def _keep(self, place: str, answer: Answer) -> None:
        tag = answer.headers.get("etag")
        if answer.status == 304:
            self.kept[place] = self._tags[place]
        elif tag and len(tag) < 200 and not _NEXT.search(answer.headers.get("link", "")):
            self.kept[place] = tag

    def _mind_limits(self, answer: Answer) -> None:
        left = _number(answer, "x-ratelimit-remaining", "ratelimit-remaining")
        again = _number(answer, "x-ratelimit-reset", "ratelimit-reset")
        wait = _number(answer, "retry-after")
        limit = _number(answer, "x-ratelimit-limit", "ratelimit-limit") or 0
        if wait is not None:
            self.pause = max(self.pause, min(wait, 3600))
        elif left is not None and again is not None and left < min(_SPARE, limit // 10 or 1):
            try:
                now = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
            except (TypeError, ValueError):
                return
            self.pause = max(self.pause, min(max(again - now, 1.0), 3600.0))

    def _refused(self, answer: Answer) -> ForgeFailed:
        status = answer.status
        if status == 429 or (status == 403 and self.pause):
            return ForgeFailed(
                "the forge wants fewer requests", status=status, retry_after=self.pause or 60.0
            )
        try:
            document = orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            document = {}
        parts = []
        if isinstance(document, dict):
            parts = [document.get(key) for key in ("message", "error", "errors")]
        words = "; ".join(str(part) for part in parts if part)
        line = " ".join(self._without_token(words).split())[:_LONGEST_SAID]
        shown = "".join(char for char in line if char.isprintable())
        return ForgeFailed(
            f"the forge answered {status}" + (f": {shown}" if shown else ""), status=status
        )


@lru_cache(maxsize=4)
def _trusted(authorities: str | None) -> ssl.SSLContext:
    """Return a TLS context with the certificate authorities that git is configured to trust."""
    return ssl.create_default_context(cafile=authorities)


def _place(path: str, query: Mapping[str, object]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _number(answer: Answer, *names: str) -> int | None:
    for name in names:
        text = answer.headers.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 16:
            return int(text)
    return None


# ── validated values of answers ─────────────────────────────────────────────────────────────────


def many(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ForgeFailed("the forge answered with something else than a list")
    return value


def at(value: Any, *path: str) -> Any:
    """Return the value at a path of keys; None without one."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any, *path: str, most: int = 200) -> str:
    """Return a text, truncated; empty without one."""
    leaf = at(value, *path)
    if leaf is None:
        return ""
    if not isinstance(leaf, str):
        raise ForgeFailed(f"the forge has no text as {path[-1]}")
    return leaf[:most]


def number(value: Any, *path: str) -> int:
    leaf = at(value, *path)
    if not isinstance(leaf, int) or isinstance(leaf, bool) or not 0 < leaf < 1 << 53:
        raise ForgeFailed(f"the forge has no number as {path[-1]}")
    return leaf


def maybe_number(value: Any, *path: str) -> int | None:
    return None if at(value, *path) is None else number(value, *path)


def amount(value: Any, *path: str) -> int:
    """Return a positive number; 0 for any other value."""
    leaf = at(value, *path)
    return leaf if isinstance(leaf, int) and leaf > 0 else 0


def link(value: Any, *path: str) -> str:
    """Return an http address for people to follow; empty for any other value."""
    address = text(value, *path, most=2000)
    return address if address.startswith(("https://", "http://")) and address.isprintable() else ""
