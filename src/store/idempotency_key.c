#include "store/idempotency_key.h"

#include "store/varint.h"

#define REACHED_MAX_BYTES (64 * MIB) /* more than any event */

bool key_open(struct key_table *table, struct database *db, struct err *e) {
    *table = (struct key_table){.db = db};
    buf_init(&table->reached, REACHED_MAX_BYTES);
    return database_prepare(
               db,
               "INSERT INTO keyed VALUES(?, ?, ?, ?, ?, ?, ?)"
               " ON CONFLICT(workspace, user, key) DO UPDATE SET run = excluded.run,"
               " started_ms = excluded.started_ms, print = excluded.print,"
               " seq = excluded.seq",
               &table->put, e) &&
           database_prepare(db,
                            "SELECT run, started_ms, print, seq FROM keyed"
                            " WHERE workspace = ? AND user = ? AND key = ?",
                            &table->find, e) &&
           database_prepare(db,
                            "SELECT workspace, user, key, started_ms < ? FROM keyed"
                            " WHERE (workspace, user, key) > (?, ?, ?)"
                            " ORDER BY workspace, user, key LIMIT ?",
                            &table->walk, e) &&
           database_prepare(db,
                            "DELETE FROM keyed WHERE started_ms < ?"
                            " AND (workspace, user, key) > (?, ?, ?)"
                            " AND (workspace, user, key) <= (?, ?, ?)",
                            &table->prune, e);
}

void key_close(struct key_table *table) {
    database_finalize(table->put);
    database_finalize(table->find);
    database_finalize(table->walk);
    database_finalize(table->prune);
    buf_done(&table->reached);
}

static void bind_names(struct prepared *statement, const struct key_entry *entry) {
    database_bind(statement, 1, entry->workspace);
    database_bind(statement, 2, entry->user);
    database_bind(statement, 3, entry->key);
}

bool key_write(struct key_table *table, const struct key_entry *entry, struct err *e) {
    bind_names(table->put, entry);
    database_bind_number(table->put, 4, (int64_t)entry->means.run);
    database_bind_number(table->put, 5, entry->means.started_ms);
    database_bind(table->put, 6, entry->means.print);
    database_bind_number(table->put, 7, (int64_t)entry->means.seq);
    return database_do(table->db, table->put, e);
}

bool key_find(struct key_table *table, struct key_entry *entry, struct arena *arena,
              struct err *e) {
    bool found, ok;
    entry->means = (struct store_key){.print = STR_EMPTY};
    bind_names(table->find, entry);
    ok = database_row(table->db, table->find, &found, e);
    if (ok && found) {
        entry->means.run = (uint64_t)database_number_of(table->find, 0);
        entry->means.started_ms = database_number_of(table->find, 1);
        entry->means.seq = (uint64_t)database_number_of(table->find, 3);
        ok = arena_str(arena, database_bytes(table->find, 2), &entry->means.print) ||
             err_set(e, ERR_RESOURCE_EXHAUSTED, "store: a fingerprint has no room");
    }
    database_reset(table->find);
    return ok;
}

/* --- the item ------------------------------------------------------------------------------
 *
 *     seq varint, then user, key and print, each preceded by its length, a varint */

static bool append_number(struct buf *out, uint64_t number) {
    char room[VARINT_MAX_BYTES];
    return buf_append(out, str_of(room, varint_put(room, number)));
}

static bool append_text(struct buf *out, struct str text) {
    return append_number(out, text.len) && buf_append(out, text);
}

bool key_item_append(const struct key_item *item, struct buf *out) {
    return append_number(out, item->seq) && append_text(out, item->user) &&
           append_text(out, item->key) && append_text(out, item->print);
}

static bool read_text(struct str *rest, struct str *ret) {
    uint64_t len;
    if (!varint_take(rest, &len) || len > rest->len) return false;
    *ret = str_head(*rest, len);
    *rest = str_skip(*rest, len);
    return true;
}

bool key_item_read(struct str bytes, struct key_item *ret) {
    return varint_take(&bytes, &ret->seq) && read_text(&bytes, &ret->user) &&
           read_text(&bytes, &ret->key) && read_text(&bytes, &ret->print) && bytes.len == 0;
}

/* --- the walk ----------------------------------------------------------------------------- */

/* Copies, because the walk moves on. An empty text sorts before every entry. */
static void bind_reached(const struct key_table *table, struct prepared *statement, int place) {
    struct str all = buf_str(&table->reached);
    struct str rest = str_skip(all, table->reached_workspace_len);
    database_bind_copy(statement, place, str_head(all, table->reached_workspace_len));
    database_bind_copy(statement, place + 1, str_head(rest, table->reached_user_len));
    database_bind_copy(statement, place + 2, str_skip(rest, table->reached_user_len));
}

static void note_reached(struct key_table *table) {
    struct str workspace = database_bytes(table->walk, 0);
    struct str user = database_bytes(table->walk, 1);
    buf_clear(&table->reached);
    buf_append(&table->reached, workspace);
    buf_append(&table->reached, user);
    buf_append(&table->reached, database_bytes(table->walk, 2));
    table->reached_workspace_len = workspace.len;
    table->reached_user_len = user.len;
}

static void begin_again(struct key_table *table) {
    buf_clear(&table->reached);
    table->reached_workspace_len = table->reached_user_len = 0;
}

/* Walk over some more entries. */
static bool walk(struct key_table *table, int64_t before_ms, size_t *ret_seen, size_t *ret_old,
                 struct err *e) {
    size_t seen = 0, old = 0;
    bool row, ok;
    database_bind_number(table->walk, 1, before_ms);
    bind_reached(table, table->walk, 2);
    database_bind_number(table->walk, 5, KEY_WALK_ENTRIES);
    while ((ok = database_row(table->db, table->walk, &row, e)) && row) {
        if (database_number_of(table->walk, 3)) old++;
        note_reached(table);
        seen++;
    }
    database_reset(table->walk);
    *ret_seen = seen;
    *ret_old = old;
    return ok;
}

bool key_prune(struct key_table *table, int64_t before_ms, bool *ret_end, struct err *e) {
    size_t seen, old;
    bind_reached(table, table->prune, 2);
    bool ok = walk(table, before_ms, &seen, &old, e);
    if (ok && old) {
        database_bind_number(table->prune, 1, before_ms);
        bind_reached(table, table->prune, 5);
        ok = database_do(table->db, table->prune, e);
    }
    bool end = seen < KEY_WALK_ENTRIES;
    if (!ok || end) begin_again(table);
    if (ok) *ret_end = end;
    return ok;
}
