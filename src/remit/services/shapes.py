"""Types of views: `views` is checked against them, and the API's description is generated from
them.

Keys are as in `views`; entry points may spell them differently. Each type is defined in the
`shapes.py` of its folder, and imported here under one name.
"""

from remit.services.acceptance.shapes import *  # noqa: F403
from remit.services.changes.shapes import *  # noqa: F403
from remit.services.chat.shapes import *  # noqa: F403
from remit.services.connections.shapes import *  # noqa: F403
from remit.services.declared.shapes import *  # noqa: F403
from remit.services.execution.shapes import *  # noqa: F403
from remit.services.governance.shapes import *  # noqa: F403
from remit.services.knowledge.shapes import *  # noqa: F403
from remit.services.messaging.shapes import *  # noqa: F403
from remit.services.organisation.shapes import *  # noqa: F403
from remit.services.people.shapes import *  # noqa: F403
from remit.services.record.shapes import *  # noqa: F403
from remit.services.rights.shapes import *  # noqa: F403
from remit.services.screens.shapes import *  # noqa: F403
from remit.services.shape_basics import *  # noqa: F403
from remit.services.spending.shapes import *  # noqa: F403
from remit.services.work.shapes import *  # noqa: F403
