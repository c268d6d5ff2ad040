"""Redaction of secrets, found by name or by shape: one set of rules for every way out.

`without_secrets` looks through a whole document, `text_without_secrets` through prose,
`error_without_secrets` through what an error says, and
`restore` puts back what a client could not see when it sends a document back. `Known` takes out
values that we know ourselves. The walk is in
`document`, what names say in `names`, what secrets look like in `shapes`, how they stand in
running text in `text`, and how in programs and what these print in `program_text`.
"""

from remit.services.redaction.document import (
    error_without_secrets,
    text_without_secrets,
    without_secrets,
)
from remit.services.redaction.known import Known
from remit.services.redaction.restoring import restore
from remit.services.redaction.shapes import REMOVED

__all__ = [
    "REMOVED",
    "Known",
    "error_without_secrets",
    "restore",
    "text_without_secrets",
    "without_secrets",
]
