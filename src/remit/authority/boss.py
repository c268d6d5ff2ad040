"""The say of an agent with the level `boss`: over others, most of what a board member may.

It is a say over those below it, or, where the board widened it, over everybody but itself and those
above it. It never reaches another agent with that level, nor what only people decide: who has which
level or permission, people and their accounts, keys and secrets, access to the whole machine, what
a person stopped or paused, and taking something out for good. So those actions are not in the list.
"""

from __future__ import annotations

from collections.abc import Sequence

from remit.ids import AgentId
from remit.model.permission import Reach

#: What a board member may do to somebody in their part, and such an agent, too.
GOVERNED = frozenset(
    {
        "agent.appoint",
        "agent.control",
        "agent.terminate",
        "approval.cancel",
        "approval.comment",
        "approval.decide",
        "approval.read",
        "binding.read",
        "config.change",
        "config.read",
        "file.audit",
        "file.read",
        "file.see",
        "file.write",
        "grant.give",
        "grant.read",
        "grant.revoke",
        "key.read",
        "message.read",
        "message.send",
        "org.change",
        "outcome.change",
        "outcome.create",
        "outcome.delegate",
        "outcome.finish",
        "outcome.read",
        "outcome.reclaim",
        "question.answer",
        "schedule.change",
        "thread.cancel",
    }
)
_ABOUT_REQUESTS = frozenset({"approval.decide", "approval.cancel"})


def governs(
    action: str,
    agent: str,
    place: Sequence[AgentId],
    *,
    reach: Reach,
    above: Sequence[AgentId],
    over_boss: bool,
    for_people: bool,
    by_person: bool,
    requester: AgentId | None,
) -> bool:
    """Whether the level gives this agent a say in the matter, which lies at `place` in the tree.

    `above` are the agent itself and its bosses; `over_boss` says that the matter is of another with
    that level, `for_people` that only people decide it, `by_person` that a person's pause ends.
    """
    if action not in GOVERNED or not place or over_boss or for_people or by_person:
        return False
    if action in _ABOUT_REQUESTS and requester is None:
        return False  # a person asked for it
    if place[0] in above or place[0] == agent:
        return False
    return reach is Reach.COMPANY or (reach is Reach.BELOW and agent in place[1:])
