"""The visual system on one page, for the authors of the other pages."""

import re
from typing import Final

from remit.entrypoints.web.site import STATIC, Page, Routes, Site, Visit
from remit.entrypoints.web.text import charts

_STATES: Final = (
    ("idle", "nothing to say: open, idle, closed, cancelled"),
    ("running", "at work"),
    ("waiting", "waits for somebody: pending, paused, blocked"),
    ("failed", "needs a person: stopped, failed, over budget"),
    ("completed", "good news: completed, approved, accepted"),
)


def routes(site: Site) -> Routes:
    return [site.page("/design", show)]


def show(visit: Visit) -> Page:
    days = [f"{day} Nov" for day in range(1, 15)]
    runs = [12.0, 14, 9, 3, 2, 16, 22, 18, 25, 19, 4, 6, 21, 17]
    failed = [1.0, 0, 2, 0, 0, 0, 5, 1, 0, 0, 0, 1, 0, 2]
    return visit.show(
        "design.html",
        states=_STATES,
        icons=re.findall(r'id="(\w+)"', (STATIC / "icons.svg").read_text()),
        chart=charts.bars(days, runs, failed, label="188 runs in 14 days, 12 failed"),
        spark=charts.spark(runs, "Runs of 14 days"),
    )
