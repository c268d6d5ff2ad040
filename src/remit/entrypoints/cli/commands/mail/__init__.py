"""Commands about mail, questions, schedules and channels."""
