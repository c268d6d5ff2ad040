"""Actions and places that are reached from any page: for search, keys and their help."""

from typing import Final

#: Words, address, icon, whether only the board may, and the key after `g`.
ACTIONS: Final = (
    ("Go to Inbox", "/", "inbox", False, "i"),
    ("Go to Outcomes", "/outcomes", "outcome", False, "o"),
    ("Go to Organisation", "/org", "org", False, "a"),
    ("Go to Runs", "/runs", "run", False, "r"),
    ("Go to Mail", "/inbox", "mail", False, "m"),
    ("Go to Files", "/files", "file", False, "f"),
    ("Go to Changes", "/changes", "repo", False, "c"),
    ("Go to Approvals", "/approvals", "approval", False, "p"),
    ("Go to Record", "/events", "record", False, "e"),
    ("Go to Settings", "/companies/{company}/settings", "settings", False, "s"),
    ("Go to Account", "/account", "person", False, "u"),
    ("Go to Set-up", "/setup", "tool", False, "t"),
    ("Go to Design", "/design", "edit", False, ""),
    ("Hire agent", "/hire", "plus", True, "h"),
    ("New outcome", "/outcomes#new", "plus", True, ""),
    ("New file", "/files#new", "plus", True, ""),
    ("Write mail", "/inbox#new", "mail", True, ""),
    ("Move agent", "/org", "org", True, ""),
    ("Tell the company what you want", "/#tell", "outcome", True, ""),
    ("Raise limits", "/companies/{company}/settings#limits", "clock", True, ""),
    ("Add person", "/companies/{company}/settings#people", "people", True, ""),
    ("Verify the audit log", "/events#verify", "record", False, ""),
)
#: Actions of the same form that are rare: found by their words, and not offered before.
RARE: Final = (
    ("Permission levels", "/companies/{company}/levels", "approval", False, ""),
    ("Accounts and set-ups", "/companies/{company}/settings#accounts", "plug", False, ""),
    ("Apply a file", "/apply", "edit", True, ""),
    ("Company as of a time", "/as-of", "clock", False, ""),
    ("Export the company", "/api/companies/{company}/export", "download", True, ""),
    ("Organisation chart", "/org?view=chart", "org", False, ""),
    ("Graph of outcomes", "/outcomes?view=graph", "outcome", False, ""),
    ("Timeline of runs", "/runs?view=timeline", "run", False, ""),
    ("Failed runs", "/runs?status=failed", "run", False, ""),
    ("Stopped agents", "/org?status=stopped", "agent", False, ""),
    ("Notifications and webhook", "/account", "bell", False, ""),
    ("Create token", "/account", "key", False, ""),
)
#: Actions on the instance, for its operators.
OPERATORS: Final = (
    ("New company", "/companies/new", "plus", False, ""),
    ("Import company", "/companies/new", "download", False, ""),
    ("Back up now", "/instance#backups", "download", False, ""),
    ("Doctor: check this machine", "/instance", "tool", False, ""),
)
