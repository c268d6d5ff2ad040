"""Errors that exist only over HTTP. The rest is in `remit.errors`."""

from remit.errors import BadInput, RemitError


class Malformed(BadInput):
    """Not even readable, so that there is no field to name."""

    code = "malformed"
    status = 400
    next_step = "Send valid JSON in UTF-8."


class UnknownType(BadInput):
    """A body in a coding that we do not take."""

    code = "unsupported_type"
    status = 415
    next_step = "Send JSON in UTF-8."


class CrossSite(RemitError):
    """A cookie came along with a request that another site may have made."""

    code = "csrf"
    status = 403
    next_step = "Use the pages of this instance, or an Authorization header."


class WrongHost(RemitError):
    """Asked under a name that is not ours, as a rebound DNS name would be."""

    code = "wrong_host"
    status = 421
    next_step = "Use the address that `remit status` shows, or set REMIT_URL to this one."


class NoSuchMethod(RemitError):
    code = "method_not_allowed"
    status = 405
    next_step = "See /openapi.json for what this address takes."
