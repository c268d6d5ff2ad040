"""Next steps for a model that gave a wrong id: the tool that shows the right ones."""

from typing import Final

from remit.errors import NotAnId, NotFound, RemitError

_OPEN_THINGS: Final = "loose_ends shows the ids of what is open; copy one from there."
#: By the kind of the reference, so the same for absent and hidden things.
_SHOWN_BY: Final = {
    "outcome": "outcome_list shows the ids of your outcomes, outcome_subtree those below one; copy "
    "one from there.",
    "file": "kb_list shows the ids of your files, kb_browse finds others; copy one from there.",
    "message": "mail_inbox shows the ids of your mail; copy one from there.",
    "approval": "approval_view without an id lists those that concern you.",
    "grant": "capability_list shows the ids of what you hold; copy one from there.",
    "question": _OPEN_THINGS,
    "schedule": _OPEN_THINGS,
    "job": _OPEN_THINGS,
    "agent": "Name an agent as agent:<name>.",
    "user": "Write to `board`, or to a person as their mail names them.",
}


def where_ids_are(error: RemitError) -> str | None:
    """Return the next step for a reference that is not found or is no id."""
    return _SHOWN_BY.get(error.what) if isinstance(error, NotFound | NotAnId) else None
