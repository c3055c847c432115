#include "store/key.h"

bool key_open(struct key_table *table, struct database *db, struct err *e) {
    *table = (struct key_table){.db = db};
    return database_prepare(db,
                            "INSERT INTO keyed VALUES(?, ?, ?, ?, ?, ?)"
                            " ON CONFLICT DO UPDATE SET run = excluded.run,"
                            " started_ms = excluded.started_ms, print = excluded.print",
                            &table->put, e) &&
           database_prepare(db,
                            "SELECT run, started_ms, print FROM keyed"
                            " WHERE workspace = ? AND user = ? AND key = ?",
                            &table->find, e);
}

void key_close(struct key_table *table) {
    sqlite3_finalize(table->put);
    sqlite3_finalize(table->find);
}

static void bind_names(sqlite3_stmt *statement, const struct key_entry *entry) {
    database_bind(statement, 1, entry->workspace);
    database_bind(statement, 2, entry->user);
    database_bind(statement, 3, entry->key);
}

bool key_write(struct key_table *table, const struct key_entry *entry, struct err *e) {
    bind_names(table->put, entry);
    sqlite3_bind_int64(table->put, 4, (int64_t)entry->means.run);
    sqlite3_bind_int64(table->put, 5, entry->means.started_ms);
    database_bind(table->put, 6, entry->means.print);
    return database_do(table->db, table->put, e);
}

bool key_find(struct key_table *table, struct key_entry *entry, struct arena *arena,
              struct err *e) {
    bool found, ok;
    entry->means = (struct store_key){.print = STR_EMPTY};
    bind_names(table->find, entry);
    ok = database_row(table->db, table->find, &found, e);
    if (ok && found) {
        entry->means.run = (uint64_t)sqlite3_column_int64(table->find, 0);
        entry->means.started_ms = sqlite3_column_int64(table->find, 1);
        ok = arena_str(arena, database_bytes(table->find, 2), &entry->means.print) ||
             err_set(e, ERR_RESOURCE_EXHAUSTED, "store: a fingerprint has no room");
    }
    sqlite3_reset(table->find);
    return ok;
}
