#include "store/run.h"

#include "store/varint.h"

/* --- entries ------------------------------------------------------------------------------ */

void run_entry_init(struct run_entry *entry, uint64_t id) {
    *entry = (struct run_entry){.id = id};
    buf_init(&entry->places, RUN_PLACES_MAX_BYTES);
}

void run_entry_done(struct run_entry *entry) {
    buf_done(&entry->places);
}

/* Mark the last of some places as a row that has something of the run besides shared text. */
static void last_place_is_own(char *places, size_t len) {
    size_t at = len;
    while (at && (at == len || places[at - 1] & 0x80)) at--;
    if (at < len) places[at] &= ~1;
}

static void append_place(struct run_entry *entry, uint64_t place) {
    char room[VARINT_MAX_BYTES];
    size_t len = varint_put(room, place);
    if (entry->places.len == 0 && len <= sizeof(entry->few) - entry->few_len) {
        memcpy(entry->few + entry->few_len, room, len);
        entry->few_len += len;
        return;
    }
    buf_append(&entry->places, str_of(entry->few, entry->few_len));
    buf_append(&entry->places, str_of(room, len));
    entry->few_len = 0;
}

void run_entry_add_place(struct run_entry *entry, int64_t row, bool shared) {
    if (row == entry->last_log) {
        if (shared) return;
        if (entry->few_len)
            last_place_is_own(entry->few, entry->few_len);
        else
            last_place_is_own(entry->places.at, entry->places.len);
        return;
    }
    int64_t before = entry->last_log;
    if (!entry->first_log) entry->first_log = row;
    entry->last_log = row;
    /* The same condition every time, so that the list never has a gap. */
    if (entry->places.len + VARINT_MAX_BYTES > RUN_PLACES_MAX_BYTES) return;
    append_place(entry, (uint64_t)(row - before) << 1 | shared);
}

bool run_chain_follows(struct run_chain *chain, const struct run_entry *entry) {
    chain->equal = entry->first_log == chain->before ? chain->equal + 1 : 0;
    bool follows = entry->first_log <= chain->before && chain->equal < RUN_CHAIN_MAX_EQUAL;
    chain->before = entry->first_log;
    return follows;
}

struct run_places run_entry_places(const struct run_entry *entry) {
    return (struct run_places){.rest = run_entry_places_bytes(entry)};
}

bool run_places_next(struct run_places *cursor) {
    uint64_t place;
    if (!varint_take(&cursor->rest, &place)) return false;
    cursor->row += (int64_t)(place >> 1);
    cursor->shared = place & 1;
    return true;
}

/* --- the table ---------------------------------------------------------------------------- */

#define INSERT                                                                                 \
    "INTO run(id, session, previous, parent, state, contract, started_ms, ended_ms,"           \
    " first_log, last_log, last_seq, places) VALUES"
#define VALUES_1 "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define VALUES_4 VALUES_1 "," VALUES_1 "," VALUES_1 "," VALUES_1
#define VALUES_16 VALUES_4 "," VALUES_4 "," VALUES_4 "," VALUES_4
#define INSERT_VALUES 12

/* The columns are in the table's order: SQLite then makes each row where it is inserted from.
 * OR IGNORE, because a statement that may fail halfway through several rows keeps copies of every
 * page that it changes. A server gets them one by one: there a row's cost is not the statement. */
static bool prepare_many(struct runs *runs, struct err *e) {
    return database_is_postgres(runs->db) ||
           database_prepare(runs->db, "INSERT OR IGNORE " INSERT VALUES_16, &runs->insert_many,
                            e);
}

bool run_open(struct runs *runs, struct database *db, struct err *e) {
    *runs = (struct runs){.db = db};
    return database_prepare(db,
                            "SELECT run.session, previous, parent, state, started_ms, ended_ms,"
                            " first_log, last_log, last_seq, places, contract, workspace"
                            " FROM run LEFT JOIN session ON session.id = run.session"
                            " WHERE run.id = ?",
                            &runs->find, e) &&
           database_prepare(db, "INSERT " INSERT VALUES_1 " ON CONFLICT(id) DO NOTHING",
                            &runs->insert, e) &&
           prepare_many(runs, e) &&
           database_prepare(db,
                            "UPDATE run SET session = ?, previous = ?, parent = ?, state = ?,"
                            " started_ms = ?, ended_ms = ?, first_log = ?, last_log = ?,"
                            " last_seq = ?, places = ? WHERE id = ?",
                            &runs->update, e);
}

void run_close(struct runs *runs) {
    database_finalize(runs->find);
    database_finalize(runs->insert);
    database_finalize(runs->insert_many);
    database_finalize(runs->update);
}

bool run_find(struct runs *runs, struct run_entry *ret, bool *ret_found, struct err *e) {
    struct prepared *find = runs->find;
    database_reset(find);
    database_bind_number(find, 1, (int64_t)ret->id);
    if (!database_row(runs->db, find, ret_found, e)) return false;
    if (!*ret_found) return true;
    ret->session = database_number_of(find, 0);
    ret->previous = (uint64_t)database_number_of(find, 1);
    ret->parent = (uint64_t)database_number_of(find, 2);
    ret->state = database_number_of(find, 3);
    ret->started_ms = database_number_of(find, 4);
    ret->ended_ms = database_number_of(find, 5);
    ret->first_log = database_number_of(find, 6);
    ret->last_log = database_number_of(find, 7);
    ret->last_seq = (uint64_t)database_number_of(find, 8);
    ret->few_len = 0;
    buf_clear(&ret->places);
    buf_append(&ret->places, database_bytes(find, 9));
    ret->contract = database_bytes(find, 10);
    ret->workspace = database_bytes(find, 11);
    return true;
}

void run_release(struct runs *runs) {
    database_reset(runs->find);
}

/* 0 is stored as NULL. */
static void bind_some(struct prepared *statement, int place, int64_t number) {
    if (number) {
        database_bind_number(statement, place, number);
    } else {
        database_bind_null(statement, place);
    }
}

static void bind_new(struct prepared *statement, int before, const struct run_entry *entry) {
    database_bind_number(statement, before + 1, (int64_t)entry->id);
    bind_some(statement, before + 2, entry->session);
    bind_some(statement, before + 3, (int64_t)entry->previous);
    bind_some(statement, before + 4, (int64_t)entry->parent);
    database_bind_number(statement, before + 5, entry->state);
    database_bind(statement, before + 6, entry->contract);
    bind_some(statement, before + 7, entry->started_ms);
    bind_some(statement, before + 8, entry->ended_ms);
    database_bind_number(statement, before + 9, entry->first_log);
    database_bind_number(statement, before + 10, entry->last_log);
    database_bind_number(statement, before + 11, (int64_t)entry->last_seq);
    database_bind(statement, before + 12, run_entry_places_bytes(entry));
}

/* As bind_new(), in the same order but for the contract, and the id is last. */
static void bind_changed(struct prepared *statement, const struct run_entry *entry) {
    bind_some(statement, 1, entry->session);
    bind_some(statement, 2, (int64_t)entry->previous);
    bind_some(statement, 3, (int64_t)entry->parent);
    database_bind_number(statement, 4, entry->state);
    bind_some(statement, 5, entry->started_ms);
    bind_some(statement, 6, entry->ended_ms);
    database_bind_number(statement, 7, entry->first_log);
    database_bind_number(statement, 8, entry->last_log);
    database_bind_number(statement, 9, (int64_t)entry->last_seq);
    database_bind(statement, 10, run_entry_places_bytes(entry));
    database_bind_number(statement, 11, (int64_t)entry->id);
}

bool run_insert(struct runs *runs, const struct run_entry *entry, bool *ret_new,
                struct err *e) {
    bind_new(runs->insert, 0, entry);
    if (!database_do(runs->db, runs->insert, e)) return false;
    *ret_new = database_changes(runs->db) == 1;
    return true;
}

bool run_insert_many(struct runs *runs, const struct run_entry *const *entries, bool *ret_new,
                     struct err *e) {
    for (int i = 0; i < RUN_MANY; i++)
        bind_new(runs->insert_many, i * INSERT_VALUES, entries[i]);
    if (!database_do(runs->db, runs->insert_many, e)) return false;
    *ret_new = database_changes(runs->db) == RUN_MANY;
    return true;
}

bool run_is(struct runs *runs, const struct run_entry *entry, bool *ret, struct err *e) {
    struct run_entry stored;
    bool found;
    run_entry_init(&stored, entry->id);
    bool ok = run_find(runs, &stored, &found, e);
    run_release(runs);
    if (ok) *ret = found && stored.first_log == entry->first_log;
    run_entry_done(&stored);
    return ok;
}

bool run_update(struct runs *runs, const struct run_entry *entry, struct err *e) {
    bind_changed(runs->update, entry);
    return database_do(runs->db, runs->update, e);
}
