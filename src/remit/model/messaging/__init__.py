"""Mail, questions, schedules, notices, channels and chats."""
