#include "store/event_log.h"

#include "base/mem.h"
#include "store/changes.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

#define ENTRY_OVERHEAD 64 /* what an event counts beside its texts */

static const struct {
    int64_t max_events, max_bytes;
} limits[EVENT_LOG_KINDS] = {
    [EVENT_LOG_MEMORY] = {EVENT_LOG_MEMORY_EVENTS, EVENT_LOG_MEMORY_BYTES},
    [EVENT_LOG_AGENT] = {EVENT_LOG_AGENT_EVENTS, EVENT_LOG_AGENT_BYTES},
};

/* --- a log -------------------------------------------------------------------------------- */

struct event_log {
    int64_t id; /* 0: there is none */
    int64_t first, last, dropped, bytes;
};

#define VALUES_OF_KEY(key)                                                                     \
    sql_number((key)->kind), sql_bytes((key)->owner.app), sql_bytes((key)->owner.subject),     \
        sql_bytes((key)->name)

static bool event_log_find(struct database *db, const struct event_log_key *key,
                           struct event_log *ret, struct err *e) {
    struct database_rows find =
        database_ask(db,
                     "SELECT id, last, dropped, bytes, first FROM event_log"
                     " WHERE kind = ? AND app = ? AND subject = ? AND name = ?",
                     VALUES(VALUES_OF_KEY(key)), e);
    *ret = (struct event_log){.id = 0};
    if (database_next(&find, e))
        *ret = (struct event_log){
            .id = database_number_of(find.row, 0),
            .last = database_number_of(find.row, 1),
            .dropped = database_number_of(find.row, 2),
            .bytes = database_number_of(find.row, 3),
            .first = database_number_of(find.row, 4),
        };
    return database_end(&find);
}

#define FLOOR "SELECT value FROM meta WHERE name = 'event_log'"

static bool event_log_make(struct database *db, const struct event_log_key *key,
                           struct event_log *ret, struct err *e) {
    int64_t floor = 0;
    if (!database_number(db, FLOOR, &floor, e) ||
        !database_run_with(db,
                           "INSERT INTO event_log(kind, app, subject, name, first, last,"
                           " dropped, bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?5, ?5, 0)",
                           VALUES(VALUES_OF_KEY(key), sql_number(floor)), e))
        return false;
    *ret = (struct event_log){.first = floor, .last = floor, .dropped = floor};
    return database_new_id(db, &ret->id, e);
}

/* --- appending ---------------------------------------------------------------------------- */

static bool put_entry(struct database *db, struct prepared *put, struct event_log *log,
                      const struct event_log_entry *entry, struct err *e) {
    assert(entry->label.len <= EVENT_LOG_LABEL_MAX_BYTES);
    int64_t size =
        (int64_t)(entry->label.len + entry->bytes.len + entry->body.len) + ENTRY_OVERHEAD;
    database_bind_number(put, 1, log->id);
    database_bind_number(put, 2, log->last + 1);
    database_bind_number(put, 3, entry->record);
    database_bind_number(put, 4, size);
    database_bind(put, 5, entry->label);
    database_bind(put, 6, entry->bytes);
    database_bind(put, 7, entry->body);
    if (!database_do(db, put, e)) return false;
    log->last++;
    log->bytes += size;
    return true;
}

static bool put_entries(struct database *db, struct event_log *log,
                        const struct event_log_entry *entries, size_t count, struct err *e) {
    struct prepared *put = NULL;
    bool ok = database_prepare(db,
                               "INSERT INTO event_log_entry(log, sequence, record, size, label,"
                               " bytes, body) VALUES(?, ?, ?, ?, ?, ?, ?)",
                               &put, e);
    for (size_t i = 0; ok && i < count; i++) ok = put_entry(db, put, log, &entries[i], e);
    database_finalize(put);
    return ok;
}

static bool event_log_is_over(const struct event_log *log, enum event_log_kind kind) {
    int64_t count = log->last - log->dropped;
    return count > 1 &&
           (count > limits[kind].max_events || log->bytes > limits[kind].max_bytes);
}

static bool drop_oldest(struct database *db, struct prepared *drop, struct event_log *log,
                        struct err *e) {
    bool row = false;
    database_bind_number(drop, 1, log->id);
    database_bind_number(drop, 2, log->dropped + 1);
    if (!database_row(db, drop, &row, e)) return false;
    if (row) log->bytes -= database_number_of(drop, 0);
    log->dropped++;
    return database_do(db, drop, e);
}

static bool trim(struct database *db, enum event_log_kind kind, struct event_log *log,
                 struct err *e) {
    struct prepared *drop = NULL;
    if (!event_log_is_over(log, kind)) return true;
    bool ok = database_prepare(
        db, "DELETE FROM event_log_entry WHERE log = ? AND sequence = ? RETURNING size", &drop,
        e);
    while (ok && event_log_is_over(log, kind)) ok = drop_oldest(db, drop, log, e);
    database_finalize(drop);
    return ok;
}

static bool event_log_note(struct database *db, const struct event_log *log, struct err *e) {
    return database_run_with(
        db, "UPDATE event_log SET last = ?, dropped = ?, bytes = ? WHERE id = ?",
        VALUES(sql_number(log->last), sql_number(log->dropped), sql_number(log->bytes),
               sql_number(log->id)),
        e);
}

bool event_log_append(struct database *db, const struct event_log_key *key,
                      const struct event_log_entry *entries, size_t count, struct err *e) {
    struct event_log log;
    db->changed |= CHANGE_EVENTS;
    return event_log_find(db, key, &log, e) && (log.id || event_log_make(db, key, &log, e)) &&
           put_entries(db, &log, entries, count, e) && trim(db, key->kind, &log, e) &&
           event_log_note(db, &log, e);
}

/* A log that is made again under the same name must go on above every number that it had. */
static bool raise_floor(struct database *db, int64_t last, struct err *e) {
    return database_run_with(db,
                             "INSERT INTO meta VALUES('event_log',"
                             " max(?1, coalesce((" FLOOR "), 0)))"
                             " ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                             VALUES(sql_number(last)), e);
}

bool event_log_delete(struct database *db, const struct event_log_key *key, struct err *e) {
    struct event_log log;
    return event_log_find(db, key, &log, e) && raise_floor(db, log.last, e) &&
           database_run_with(db, "DELETE FROM event_log_entry WHERE log = ?1",
                             VALUES(sql_number(log.id)), e) &&
           database_run_with(db, "DELETE FROM event_log WHERE id = ?1",
                             VALUES(sql_number(log.id)), e);
}

/* --- reading ------------------------------------------------------------------------------ */

struct event_log_ask {
    struct store_task task;
    struct buf asked; /* owns the key's texts */
    struct event_log_key key;
    uint64_t after;
    size_t max_bytes;
    struct arena *arena; /* of the page; each run of the task makes it again */
    struct event_log_page page;
    event_log_done_fn *done; /* NULL: cancelled */
    void *ctx;
};

static void event_log_on_done(const struct err *failed, void *ctx) {
    struct event_log_ask *ask = ctx;
    if (ask->done) ask->done(&ask->page, failed, ask->ctx);
    buf_done(&ask->asked);
    arena_free(ask->arena);
    free(ask);
}

void event_log_forget(struct event_log_ask *ask) {
    if (ask) ask->done = NULL;
}

/* What is returned of a record: nothing once its bank is deleted, though its row may still be
 * there for a while. */
static const char page_sql[] =
    "SELECT e.sequence, e.label, e.bytes,"
    " CASE WHEN e.record = 0 THEN e.body WHEN b.id IS NULL THEN x'' ELSE r.body END"
    " FROM event_log_entry AS e"
    " LEFT JOIN bank_record AS r ON r.id = e.record"
    " LEFT JOIN bank AS b ON b.id = r.bank AND b.state = 0"
    " WHERE e.log = ?1 AND e.sequence > ?2 ORDER BY e.sequence";

static bool keep_event(struct event_log_ask *ask, struct prepared *row,
                       struct event_log_event *ret, struct err *e) {
    ret->sequence = (uint64_t)database_number_of(row, 0);
    return (arena_str(ask->arena, database_bytes(row, 1), &ret->label) &&
            arena_str(ask->arena, database_bytes(row, 2), &ret->bytes) &&
            arena_str(ask->arena, database_bytes(row, 3), &ret->body)) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "event log: a page is too large");
}

static size_t event_bytes(struct prepared *row) {
    return database_bytes(row, 1).len + database_bytes(row, 2).len + database_bytes(row, 3).len;
}

static bool read_events(struct database *db, struct event_log_ask *ask, int64_t log,
                        struct err *e) {
    struct event_log_page *page = &ask->page;
    struct event_log_event *events =
        arena_alloc(ask->arena, EVENT_LOG_PAGE_EVENTS * sizeof(*events));
    size_t used = 0;
    assert(events);
    page->events = events;
    struct database_rows rows =
        database_ask(db, page_sql, VALUES(sql_number(log), sql_number((int64_t)ask->after)), e);
    while (database_next(&rows, e)) {
        used += event_bytes(rows.row);
        page->more =
            page->count > 0 && (used > ask->max_bytes || page->count == EVENT_LOG_PAGE_EVENTS);
        if (page->more) break;
        rows.ok = keep_event(ask, rows.row, &events[page->count++], e);
    }
    return database_end(&rows);
}

static bool run_read(struct database *db, void *ctx, struct err *e) {
    struct event_log_ask *ask = ctx;
    struct event_log log;
    ask->page = (struct event_log_page){.count = 0};
    if (!event_log_find(db, &ask->key, &log, e)) return false;
    ask->page.first = (uint64_t)log.first;
    ask->page.last = (uint64_t)log.last;
    ask->page.dropped = (uint64_t)log.dropped;
    if (ask->after >= ask->page.last) return true;
    arena_free(ask->arena);
    ask->arena = arena_new(ask->max_bytes + EVENT_LOG_BYTES_MAX + EVENT_LOG_LABEL_MAX_BYTES +
                           EVENT_LOG_PAGE_EVENTS * (sizeof(struct event_log_event) + 192));
    return read_events(db, ask, log.id, e);
}

struct event_log_ask *event_log_read_start(struct store *store, struct loop *loop,
                                           const struct event_log_key *key, uint64_t after,
                                           size_t max_bytes, event_log_done_fn *done,
                                           void *ctx) {
    struct event_log_ask *ask = MEM_NEW(struct event_log_ask);
    ask->task =
        (struct store_task){.reads_only = true, .fn = run_read, .on_done = event_log_on_done};
    ask->key = *key;
    struct str *const texts[] = {&ask->key.owner.app, &ask->key.owner.subject, &ask->key.name};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
    ask->after = after;
    ask->max_bytes = max_bytes;
    ask->done = done;
    ask->ctx = ctx;
    store_run(store, loop, &ask->task, ask);
    return ask;
}
