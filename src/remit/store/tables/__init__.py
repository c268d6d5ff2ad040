"""The tables, with every guarantee that the database itself can enforce.

Ids are text, times whole microseconds, JSON is text: the same bytes on SQLite and PostgreSQL.
Foreign keys include the company, so that no row can refer to another company.

Each table is defined in the module of its noun, and imported from here.
"""

from remit.store.tables.accounts import *  # noqa: F403
from remit.store.tables.base import metadata as metadata
from remit.store.tables.budgets import *  # noqa: F403
from remit.store.tables.changes import *  # noqa: F403
from remit.store.tables.channels import *  # noqa: F403
from remit.store.tables.chat import *  # noqa: F403
from remit.store.tables.connections import *  # noqa: F403
from remit.store.tables.content import *  # noqa: F403
from remit.store.tables.governance import *  # noqa: F403
from remit.store.tables.halts import *  # noqa: F403
from remit.store.tables.history import *  # noqa: F403
from remit.store.tables.jobs import *  # noqa: F403
from remit.store.tables.limits import *  # noqa: F403
from remit.store.tables.mail import *  # noqa: F403
from remit.store.tables.organisation import *  # noqa: F403
from remit.store.tables.people import *  # noqa: F403
from remit.store.tables.runtime import *  # noqa: F403
from remit.store.tables.waits import *  # noqa: F403
from remit.store.tables.wishes import *  # noqa: F403
