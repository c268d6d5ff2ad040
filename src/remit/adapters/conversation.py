"""Conversations that a program keeps in its agent's home: which files they are, and who wrote them.

The program appends to them, and so can everything else in the run. Lines that stood there before
the model first answered are the program's own: nothing of the agent ran yet. From then on only the
model's words, the results of its calls and bookkeeping are expected.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Returns why a line is none of the program's; None for what it writes. Gets the line, the turn
#: that Remit sent in this run, and whether the model has answered before.
Foreign = Callable[[Mapping[str, Any], str, bool], str | None]


@dataclass(frozen=True)
class Conversation:
    #: The folder of the home, and patterns of the files in it that a resumed conversation needs.
    folder: str
    files: Sequence[str]
    foreign: Foreign
    #: Whether a line is the model's answer, or a part of it.
    answers: Callable[[Mapping[str, Any]], bool]

    def problem(self, lines: Iterable[object], turn: str) -> str | None:
        """Return why the lines of a run are not only the program's; None if they are."""
        answered = False
        for line in lines:
            if not isinstance(line, Mapping):
                return "a line is no entry"
            answered = answered or self.answers(line)
            if (why := self.foreign(line, turn, answered)) is not None:
                return why
        return None


def texts(content: object) -> list[str] | None:
    """Return the texts of a message; None if it has anything besides."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return None
    leaves = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return [text for text in leaves if isinstance(text, str)] if all(leaves) else None
