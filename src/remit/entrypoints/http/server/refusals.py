"""Log of refused tokens, limited in rate so that nobody can flood it."""

import logging
import time
from typing import Final

from starlette.types import Scope

log = logging.getLogger(__name__)

#: Least time between two log lines.
EVERY_SECONDS: Final = 60.0
_LONGEST_PATH: Final = 100
_CARRYING: Final = (b"authorization", b"cookie")


class Refusals:
    """Counts refused tokens, and logs the count now and then."""

    def __init__(self) -> None:
        self.count = 0
        self._told = 0
        self._at = -EVERY_SECONDS

    def note(self, scope: Scope) -> None:
        """Count a response of 401, unless its request carried no credentials."""
        if not any(name in _CARRYING for name, _ in scope["headers"]):
            return
        self.count += 1
        now = time.monotonic()
        if now - self._at < EVERY_SECONDS:
            return
        who = (scope.get("client") or ("somebody",))[0]
        before = self.count - self._told - 1
        more = f", and {before} times before that since it was last said" if before else ""
        path = scope["path"][:_LONGEST_PATH]
        # Most are of runs that have just ended; guessing shows in the number.
        log.info("a token was refused: a request from %s to %s%s", who, path, more)
        self._at, self._told = now, self.count
