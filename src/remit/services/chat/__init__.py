"""People who talk to agents from a chat: linked accounts, commands, buttons, inbound queue,
posts."""
