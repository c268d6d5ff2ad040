"""Redaction of secrets, found by name or by shape: one set of rules for every way out.

`without_secrets` redacts a whole document, `text_without_secrets` prose, `error_without_secrets` an
error, and `restore` puts the values back when a client returns a redacted document. `Known` redacts
values that are known. The judgement of names and the shapes of secrets are in `rules`, the walk
through documents in `document`, secrets in running text in `text`, and those in programs and their
output in `program_text`.
"""

from remit.services.redaction.document import (
    error_without_secrets,
    text_without_secrets,
    without_secrets,
)
from remit.services.redaction.known import Known
from remit.services.redaction.restoring import restore
from remit.services.redaction.rules import REMOVED

__all__ = [
    "REMOVED",
    "Known",
    "error_without_secrets",
    "restore",
    "text_without_secrets",
    "without_secrets",
]
