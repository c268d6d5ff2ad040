"""SQLite and PostgreSQL behind one interface, compiled statements, migrations."""
