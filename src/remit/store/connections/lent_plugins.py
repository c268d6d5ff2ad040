"""Statements about plugins that agents are lent."""

from __future__ import annotations

from sqlalchemy import bindparam as bind

from remit.model.connections.lent_plugin import LentPlugin
from remit.store.engine.statement import Rows
from remit.store.tables import lent_plugins

_PLUGINS = Rows(LentPlugin)
_there = lent_plugins.c.removed_at.is_(None)
_taken_back = {"contents": "", "removed_at": bind("now")}

#: The plugins that an agent is lent.
OF_AGENT = _PLUGINS.find(_there, company_id="company", agent_id="agent")
#: Takes one plugin back from an agent; its copy goes.
TAKE_BACK = _PLUGINS.update(lent_plugins.c.id == bind("plugin"), _there, **_taken_back)
#: Takes all plugins back from an agent.
TAKE_BACK_ALL = _PLUGINS.update(lent_plugins.c.agent_id == bind("agent"), _there, **_taken_back)
