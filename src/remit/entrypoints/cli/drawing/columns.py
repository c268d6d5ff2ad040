"""Columns of lists, by their headings: which may wrap, and which say a state."""

from enum import StrEnum

from remit.entrypoints.cli.drawing.terminal import Style

#: PLAIN: names, numbers, times; whole up to a width. KEY: never broken, never below its row.
#: SUBJECT: the matter of a row, which leaves it after other texts. TEXT: a sentence.
#: PREVIEW: the beginning of a text, on one line. STEP: a command to be typed, whole.
Kind = StrEnum("Kind", "PLAIN KEY SUBJECT TEXT PREVIEW STEP")

_KINDS = {
    Kind.KEY: {"id", "seq"},
    Kind.SUBJECT: {"title", "question", "letter", "subject", "description"},
    Kind.TEXT: {
        *("allows", "answer", "cause", "denies", "doing", "fault", "found", "holders", "note"),
        *("options", "place", "refused", "resource", "settings", "url", "what became of it"),
        *("where", "why"),
    },
    Kind.PREVIEW: {"text"},
    Kind.STEP: {"next step"},
}
_KIND_OF = {heading: kind for kind, headings in _KINDS.items() for heading in headings}

_STATES = frozenset({"found", "mode", "reason", "state", "status", "what"})
_STYLES = {
    Style.GREEN: {
        *("active", "allow", "answered", "approved", "bound", "completed", "delivered", "done"),
        *("found", "listening", "merged", "ok", "open", "passed", "perpetual", "ready", "running"),
        *("being read",),
    },
    Style.YELLOW: {
        *("approval", "ask", "asked", "cancelled", "change", "closed", "confirmation", "deferred"),
        *(
            "asks back",
            "in work",
            "leased",
            "limit",
            "paused",
            "pending",
            "pending approval",
            "question",
            "queued",
        ),
        *("returned", "revision requested", "submission", "unread", "waiting", "waits", "warn"),
    },
    Style.RED: {
        *("agent error", "budget stop", "dead", "dead letter", "deny", "error", "fail", "failed"),
        *("failed run", "failing", "held", "lost", "rejected", "runaway", "silent run", "stopped"),
        *("terminated", "unanswered"),
    },
}
_STYLE_OF = {word: style for style, words in _STYLES.items() for word in words}


def kind(heading: str) -> Kind:
    return _KIND_OF.get(heading, Kind.PLAIN)


def style(heading: str, cell: str) -> Style | None:
    """The colour of a cell that says a state, such as `failed` or `open, waits`."""
    return state_style(cell) if heading in _STATES else None


def state_style(state: str) -> Style | None:
    """The colour of a state: of the last thing said about it, without its explanation."""
    last = state.partition(":")[0].rpartition(", ")[2].replace("_", " ")
    word, _, more = last.partition(" ")
    is_sentence = more.count(" ") > 1
    return _STYLE_OF.get(last) or (None if is_sentence else _STYLE_OF.get(word))
