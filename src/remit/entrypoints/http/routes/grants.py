"""A capability in the bodies of other requests; the routes of grants are declared."""

from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.fields import Body, Reference


class Wish(Body):
    """A capability to give to an agent."""

    resource: Reference
    level: field_types.Access
    mode: field_types.Mode | None = None
    scope: Reference | None = None
    expires_at: field_types.Moment | None = None
