"""Read models for people: the joined data of a page. No rules here."""
