"""Mail, questions, schedules and wishes."""
