"""Shapes of secrets, wherever they are, also in a text once it is decoded.

Every pattern takes linear time: each repetition is bounded, or can begin only where it cannot have
begun before.
"""

import base64
import binascii
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import unquote_plus

#: Replaces a secret.
REMOVED = "***REDACTED***"

_BEFORE = r"(?<![A-Za-z0-9_-])"
_CERTAIN = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|PuTTY-User-Key-File-\d.*\Z"
    rf"|{_BEFORE}(?:"
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*){0,2}"  # JWT, JWE
    r"|rmt_[a-z]{1,20}_[A-Za-z0-9_-]{16,}"
    r"|(?:[srp]k_(?:live|test)|whsec|gh[a-z]|github_pat|glpat|gldt|glrt|npm|pypi|hf|dop_v1|doo_v1"
    r"|shp(?:at|ca|pa|ss)|ya29|xox[a-z]|xapp|hvs|hvb|tskey|gsk|r8|pplx|nvapi|lin_api|ntn|sq0[a-z]{3}"
    r"|dckr_pat|glsa|figd|ops|dp\.(?:pt|st|ct)|PMAK|ATATT3|SG|AGE-SECRET-KEY|rubygems)"
    r"[-_.](?=[A-Za-z0-9_.=/+-]{0,16}[0-9A-Z])[A-Za-z0-9_.=/+-]{16,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|dapi[0-9a-f]{32}"
    r"|key-[0-9a-f]{32}"
    r")"
    r"|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9_/-]{10,}"
    r"|discord(?:app)?\.com/api/webhooks/[A-Za-z0-9_/-]{10,}",
    re.DOTALL,
)
# Prose has words that begin like these, so the rest must look generated.
_LIKELY = re.compile(
    rf"{_BEFORE}(?:(?:sk|rk|xai)-[A-Za-z0-9_.-]{{16,}}"
    r"|(?i:bearer|basic|digest|negotiate)\s{1,8}[A-Za-z0-9+/._~=-]{8,})"
)
_USERINFO = re.compile(r"(?<=://)([^/\s:@\"']{0,256}):([^/\s@\"']{1,1024})@")
_LONE_USER = re.compile(r"(?<=://)([^/\s:@\"']{20,1024})@")

_MACHINE_MADE = re.compile(r"\d|[a-z][A-Z]|[A-Z]{2}[a-z]|[=+/]")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}){12,}(?![0-9A-Za-z])")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_SPACE = re.compile(r"\s+")
_LAYERS = 3
_PRINTABLE_SHARE = 0.97


def cut(text: str) -> str:
    """Return the text with the marker in place of everything that has the shape of a secret."""
    text = _CERTAIN.sub(REMOVED, text)
    text = _LIKELY.sub(_if_machine_made, text)
    if "://" in text:
        text = _USERINFO.sub(rf"\1:{REMOVED}@", text)
        text = _LONE_USER.sub(_if_random, text)
    return text


def has_certain(text: str) -> bool:
    """Return whether the text has a shape that only secrets have."""
    return _CERTAIN.search(text) is not None


def is_random(text: str) -> bool:
    """Return whether a part of the text is as long and as mixed as only a generated key is."""
    return any(_is_random_part(part) for part in re.split(r"[^A-Za-z0-9+=]+", text[:4096]))


def hides(text: str, is_secret: Callable[[str], bool], layers: int = _LAYERS) -> bool:
    """Return whether a secret appears when the text is decoded, up to several times."""
    if layers == 0:
        return False
    return any(is_secret(inner) or hides(inner, is_secret, layers - 1) for inner in _decoded(text))


def _decoded(text: str) -> Iterator[str]:
    """Decodings of a text: without odd characters, percent signs, base64 or hex."""
    if not text.isascii():
        plain = "".join(
            letter
            for letter in unicodedata.normalize("NFKC", text)
            if unicodedata.category(letter) != "Cf"
        )
        if plain != text:
            yield plain
    if _PERCENT.search(text):
        yield unquote_plus(text)
    if (unbroken := _SPACE.sub("", text)) != text and _BASE64.fullmatch(unbroken):
        text = unbroken
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, binascii.unhexlify)):
        for match in pattern.finditer(text):
            inner = _as_text(match[0], decode)
            if inner is not None:
                yield inner


def _if_machine_made(match: re.Match[str]) -> str:
    rest = re.split(r"[-\s]", match[0], maxsplit=1)[1]
    return REMOVED if _MACHINE_MADE.search(rest) else match[0]


def _if_random(match: re.Match[str]) -> str:
    return f"{REMOVED}@" if is_random(match[1]) else match[0]


def _is_random_part(part: str) -> bool:
    if len(part) < 16 or not any(letter.isdigit() for letter in part):
        return False
    counts = Counter(part)
    return -sum(n / len(part) * math.log2(n / len(part)) for n in counts.values()) >= 3.0


def _from_base64(text: str) -> bytes:
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _as_text(encoded: str, decode: Callable[[str], bytes]) -> str | None:
    try:
        text = decode(encoded).decode()
    except (ValueError, binascii.Error):
        return None
    printable = sum(map(str.isprintable, text)) + text.count("\n") + text.count("\t")
    return text if len(text) >= 8 and printable >= len(text) * _PRINTABLE_SHARE else None
