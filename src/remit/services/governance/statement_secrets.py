"""A payload without its secrets, as its reader may see it before they decide.

Elsewhere a value of one line that has a secret in it is hidden as a whole. Here that would let a
requester hide a command beside something that looks like a key, so only the secret itself is taken
out, unless the name of the value says that all of it is one.
"""

from typing import Any, Final

from remit.services.redaction import REMOVED, text_without_secrets, without_secrets

#: Most values that are looked at once more; each takes a walk through the document.
_MOST: Final = 40
_HARMLESS: Final = "words"
_Path = tuple[Any, ...]


def without_secret_words(document: Any) -> tuple[Any, list[str]]:
    """Return a document without its secrets, and the paths at which something was taken out."""
    shown, paths = without_secrets(document)
    for path in list(_hidden(document, shown, ()))[:_MOST]:
        value = _at(document, path)
        if _at(without_secrets(_with(document, path, _HARMLESS))[0], path) == _HARMLESS:
            cut, was_secret = text_without_secrets(value)
            # Nothing is shown of a text in which the rest still hides one, such as in pieces.
            if was_secret and not without_secrets([cut.replace(REMOVED, " ")])[1]:
                shown = _with(shown, path, cut)
    return shown, paths


def _hidden(value: Any, shown: Any, path: _Path) -> list[_Path]:
    """The paths of texts of several words that are hidden as a whole."""
    if isinstance(value, dict) and isinstance(shown, dict):
        steps: list[Any] = [key for key in value if key in shown]
    elif isinstance(value, list) and isinstance(shown, list) and len(value) == len(shown):
        steps = list(range(len(value)))
    else:
        several = isinstance(value, str) and len(value.split()) > 1
        return [path] if several and shown == REMOVED else []
    return [inner for step in steps for inner in _hidden(value[step], shown[step], (*path, step))]


def _at(document: Any, path: _Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _with(document: Any, path: _Path, new: Any) -> Any:
    """Return a document with another value at a path."""
    if not path:
        return new
    step, *rest = path
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[step] = _with(document[step], tuple(rest), new)
    return copy
