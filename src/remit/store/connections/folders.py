"""Statements about folders that runs are shown."""

from __future__ import annotations

from sqlalchemy import bindparam as bind
from sqlalchemy import or_

from remit.model.connections.folder import Folder
from remit.store.engine.statement import Rows, new
from remit.store.tables import folders

_FOLDERS = Rows(Folder)
_there = folders.c.removed_at.is_(None)

#: A folder by its id, in whichever company.
FOLDER_ANYWHERE = _FOLDERS.one(id="folder")
#: A page of the company's folders, by id.
FOLDERS = _FOLDERS.after(_there, company_id="company")
#: The folders of all companies that are paths of a machine and not copies of a repository.
PLACES = _FOLDERS.find(_there, folders.c.path.is_not(None))
#: The folders that an agent's runs see.
FOLDERS_OF = _FOLDERS.find(
    _there,
    or_(folders.c.agent_id == bind("agent"), folders.c.agent_id.is_(None)),
    company_id="company",
)
#: The folder in which an agent's runs work.
WORK_FOLDER = _FOLDERS.one(_there, folders.c.kind == "work", agent_id="agent")
#: Sets the quota of a folder, and whether its instructions are read.
CHANGE = _FOLDERS.update(
    folders.c.id == bind("folder"), _there, **new("most_megabytes", "instructions")
)
#: Marks a folder as removed.
REMOVE_FOLDER = _FOLDERS.mark_removed(id="folder")
#: Marks all folders that belong to one agent as removed.
REMOVE_FOLDERS_OF_AGENT = _FOLDERS.mark_removed(agent_id="agent")
#: Marks all folders that are copies of a repository as removed.
REMOVE_FOLDERS_OF_REPO = _FOLDERS.mark_removed(repo_id="repo")
