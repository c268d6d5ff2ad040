"""Values, events and settings as text and form fields."""
