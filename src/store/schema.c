#include "store/schema.h"

#include <inttypes.h>
#include <stdio.h>

/* Never change a step after its release: there are databases that have run it. */
static const char *const steps[] = {
    /* 1: the log, which is authoritative. */
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('schema', 0), ('epoch', 0);"
    "CREATE TABLE log("
    " id INTEGER PRIMARY KEY,"
    " run INTEGER NOT NULL," /* 0: shared by several */
    " sum INTEGER NOT NULL," /* row_sum() */
    " bytes BLOB NOT NULL);",

    /* 2: the tables filled from the log. Text columns are BLOBs, so that their bytes are not
     * converted. */
    "INSERT INTO meta VALUES('projected', 0);"
    "CREATE TABLE session("
    " id INTEGER PRIMARY KEY,"
    " workspace BLOB NOT NULL,"
    " user BLOB NOT NULL,"
    " name BLOB NOT NULL,"
    " newest_run INTEGER NOT NULL,"
    " UNIQUE(workspace, user, name));"
    "CREATE TABLE run("
    " id INTEGER PRIMARY KEY,"
    " session INTEGER,"        /* NULL: its first row was not seen */
    " previous INTEGER,"       /* the run before it in its session */
    " parent INTEGER,"         /* the run that lent its session */
    " state INTEGER NOT NULL," /* 0 while it runs, then the kind of its terminal event */
    " contract BLOB,"
    " started_ms INTEGER," /* Unix time */
    " ended_ms INTEGER,"
    " first_log INTEGER NOT NULL,"
    " last_log INTEGER NOT NULL,"
    " last_seq INTEGER NOT NULL,"
    " places BLOB NOT NULL);" /* the rows that hold it; see run.h */
    "CREATE INDEX run_unfinished ON run(id) WHERE state = 0;"
    "CREATE TABLE usage("
    " workspace BLOB NOT NULL, agent BLOB NOT NULL, model BLOB NOT NULL,"
    " day INTEGER NOT NULL," /* days since 1970, UTC */
    " calls INTEGER NOT NULL,"
    " prompt INTEGER NOT NULL, completion INTEGER NOT NULL, total INTEGER NOT NULL,"
    " tool_use INTEGER NOT NULL, thoughts INTEGER NOT NULL, cached INTEGER NOT NULL,"
    " prompt_unknown INTEGER NOT NULL, completion_unknown INTEGER NOT NULL,"
    " total_unknown INTEGER NOT NULL, tool_use_unknown INTEGER NOT NULL,"
    " thoughts_unknown INTEGER NOT NULL, cached_unknown INTEGER NOT NULL,"
    " PRIMARY KEY(workspace, agent, model, day)) WITHOUT ROWID;",

    /* 3: rows may be shortened (shorten.h). Programs that know only version 2 cannot read
     * them. */
    "",

    /* 4: memories, and a full-text index of them; see memory.h. `place` is the workspace as one
     * word, so that a search reads only its own entries. Triggers cannot keep the two in step:
     * with an untrusted schema they may not use such a table. */
    "CREATE TABLE memory("
    " id INTEGER PRIMARY KEY,"
    " workspace BLOB NOT NULL,"
    " category BLOB NOT NULL,"
    " key BLOB NOT NULL,"
    " content BLOB NOT NULL,"
    " created_ms INTEGER NOT NULL," /* Unix time */
    " updated_ms INTEGER NOT NULL,"
    " UNIQUE(workspace, key, category));"
    "CREATE INDEX memory_newest ON memory(workspace, updated_ms DESC, key, category);"
    "CREATE INDEX memory_newest_in ON memory(workspace, category, updated_ms DESC, key);"
    "CREATE VIRTUAL TABLE memory_words USING fts5(place, key, content, content = '',"
    " tokenize = 'unicode61 remove_diacritics 2');",

    /* 5: artifacts. The bytes are the last column, so that the others can be read without
     * them. */
    "CREATE TABLE artifact("
    " id INTEGER PRIMARY KEY AUTOINCREMENT," /* ids are never reused */
    " workspace BLOB NOT NULL,"
    " run INTEGER NOT NULL,"
    " name BLOB NOT NULL,"
    " content_type BLOB NOT NULL,"
    " created_ms INTEGER NOT NULL," /* Unix time */
    " bytes BLOB NOT NULL);",

    /* 6: the cost of model calls. The log has it already, so the tables are filled again. */
    "ALTER TABLE usage ADD COLUMN cost_nano INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE usage ADD COLUMN cost_unknown INTEGER NOT NULL DEFAULT 0;"
    "DELETE FROM session; DELETE FROM run; DELETE FROM usage;"
    "UPDATE meta SET value = 0 WHERE name = 'projected';",

    /* 7: the run that an idempotency key stands for. Earlier runs have no keys, so nothing is
     * filled again. */
    "CREATE TABLE keyed("
    " workspace BLOB NOT NULL, user BLOB NOT NULL, key BLOB NOT NULL,"
    " run INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL," /* Unix time */
    " print BLOB NOT NULL,"         /* the fingerprint of the request */
    " PRIMARY KEY(workspace, user, key)) WITHOUT ROWID;",

    /* 8: uploads, in pieces; see upload.h. */
    "CREATE TABLE upload("
    " id INTEGER PRIMARY KEY AUTOINCREMENT," /* rises with time */
    " name BLOB NOT NULL UNIQUE,"            /* the id that callers use */
    " app BLOB NOT NULL, subject BLOB NOT NULL,"
    " content_type BLOB NOT NULL, title BLOB NOT NULL,"
    " state INTEGER NOT NULL," /* 0 coming, 1 whole, 2 over */
    " epoch INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL," /* Unix time */
    " size INTEGER NOT NULL,"
    " sum BLOB NOT NULL);"
    "CREATE TABLE upload_piece("
    " id INTEGER PRIMARY KEY,"
    " upload INTEGER NOT NULL,"
    " place INTEGER NOT NULL," /* offset of its first byte */
    " bytes BLOB NOT NULL);"
    "CREATE UNIQUE INDEX upload_pieces ON upload_piece(upload, place);",

    /* 9: times of memories in microseconds, so that no two in a workspace are equal. */
    "ALTER TABLE memory RENAME COLUMN created_ms TO created_us;"
    "ALTER TABLE memory RENAME COLUMN updated_ms TO updated_us;"
    "UPDATE memory SET created_us = created_us * 1000, updated_us = updated_us * 1000;",

    /* 10: the token that fetches an artifact without its workspace; see artifact.h. */
    "CREATE TABLE artifact_token("
    " token BLOB PRIMARY KEY,"
    " artifact INTEGER NOT NULL UNIQUE) WITHOUT ROWID;",

    /* 11: a key may stand for a human's answer to a waiting run. */
    "ALTER TABLE keyed ADD COLUMN seq INTEGER NOT NULL DEFAULT 0;", /* of the question */

    /* 12: the usual cost of calls; see costs.h. */
    "CREATE TABLE usual("
    " agent BLOB NOT NULL, model BLOB NOT NULL,"
    " samples BLOB NOT NULL,"
    " PRIMARY KEY(agent, model)) WITHOUT ROWID;",

    /* 13: estimates for uncounted calls. Older rows of the log have none. */
    "ALTER TABLE usage ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;" /* calls */
    "ALTER TABLE usage ADD COLUMN estimate_tokens INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE usage ADD COLUMN estimate_cost_nano INTEGER NOT NULL DEFAULT 0;",

    /* 14: rows may be packed (row.h). Programs that know only version 13 cannot read them. */
    "",

    /* 15: the audit log, a chain of blocks; see audit.h. */
    "CREATE TABLE audit("
    " first INTEGER PRIMARY KEY," /* the number of its first record */
    " count INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL," /* Unix time of its transaction */
    " upto INTEGER NOT NULL,"  /* bytes of all records so far */
    " previous BLOB NOT NULL," /* the hash of the block before it */
    " hash BLOB NOT NULL,"
    " bytes BLOB NOT NULL);"
    "INSERT INTO meta VALUES('audit', 0);", /* records that a start has seen */

    /* 16: small records of contracts; see kept.h. */
    "CREATE TABLE kept("
    " space INTEGER NOT NULL," /* enum kept_space */
    " key BLOB NOT NULL,"
    " bytes BLOB NOT NULL,"
    " PRIMARY KEY(space, key)) WITHOUT ROWID;",

    /* 17: logs of events (event_log.h), memory banks with their records and a full-text index of
     * those (bank.h), and the agents of apps (agents.h). A record's words stand in the table too,
     * because they are needed to take them out of the index. */
    "CREATE TABLE event_log("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " kind INTEGER NOT NULL, app BLOB NOT NULL, subject BLOB NOT NULL, name BLOB NOT NULL,"
    " first INTEGER NOT NULL," /* the sequence before the first event it ever had */
    " last INTEGER NOT NULL,"  /* the sequence of the newest event */
    " dropped INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL," /* the sum of the sizes */
    " UNIQUE(kind, app, subject, name));"
    "CREATE TABLE event_log_entry("
    " log INTEGER NOT NULL, sequence INTEGER NOT NULL,"
    " record INTEGER NOT NULL," /* of bank_record; 0: none */
    " size INTEGER NOT NULL,"
    " label BLOB NOT NULL, bytes BLOB NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY(log, sequence)) WITHOUT ROWID;"
    "CREATE TABLE bank("
    " id INTEGER PRIMARY KEY AUTOINCREMENT," /* ids are never reused */
    " app BLOB NOT NULL, subject BLOB NOT NULL,"
    " locator BLOB NOT NULL,"
    " name BLOB NOT NULL,"     /* the id that callers see; sorts by time */
    " state INTEGER NOT NULL," /* 0 there, 1 deleted: its records go next */
    " records INTEGER NOT NULL, words INTEGER NOT NULL, bytes INTEGER NOT NULL," /* sums */
    " body BLOB NOT NULL);"
    "CREATE UNIQUE INDEX bank_place ON bank(app, subject, locator) WHERE state = 0;"
    "CREATE INDEX bank_deleted ON bank(id) WHERE state = 1;"
    "CREATE TABLE bank_record("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " bank INTEGER NOT NULL,"
    " name BLOB NOT NULL,"
    " kind INTEGER NOT NULL, class INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL," /* Unix time of what it tells of */
    " word_count INTEGER NOT NULL,"
    " words BLOB NOT NULL,"
    " body BLOB NOT NULL);"
    "CREATE UNIQUE INDEX bank_record_name ON bank_record(bank, name);"
    "CREATE INDEX bank_record_newest ON bank_record(bank, at_us DESC, name);"
    "CREATE VIRTUAL TABLE bank_words USING fts5(place, words, content = '',"
    " tokenize = 'unicode61 remove_diacritics 2');"
    "CREATE TABLE agent("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " app BLOB NOT NULL, subject BLOB NOT NULL, name BLOB NOT NULL,"
    " status INTEGER NOT NULL, autonomous INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " made_us INTEGER NOT NULL," /* Unix time */
    " body BLOB NOT NULL,"
    " UNIQUE(app, subject, name));"
    "CREATE INDEX agent_newest ON agent(app, subject, made_us DESC, name);",

    /* 18: downloads of models; see download.h. */
    "CREATE TABLE download("
    " id INTEGER PRIMARY KEY,"
    " name BLOB NOT NULL UNIQUE," /* the id that callers use */
    " connector BLOB NOT NULL, model BLOB NOT NULL, owner BLOB NOT NULL,"
    " reason BLOB NOT NULL, message BLOB NOT NULL,"
    " state INTEGER NOT NULL," /* enum download_state */
    " received INTEGER NOT NULL, total INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL," /* Unix time */
    " retryable INTEGER NOT NULL);",

    /* 19: records of the audit log may refer to those before them (audit_record.h), and packed rows
     * have another checksum (row.h). Programs that know only version 18 cannot read them. The
     * table of usage has a mark of its own (project_usage.c). */
    "INSERT INTO meta SELECT 'usage', value FROM meta WHERE name = 'projected';",

    /* 20: vectors of memory banks; see bank_vector.h. */
    "CREATE TABLE bank_space("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " old INTEGER NOT NULL);" /* 1: of no bank any more, its vectors go next */
    "CREATE INDEX bank_space_old ON bank_space(id) WHERE old = 1;"
    "CREATE TABLE bank_vector("
    " place INTEGER PRIMARY KEY," /* of space and record, bank_vector_place() */
    " bytes BLOB NOT NULL);"
    "ALTER TABLE bank ADD COLUMN dimension INTEGER NOT NULL DEFAULT 0;" /* 0: no vectors */
    "ALTER TABLE bank ADD COLUMN space INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE bank ADD COLUMN newest INTEGER NOT NULL DEFAULT 0;"   /* record */
    "ALTER TABLE bank ADD COLUMN embedded INTEGER NOT NULL DEFAULT 0;" /* up to this record */
    "UPDATE bank SET newest ="
    " coalesce((SELECT max(r.id) FROM bank_record AS r WHERE r.bank = bank.id), 0);"
    "CREATE INDEX bank_behind ON bank(id)"
    " WHERE state = 0 AND dimension > 0 AND embedded < newest;",
};

const int64_t schema_newest = ARRAY_LEN(steps);

bool schema_version(struct database *db, int64_t *ret, struct err *e) {
    int64_t tables = 0, version = -1;
    if (!database_number(db, "SELECT count(*) FROM sqlite_schema", &tables, e)) return false;
    if (tables == 0) {
        *ret = 0;
        return true;
    }
    bool read =
        database_number(db, "SELECT value FROM meta WHERE name = 'schema'", &version, e);
    if (!read && e->code != ERR_INTERNAL) return false;
    if (!read || version < 1) /* no such table or row, or an invalid value */
        return err_set(e, ERR_DATA_LOSS,
                       "store %s: its version cannot be read; restore it from a backup, or "
                       "move its folder away to begin anew",
                       db->path);
    if (version > schema_newest)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "store %s: it was written by a newer weir (schema %" PRId64
                       ", this one knows %" PRId64 "); run the newer one",
                       db->path, version, schema_newest);
    *ret = version;
    return true;
}

static bool run_step(struct database *db, int64_t version, struct err *e) {
    char note[80], name[32];
    snprintf(note, sizeof(note), "UPDATE meta SET value = %" PRId64 " WHERE name = 'schema'",
             version);
    snprintf(name, sizeof(name), "schema %" PRId64, version);
    if (!database_run(db, "BEGIN IMMEDIATE", e)) return false;
    if (!database_run(db, steps[version - 1], e)) goto fail;
    database_reached(db, name);
    if (!database_run(db, note, e)) goto fail;
    if (!database_run(db, "COMMIT", e)) goto fail;
    database_reached(db, "schema committed");
    return true;

fail:
    database_rollback(db);
    return err_add(e, "bring the tables to version %" PRId64, version);
}

bool schema_migrate(struct database *db, int64_t version, struct err *e) {
    while (version < schema_newest) {
        if (!run_step(db, ++version, e)) return false;
    }
    return true;
}
