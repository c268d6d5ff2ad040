"""What must not leave an instance, found by its name or by its shape.

An adapter's settings are free-form, and so is what an event keeps of them. A value is taken out
when its key says that it is a secret, or when it looks like one; what was taken out is named, so
that whoever imports the company knows what to give again.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Stands where a secret was.
REMOVED = "[removed]"

#: Whole settings that hold secrets by their nature: the environment and headers of a program.
_HOLDERS = frozenset({"env", "environ", "environment", "headers", "httpheaders", "cookies"})
_SECRET_KEY = re.compile(
    r"(?i)secret|passw|passphrase|passwd|\bpwd\b|\bpin\b|credential|bearer|cookie|session_?id"
    r"|private_?key|signature|authori[sz]ation|\bauth\b|\bjwt\b|\bdsn\b|\botp\b|\bpat\b"
    r"|(?:^|[_.\s])(?:token|key|keys)$|token(?!s|_?(?:count|limit|budget|usage))"
    r"|(?:api|access|account|auth|client|encryption|master|service|shared|signing|ssh|storage)_?key"
)
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHAPES = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"  # JWT
    r"|\brmt_[a-z]+_[A-Za-z0-9_-]{16,}"
    r"|\b(?:sk|rk|pk|xox[a-z]|gh[a-z]|github_pat|glpat|npm|pypi|hf|dop_v1|shpat|ya29)"
    r"[-_.][A-Za-z0-9_.-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\b(?:Bearer|Basic)\s+[A-Za-z0-9+/._~=-]{12,}",
    re.DOTALL,
)
#: The password in an address.
_USERINFO = re.compile(r"(?<=://)([^/\s:@\"']*):([^/\s@\"']+)@")
_DEEPEST = 64


def without_secrets(value: Any) -> tuple[Any, list[str]]:
    """The value with its secrets taken out, and the paths at which they were."""
    removed: list[str] = []
    return _walk(value, "", removed, 0), removed


def text_without_secrets(text: str) -> tuple[str, bool]:
    """A text with everything taken out that looks like a secret; and whether there was any.

    Also if that was long ago: what came from an export gives the same export again.
    """
    clean = _USERINFO.sub(rf"\1:{REMOVED}@", _SHAPES.sub(REMOVED, text))
    return clean, REMOVED in clean


def _walk(value: Any, path: str, removed: list[str], depth: int) -> Any:
    if depth > _DEEPEST:
        removed.append(path)
        return REMOVED
    if isinstance(value, dict):
        return {
            _key(key, path, removed): _inside(str(key), inner, f"{path}.{key}", removed, depth)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return _list(value, path, removed, depth)
    if isinstance(value, str):
        return _string(value, path, removed, depth)
    return value


def _key(key: object, path: str, removed: list[str]) -> str:
    clean, was_secret = text_without_secrets(str(key))
    if was_secret:
        removed.append(f"{path}.{clean}".lstrip("."))
    return clean


def _inside(key: str, value: Any, path: str, removed: list[str], depth: int) -> Any:
    path = text_without_secrets(path.lstrip("."))[0]
    words = _INNER_CAPITAL.sub("_", key).replace("-", "_")
    if words.replace("_", "").lower() in _HOLDERS and value:
        # The names are worth keeping: they say what has to be given again.
        if isinstance(value, dict):
            names = [text_without_secrets(str(name))[0] for name in value]
            removed += [f"{path}.{name}" for name in names]
            return dict.fromkeys(names, REMOVED)
        removed.append(path)
        return REMOVED
    if (
        _SECRET_KEY.search(words)
        and not isinstance(value, bool)
        and value not in (None, "", [], {})
    ):
        removed.append(path)
        return REMOVED
    return _walk(value, path, removed, depth + 1)


def _list(value: list[Any], path: str, removed: list[str], depth: int) -> list[Any]:
    found: list[Any] = []
    for number, inner in enumerate(value):
        here = f"{path}[{number}]"
        flag = value[number - 1] if number else None
        if isinstance(flag, str) and isinstance(inner, str) and _is_secret_flag(flag):
            removed.append(here)  # as in ["--api-key", "…"]
            found.append(REMOVED)
        else:
            found.append(_walk(inner, here, removed, depth + 1))
    return found


def _is_secret_flag(text: str) -> bool:
    if not text.startswith("-") or "=" in text or " " in text:
        return False
    return _SECRET_KEY.search(text.lstrip("-").replace("-", "_")) is not None


def _string(text: str, path: str, removed: list[str], depth: int) -> str:
    if text[:1] in "{[" and text[1:]:
        # Settings that were kept as JSON inside JSON, as a change of seats does.
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            before = len(removed)
            clean = _walk(inner, path, removed, depth + 1)
            return json.dumps(clean) if len(removed) > before else text
    flag, equals, rest = text.partition("=")
    if equals and rest and len(flag) < 100 and _looks_assigned(flag):
        removed.append(path)  # as in --api-key=… or API_KEY=…
        return f"{flag}={REMOVED}"
    clean, was_secret = text_without_secrets(text)
    if was_secret:
        removed.append(path)
    return clean


def _looks_assigned(flag: str) -> bool:
    words = _INNER_CAPITAL.sub("_", flag).lstrip("-").replace("-", "_")
    return bool(re.fullmatch(r"[A-Za-z0-9_.]+", words)) and _SECRET_KEY.search(words) is not None
