"""Runs over time, a lane for each agent: drawn by the server, and each bar leads on."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros, to_iso
from remit.entrypoints.web.text.words import dollars, lasting
from remit.model.text import plural

_WIDTH, _LEFT, _RIGHT, _ROW, _HEAD = 1200, 136, 40, 24, 24
_LEAST: Final = 6.0
MOST_LANES: Final = 40
_STEPS: Final = (
    *(SECOND, 5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR),
    *(6 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY),
)
#: The worst of several decides how they look.
_RANK: Final = ("failed", "lost", "running", "cancelled", "completed")

Group = list[Mapping[str, Any]]


def draw(
    spans: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    since: Micros,
    until: Micros,
    now: Micros,
    zoom: Callable[[Micros, Micros], str],
) -> Markup:
    """Each run is a bar that leads to it; where several cover each other, to a closer look."""
    lanes = [
        agent for agent, _ in Counter(one["agent_id"] for one in spans).most_common(MOST_LANES)
    ]
    height = _HEAD + _ROW * len(lanes)
    label = f"{plural(len(spans), 'run')} of {plural(len(lanes), 'agent')} over time"
    out = [
        Markup(
            '<svg class="lanes" viewBox="0 0 {} {}" width="{}" height="{}" role="group"'
            ' aria-label="{}">'
        ).format(_WIDTH, height, _WIDTH, height, label)
    ]

    def at(moment: Micros) -> float:
        share = (moment - since) / max(1, until - since)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, share))

    out += _ticks(since, until, height, at)
    for place, agent in enumerate(lanes):
        top = _HEAD + place * _ROW
        out.append(
            Markup(
                '<a href="/agents/{}"><text class="who" x="0" y="{}">{}</text></a>'
                '<path class="grid" d="M0 {}H{}"/>'
            ).format(agent, top + 16, names[agent][:18], top + _ROW, _WIDTH)
        )
        own = [one for one in spans if one["agent_id"] == agent]
        out += [_bar(group, names[agent], top, at, now, zoom) for group in _groups(own, at, now)]
    return Markup("").join([*out, Markup("</svg>")])


def _ticks(
    since: Micros, until: Micros, height: int, at: Callable[[Micros], float]
) -> list[Markup]:
    step = next((one for one in _STEPS if (until - since) / one <= 10), _STEPS[-1])
    found = []
    for moment in range(since - since % step + step, until, step):
        text = to_iso(moment)
        shown = text[5:10] if step >= DAY else text[11:19] if step < MINUTE else text[11:16]
        found.append(
            Markup(
                '<path class="grid" d="M{:.1f} {}V{}"/><text x="{:.1f}" y="14">{}</text>'
            ).format(at(moment), _HEAD - 4, height, at(moment) + 3, shown)
        )
    return found


def _groups(
    own: Sequence[Mapping[str, Any]], at: Callable[[Micros], float], now: Micros
) -> list[Group]:
    """Runs of one lane that can be told apart, and those that cannot, together."""
    found: list[Group] = []
    end = -1.0
    for one in sorted(own, key=lambda one: one["started_at"]):
        left, right = at(one["started_at"]), at(one["ended_at"] or now)
        if found and left < end:
            found[-1].append(one)
        else:
            found.append([one])
        end = max(end, right, left + _LEAST)
    return found


def _bar(
    group: Group,
    name: str,
    top: int,
    at: Callable[[Micros], float],
    now: Micros,
    zoom: Callable[[Micros, Micros], str],
) -> Markup:
    first, last = group[0]["started_at"], max(one["ended_at"] or now for one in group)
    worst = min((one["status"] for one in group), key=_RANK.index)
    cost = dollars(sum(one["cost_usd"] for one in group))
    when = to_iso(first)[:19].replace("T", " ")
    if len(group) == 1:
        address = f"/runs/{group[0]['id']}"
        said = f"{name}, {when}, {worst}, {lasting((last - first) / SECOND)}, {cost}"
    else:
        address = zoom(first, last)
        bad = sum(one["status"] in ("failed", "lost") for one in group)
        said = f"{name}, {when}, {len(group)} runs, {bad} failed, {cost}"
    left = at(first)
    return Markup(
        '<a href="{}"><title>{}</title>'
        '<rect class="run {}" x="{:.1f}" y="{}" width="{:.1f}" height="16" rx="2"/></a>'
    ).format(address, said, worst, left, top + 4, max(_LEAST - 1, at(last) - left))
