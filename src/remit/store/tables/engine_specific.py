"""DDL that SQLAlchemy cannot express and that differs between the engines: the full-text index of
files, and the triggers that keep events append-only."""

#: DDL by the name of the dialect, to be run after the tables are created.
STATEMENTS = {
    "sqlite": (
        "CREATE VIRTUAL TABLE file_search USING fts5(file_id UNINDEXED, words)",
        *(
            f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events"
            " BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
            for verb in ("UPDATE", "DELETE")
        ),
    ),
    "postgresql": (
        (
            'CREATE TABLE file_search (file_id varchar(36) COLLATE "C" PRIMARY KEY'
            " REFERENCES files (id), words tsvector NOT NULL)"
        ),
        "CREATE INDEX ix_file_search_words ON file_search USING gin (words)",
        (
            "CREATE FUNCTION events_append_only() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'events are append-only'; END $$"
        ),
        (
            "CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events"
            " FOR EACH STATEMENT EXECUTE FUNCTION events_append_only()"
        ),
    ),
}
