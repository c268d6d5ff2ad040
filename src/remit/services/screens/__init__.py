"""Read models for people: what pages show together. No rules here."""
