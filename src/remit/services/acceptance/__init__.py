"""Things from outside: what they would run, reach and be lent, and their acceptance by a person."""
