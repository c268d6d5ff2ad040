"""Runs over time, with a lane for each agent, as SVG from the server; each bar is a link.

Horizontal positions are per cent of the width, which only the browser knows, so that letters keep
their size on any screen. The names of lanes stand beside the drawing, and do not scroll with it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros, to_iso
from remit.entrypoints import cost_text
from remit.entrypoints.web.text.words import lasting
from remit.model.text import plural

_ROW, _HEAD = 24, 24
#: Per cent of the width: the end of the drawing, and the last place of a label to the right.
_END, _LAST_WORD = 97.0, 93.0
#: Least width of a bar in pixels, and in per cent of a drawing of the usual width.
_LEAST: Final = 5
_LEAST_SHARE: Final = 0.6
MOST_LANES: Final = 40
_STEPS: Final = (
    *(SECOND, 5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR),
    *(6 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY),
)
#: Statuses, the worst first: it is the style of a group.
_RANK: Final = ("failed", "lost", "running", "cancelled", "completed")

Span = Mapping[str, Any]


def lanes_of(spans: Sequence[Span]) -> list[str]:
    """Agents whose runs are drawn, the busiest first."""
    return [
        agent for agent, _ in Counter(span["agent_id"] for span in spans).most_common(MOST_LANES)
    ]


@dataclass(frozen=True)
class Timeline:
    spans: Sequence[Span]
    names: Mapping[str, str]
    since: Micros
    until: Micros
    now: Micros
    #: Address of a part of the timeline.
    zoom: Callable[[Micros, Micros], str]

    def draw(self) -> Markup:
        """Draw each run as a bar with a link; overlapping runs are one bar, with a link to a
        zoom."""
        lanes = lanes_of(self.spans)
        height = _HEAD + _ROW * len(lanes)
        label = f"{plural(len(self.spans), 'run')} of {plural(len(lanes), 'agent')} over time"
        out = [
            Markup('<svg width="100%" height="{}" role="group" aria-label="{}">').format(
                height, label
            ),
            *self._ticks(height),
        ]
        for place, agent in enumerate(lanes):
            top = _HEAD + place * _ROW
            out.append(
                Markup('<rect class="grid" y="{}" width="100%" height="1"/>').format(top + _ROW - 1)
            )
            out += [self._bar(group, top) for group in self._groups(agent)]
        return Markup("").join([*out, Markup("</svg>")])

    def _at(self, moment: Micros) -> float:
        share = (moment - self.since) / max(1, self.until - self.since)
        return _END * min(1.0, max(0.0, share))

    def _ticks(self, height: int) -> list[Markup]:
        length = self.until - self.since
        step = next((duration for duration in _STEPS if length / duration <= 10), _STEPS[-1])
        ticks = []
        for moment in range(self.since - self.since % step + step, self.until, step):
            text = to_iso(moment)
            shown = text[5:10] if step >= DAY else text[11:19] if step < MINUTE else text[11:16]
            where = self._at(moment)
            gap, anchor = (-3, "end") if where > _LAST_WORD else (3, "start")
            ticks.append(
                Markup(
                    '<rect class="grid" x="{:.2f}%" y="{}" width="1" height="{}"/>'
                    '<text x="{:.2f}%" y="14" dx="{}" text-anchor="{}">{}</text>'
                ).format(where, _HEAD - 4, height - _HEAD + 4, where, gap, anchor, shown)
            )
        return ticks

    def _groups(self, agent: str) -> list[list[Span]]:
        """Group the runs of one lane that overlap in the drawing."""
        groups: list[list[Span]] = []
        end = -1.0
        own = [span for span in self.spans if span["agent_id"] == agent]
        for run in sorted(own, key=lambda span: span["started_at"]):
            left, right = self._at(run["started_at"]), self._at(run["ended_at"] or self.now)
            if groups and left < end:
                groups[-1].append(run)
            else:
                groups.append([run])
            end = max(end, right, left + _LEAST_SHARE)
        return groups

    def _bar(self, group: list[Span], top: int) -> Markup:
        first, last = group[0]["started_at"], max(run["ended_at"] or self.now for run in group)
        worst = min((run["status"] for run in group), key=_RANK.index)
        cost = cost_text.cost(cost_text.total(group))
        tooltip = f"{self.names[group[0]['agent_id']]}, {to_iso(first)[:19].replace('T', ' ')}, "
        if len(group) == 1:
            address = f"/runs/{group[0]['id']}"
            tooltip += f"{worst}, {lasting((last - first) / SECOND)}, {cost}"
        else:
            address = self.zoom(first, last)
            bad = sum(run["status"] in ("failed", "lost") for run in group)
            tooltip += f"{len(group)} runs, {bad} failed, {cost}"
        left, share = self._at(first), self._at(last) - self._at(first)
        width = f"{share:.2f}%" if share > _LEAST_SHARE else _LEAST
        return Markup(
            '<a href="{}"><title>{}</title>'
            '<rect class="run {}" x="{:.2f}%" y="{}" width="{}" height="16" rx="2"/></a>'
        ).format(address, tooltip, worst, left, top + 4, width)
