"""What is true and what happened: tables, statements, migrations, events, blobs."""
