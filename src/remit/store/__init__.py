"""Storage of state and history: tables, statements, migrations, events, blobs."""
