"""Tells a story on the terminal, one line at a time."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

_WIDTH = 8


class Narrator:
    def __init__(self, pause: float, *, quiet: bool = False) -> None:
        self._console = Console(highlight=False, soft_wrap=True, quiet=quiet)
        self._pause = pause
        #: Who and what, for those who would rather read JSON.
        self.told: list[tuple[str, str]] = []

    def title(self, text: str) -> None:
        self.line()
        self._console.print(Text(text, style="bold"))

    def say(self, who: str, what: str) -> None:
        self.told.append((who, what))
        self._wait()
        self._console.print(Text(f"  {who:<{_WIDTH}}", style="cyan") + Text(what))

    def refused(self, text: str) -> None:
        self.told.append(("refused", text))
        self._wait()
        self._console.print(Text(f"  {'✗':<{_WIDTH}}", style="red") + Text(text, style="dim"))

    def line(self, text: str = "") -> None:
        self._console.print(Text(text))

    def _wait(self) -> None:
        if self._pause:
            time.sleep(self._pause)
