"""Secrets in programs and in their output, line by line.

The rules for exports would redact every third file of a program, and the output of every other
test: `sort(key=len)` names a key. So a name alone counts for nothing. A line has a secret by its
shape, also if encoded, or by a value behind such a name that nobody would choose as a word.

A binary file is searched for the certain shapes alone. Compressed or encrypted content is not
searched.
"""

import re
from collections.abc import Iterator

from remit.services.redaction import rules
from remit.services.redaction.document import text_without_secrets
from remit.services.redaction.rules import Says, says
from remit.services.redaction.text import is_label

#: A long line is searched in overlapping parts, so that a secret across two parts is whole in one.
_PART = 8_000
_OVERLAP = 1_000
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
#: Readable text in a binary file, in single bytes or in every second one.
_READABLE = re.compile(rb"[\x20-\x7e\n]{12,}|(?:[\x20-\x7e\n]\0){12,}")


#: Names that mean password or token, and not only key, pin or salt.
_STRONG = re.compile(
    r"(?i)secret|passw|pwd|passphrase|passcode|token|credential|authori[sz]ation"
    r"|(?:api|access|private|client|signing)[-_]?key"
)
#: name = "value", 'name': 'value', name => `value`
_QUOTED = re.compile(
    r"([A-Za-z_][\w.-]{0,63})[\"']?\s{0,8}(?::=|=>|[:=])\s{0,8}[rbuRBU]{0,2}"
    r"([\"'`])([^\"'`\n]{8,4096})\2"
)
#: NAME=value and name: value, alone on a line, as in settings.
_ALONE = re.compile(
    r"[ \t-]{0,16}(?:export +|ENV +)?([\w.-]{1,64})[ \t]{0,8}([:=])[ \t]{0,8}([^\s\"'`]{8,4096})\s*"
)
#: --name value
_FLAGGED = re.compile(r"(?<!\S)--?([A-Za-z][\w-]{1,63})[ =]{1,4}([^\s\"'`]{8,4096})")
#: A password in an address that is a placeholder, or a word.
_HARMLESS = re.compile(
    r"(://[^/\s:@\"']{0,256}:)(?:[A-Za-z_*.-]{1,64}|[^/\s@\"']{0,256}[{}<>$%][^/\s@\"']{0,256})(?=@)"
)
_WORD = re.compile(r"\S{16,}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
#: An identifier, a call, or a placeholder.
_EXPRESSION = re.compile(r"[A-Za-z_][\w.]*|.*[(){}\[\]<>$%].*")

_KEY_END = re.compile("-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = re.compile("[A-Za-z0-9+/=]{1,200}")


def in_text(text: str, before: str = "") -> int | None:
    """Return the number of the first line that seems to have a secret and is not in `before`; None
    if there is none."""
    known = set(before.splitlines())
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and line not in known and any(map(_is_secret, _parts(line))):
            return number
    return None


def without(text: str) -> str:
    """Redact the secrets in a text; lines without any stay unchanged."""
    whole = _without_end_of_key(rules.cut(text))  # a key has several lines
    return "".join(map(_cut_line, whole.splitlines(keepends=True)))


def _without_end_of_key(text: str) -> str:
    """Redact the rest of a key at the beginning of a log whose start was cut off."""
    end = _KEY_END.search(text)
    if end is None:
        return text
    lines = text[: end.start()].splitlines(keepends=True)
    while lines and _KEY_LINE.fullmatch(lines[-1].strip()):
        lines.pop()
    return "".join(lines) + rules.REMOVED + text[end.end() :]


def _cut_line(line: str) -> str:
    if in_text(line) is None:
        return line
    left = text_without_secrets(line)[0]
    return left if in_text(left) is None else rules.REMOVED + line[len(line.rstrip()) :]


def in_file(content: bytes, before: bytes = b"") -> str | None:
    """Return the place, such as `line 3`, of the first apparent secret in a file that is not in
    `before`; None if there is none."""
    text = _text(content)
    if text is not None:
        line = in_text(text, _text(before) or "")
        return None if line is None else f"line {line}"
    for match in _READABLE.finditer(content):
        readable = match[0].replace(b"\0", b"")
        if rules.has_certain(readable.decode()) and readable not in before.replace(b"\0", b""):
            return f"byte {match.start() + 1}"
    return None


def _text(content: bytes) -> str | None:
    """Decode a file; None if it is binary."""
    if content.startswith(_UTF16):
        return content.decode("utf-16", errors="replace")
    return None if b"\0" in content else content.decode(errors="replace")


def _parts(line: str) -> Iterator[str]:
    yield line[:_PART]
    for at in range(_PART, len(line), _PART):
        yield line[at - _OVERLAP : at + _PART]


def _is_secret(line: str) -> bool:
    line = _HARMLESS.sub(r"\1", line)
    if rules.cut(line) != line or any(
        rules.hides(word, rules.has_certain) for word in _WORD.findall(line)
    ):
        return True
    if not any(sign in line for sign in ":=-"):
        return False
    if any(_opens(match[1], match[3]) for match in _QUOTED.finditer(line)):
        return True
    alone = _ALONE.fullmatch(line)
    if alone is not None and _opens(alone[1], alone[3], bare=not _VARIABLE.fullmatch(alone[1])):
        return True
    return any(_opens(match[1], match[2], bare=True) for match in _FLAGGED.finditer(line))


def _opens(name: str, value: str, *, bare: bool = False) -> bool:
    """Return whether a value behind a name is a secret. A `bare` one may be an identifier of the
    program."""
    if says(name) is not Says.SECRET or value.count(" ") > 2 or "://" in value:
        return False
    if _EXPRESSION.fullmatch(value) and (bare or not value.isalnum()):
        return False
    if rules.is_random(value):
        return True
    mixed = re.search("[0-9]", value) and re.search("[A-Za-z]", value)
    return bool(mixed and _STRONG.search(name)) and not is_label(value)
