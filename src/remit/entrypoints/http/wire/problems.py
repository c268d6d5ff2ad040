"""Errors that exist only over HTTP. The rest is in `remit.errors`."""

from remit.errors import BadInput, RemitError


class Malformed(BadInput):
    """Unreadable request, of which no field can be named."""

    code = "malformed"
    status = 400
    next_step = "Send valid JSON in UTF-8."


class UnknownType(BadInput):
    """Body in an encoding that is not accepted."""

    code = "unsupported_type"
    status = 415
    next_step = "Send JSON in UTF-8."


class CrossSite(RemitError):
    """Request with a cookie that another site may have caused."""

    code = "csrf"
    status = 403
    next_step = "Use the pages of this instance, or an Authorization header."


class WrongHost(RemitError):
    """Request to a host name that is not the instance's, as by DNS rebinding."""

    code = "wrong_host"
    status = 421
    next_step = "Use the address that `remit status` shows, or add this one to REMIT_URL."


class NoSuchMethod(RemitError):
    code = "method_not_allowed"
    status = 405
    next_step = "See /openapi.json for what this address takes."
