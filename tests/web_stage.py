"""What happens in a company while somebody looks at its pages."""

from __future__ import annotations

from tests.browsing import Office

#: What agents may try to have a page carry out.
HOSTILE = (
    "<script>window.hacked = 1</script> ![x](http://198.51.100.7/x.png) "
    "[y](javascript:alert(1)) </textarea></code><img src=x onerror=alert(1)> \u202eevil"
)


def refusals(office: Office) -> int:
    events = office.board.must("GET", office.path("activity?limit=200"))
    return sum(not event["allowed"] for event in events)
