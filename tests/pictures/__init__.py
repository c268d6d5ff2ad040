"""Pictures of pages, and what of a page is compared with them.

Letters would differ: fonts come from the machine. So every letter is drawn as the same block, by a
font of our own (`blocks.ttf`, 724 bytes: one glyph for all characters but the space); numbers and
moments are the same everywhere, and charts are left out. What is left is the page: its boxes,
columns, colours, icons, and where each word stands. At a quarter of its size it is the same on
every machine, but for the edges of lines, which differ a little between versions of the browser: a
pixel counts from `SAME` of 255 on in one of its colours, and in no square of 16 pixels (64 of the
page) more than `TOLERANCE` of them may.

`REMIT_PICTURES=new` in the environment of a test run takes them anew. What was seen instead of a
picture is in `build/pictures`.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

SAME: Final = 64
TOLERANCE: Final = 0.12
SCALE: Final = 0.25
#: As much of a page as is compared, of each width.
SIZES: Final = ((1440, 1100), (390, 1100), (1920, 1100))
#: Where the pictures are.
FOLDER: Final = Path(__file__).parent
_SEEN: Final = FOLDER.parent.parent / "build" / "pictures"
_SCRIPT: Final = (FOLDER / "page.js").read_text().partition("\n")[2]
_FONT: Final = base64.b64encode((FOLDER / "blocks.ttf").read_bytes()).decode()


def within(page: Page, what: str, given: object = None) -> Any:
    """One of the functions of `page.js`."""
    return page.evaluate(f"(given) => {_SCRIPT.rstrip()}.{what}(given)", given)


def compare(page: Page, desk: Page, name: str) -> None:
    """A page that will not be used any more, at all widths, with its picture; `desk` is an empty
    page to work on."""
    within(page, "freeze", _FONT)
    protocol = page.context.new_cdp_session(page)
    taken: list[str] = []
    for width, height in reversed(SIZES):  # the page has the last width already
        page.set_viewport_size({"width": width, "height": height})
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": SCALE}
        shot = protocol.send("Page.captureScreenshot", {"format": "png", "clip": clip})
        taken.insert(0, f"data:image/png;base64,{shot['data']}")
    protocol.detach()
    path = FOLDER / f"{name}.png"
    if os.environ.get("REMIT_PICTURES") == "new":
        path.write_bytes(_together(desk, taken))
        return
    assert path.exists(), f"There is no picture of {name}; REMIT_PICTURES=new takes it."
    known = f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
    share: float = within(desk, "differ", [known, taken, SAME])
    if share > TOLERANCE:
        _SEEN.mkdir(parents=True, exist_ok=True)
        (_SEEN / path.name).write_bytes(_together(desk, taken))
    assert share <= TOLERANCE, (
        f"{name} looks different: {share:.0%} of a square. Compare tests/pictures/{path.name} with "
        f"build/pictures/{path.name}; REMIT_PICTURES=new takes it as it is now."
    )


def _together(desk: Page, taken: list[str]) -> bytes:
    url: str = within(desk, "together", taken)
    return base64.b64decode(url.partition(",")[2])
