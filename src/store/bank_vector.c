#include "store/bank_vector.h"

#include "base/mem.h"
#include "store/bank_inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PRUNE_VECTORS "500" /* in one transaction */

/* Of these every place is a positive number. */
#define SPACES_MAX (INT64_C(1) << (62 - BANK_SPACE_SHIFT))

/* --- spaces ------------------------------------------------------------------------------- */

bool bank_space_new(struct database *db, int64_t *ret, struct err *e) {
    if (!database_run(db, "INSERT INTO bank_space(old) VALUES(0)", e) ||
        !database_number(db, "SELECT max(id) FROM bank_space", ret, e))
        return false;
    return *ret < SPACES_MAX ||
           err_set(
               e, ERR_RESOURCE_EXHAUSTED,
               "memory: this store has had as many banks with vectors as it can tell apart");
}

bool bank_space_end(struct database *db, int64_t space, struct err *e) {
    if (!space) return true;
    return database_run_with(db, "UPDATE bank_space SET old = 1 WHERE id = ?1",
                             VALUES(sql_number(space)), e);
}

static bool prune_vectors(struct database *db, int64_t space, bool *ret_any, struct err *e) {
    bool ok = database_run_with(db,
                                "DELETE FROM bank_vector WHERE place IN (SELECT place"
                                " FROM bank_vector WHERE place >= ?1 AND place < ?2"
                                " LIMIT " PRUNE_VECTORS ")",
                                VALUES(sql_number(bank_vector_place(space, 0)),
                                       sql_number(bank_vector_place(space + 1, 0))),
                                e);
    if (ok) *ret_any = database_changes(db) > 0;
    return ok;
}

bool bank_space_prune(struct database *db, bool *ret_any, struct err *e) {
    int64_t space = 0;
    bool some = false;
    if (!database_number(db, "SELECT id FROM bank_space WHERE old = 1 LIMIT 1", &space, e))
        return false;
    *ret_any = space != 0;
    if (!space) return true;
    if (!prune_vectors(db, space, &some, e)) return false;
    return some || database_run_with(db, "DELETE FROM bank_space WHERE id = ?1",
                                     VALUES(sql_number(space)), e);
}

/* --- which vectors are to be made ---------------------------------------------------------- */

struct bank_behind_ask {
    struct store_task task;
    struct arena *found; /* the answer's; each run of the task makes it again */
    int64_t after;
    struct bank_behind behind;
    bank_behind_fn *done; /* NULL: no caller waits */
    void *ctx;
};

static bool keep_found(struct bank_behind_ask *ask, struct prepared *row, int column,
                       struct str *ret, struct err *e) {
    return arena_str(ask->found, database_bytes(row, column), ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "memory: a bank's records are too large");
}

static bool find_behind(struct database *db, struct bank_behind_ask *ask, int64_t *ret_from,
                        struct err *e) {
    struct bank_behind *behind = &ask->behind;
    struct database_rows find =
        database_ask(db,
                     "SELECT id, space, dimension, embedded, newest, app, subject,"
                     " body FROM bank WHERE state = 0 AND dimension > 0"
                     " AND embedded < newest AND id > ?1 ORDER BY id LIMIT 1",
                     VALUES(sql_number(ask->after)), e);
    if (database_next(&find, e)) {
        *behind = (struct bank_behind){.bank = database_number_of(find.row, 0),
                                       .space = database_number_of(find.row, 1),
                                       .dimension = (size_t)database_number_of(find.row, 2),
                                       .upto = database_number_of(find.row, 4)};
        *ret_from = database_number_of(find.row, 3);
        find.ok = keep_found(ask, find.row, 5, &behind->owner.app, e) &&
                  keep_found(ask, find.row, 6, &behind->owner.subject, e) &&
                  keep_found(ask, find.row, 7, &behind->body, e);
    }
    return database_end(&find);
}

static bool read_behind(struct database *db, struct bank_behind_ask *ask, int64_t from,
                        struct err *e) {
    struct bank_behind *behind = &ask->behind;
    struct bank_behind_record *records =
        arena_alloc(ask->found, BANK_BEHIND_MAX * sizeof(*records));
    bool full = false;
    size_t bytes = 0;
    assert(records);
    behind->records = records;
    struct database_rows list = database_ask(
        db,
        "SELECT id, words FROM bank_record WHERE bank = ?1 AND id > ?2"
        " ORDER BY id LIMIT ?3",
        VALUES(sql_number(behind->bank), sql_number(from), sql_number(BANK_BEHIND_MAX)), e);
    while (!full && database_next(&list, e)) {
        struct bank_behind_record *record = &records[behind->count];
        bytes += database_bytes(list.row, 1).len;
        full = behind->count && bytes > BANK_BEHIND_MAX_BYTES;
        if (full) break;
        record->number = database_number_of(list.row, 0);
        list.ok = keep_found(ask, list.row, 1, &record->words, e);
        behind->count++;
    }
    if (list.ok && (full || behind->count == BANK_BEHIND_MAX))
        behind->upto = records[behind->count - 1].number;
    return database_end(&list);
}

static bool run_behind(struct database *db, void *ctx, struct err *e) {
    struct bank_behind_ask *ask = ctx;
    int64_t from = 0;
    arena_free(ask->found);
    ask->found = arena_new(BANK_BEHIND_MAX_BYTES + BANK_RECORD_MAX_BYTES + BANK_BODY_MAX_BYTES +
                           16 * KIB);
    ask->behind = (struct bank_behind){.bank = 0};
    return find_behind(db, ask, &from, e) &&
           (!ask->behind.bank || read_behind(db, ask, from, e));
}

static void on_behind(const struct err *failed, void *ctx) {
    struct bank_behind_ask *ask = ctx;
    if (ask->done) ask->done(&ask->behind, failed, ask->ctx);
    arena_free(ask->found);
    free(ask);
}

struct bank_behind_ask *bank_behind_start(struct store *store, struct loop *loop, int64_t after,
                                          bank_behind_fn *done, void *ctx) {
    struct bank_behind_ask *ask = MEM_NEW(struct bank_behind_ask);
    *ask = (struct bank_behind_ask){.after = after, .done = done, .ctx = ctx};
    ask->task = (struct store_task){.reads_only = true, .fn = run_behind, .on_done = on_behind};
    store_run(store, loop, &ask->task, ask);
    return ask;
}

void bank_behind_leave(struct bank_behind_ask *ask) {
    if (ask) ask->done = NULL;
}

/* --- vectors that were made ----------------------------------------------------------------- */

static bool is_still_its_space(struct database *db, const struct bank_ask *ask, bool *ret,
                               struct err *e) {
    return database_has(db, "SELECT id FROM bank WHERE id = ?1 AND space = ?2 AND state = 0",
                        VALUES(sql_number(ask->bank), sql_number(ask->space)), ret, e);
}

static bool put_vector(struct database *db, struct prepared *put, const struct bank_ask *ask,
                       const struct bank_vector *vector, struct err *e) {
    database_bind_number(put, 1, bank_vector_place(ask->space, vector->number));
    database_bind(put, 2, str_of(vector->values, ask->dimension * sizeof(float)));
    database_bind_number(put, 3, vector->number);
    database_bind_number(put, 4, ask->bank);
    return database_do(db, put, e);
}

static bool put_vectors(struct database *db, const struct bank_ask *ask, struct err *e) {
    struct prepared *put = NULL;
    bool ok = database_prepare(db,
                               "INSERT INTO bank_vector(place, bytes) SELECT ?1, ?2"
                               " WHERE EXISTS(SELECT 1 FROM bank_record WHERE id = ?3"
                               " AND bank = ?4) ON CONFLICT(place) DO NOTHING",
                               &put, e);
    for (size_t i = 0; ok && i < ask->count; i++) {
        if (ask->vectors[i].values) ok = put_vector(db, put, ask, &ask->vectors[i], e);
    }
    database_finalize(put);
    return ok;
}

static bool note_embedded(struct database *db, const struct bank_ask *ask, struct err *e) {
    return database_run_with(db,
                             "UPDATE bank SET embedded = ?1 WHERE id = ?2 AND embedded < ?1",
                             VALUES(sql_number(ask->upto), sql_number(ask->bank)), e);
}

static bool run_embedded(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    bool found = false;
    bank_answer_begin(ask, 0, 0);
    if (!is_still_its_space(db, ask, &found, e)) return false;
    return !found || (put_vectors(db, ask, e) && note_embedded(db, ask, e));
}

static void keep_vectors(struct bank_ask *ask, const struct bank_vector *vectors,
                         size_t count) {
    size_t bytes = ask->dimension * sizeof(float);
    ask->vectors = arena_alloc(ask->asked, (count + 1) * sizeof(*vectors));
    assert(ask->vectors);
    for (size_t i = 0; i < count; i++) {
        ask->vectors[i] = vectors[i];
        if (!vectors[i].values) continue;
        float *values = arena_alloc(ask->asked, bytes);
        assert(values);
        memcpy(values, vectors[i].values, bytes);
        ask->vectors[i].values = values;
    }
    ask->count = count;
}

struct bank_ask *bank_embedded_start(struct store *store, struct loop *loop,
                                     const struct bank_behind *behind,
                                     const struct bank_vector *vectors, size_t count,
                                     int64_t upto, bank_done_fn *done, void *ctx) {
    assert(count <= BANK_BEHIND_MAX && behind->dimension <= BANK_DIMENSION_MAX);
    const struct bank_where where = {.owner = behind->owner};
    size_t each = sizeof(*vectors) + behind->dimension * sizeof(float) + 32;
    struct bank_ask *ask = bank_ask_new(&where, (count + 1) * each, done, ctx, run_embedded);
    ask->bank = behind->bank;
    ask->space = behind->space;
    ask->dimension = behind->dimension;
    ask->upto = upto;
    keep_vectors(ask, vectors, count);
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- all vectors again -------------------------------------------------------------------------- */

static bool give_space(struct database *db, const struct bank_ask *ask,
                       const struct bank_sums *sums, struct err *e) {
    int64_t space = 0;
    if (!bank_space_new(db, &space, e)) return false;
    return database_run_with(db,
                             "UPDATE bank SET body = ?1, dimension = ?2, space = ?3,"
                             " embedded = 0 WHERE id = ?4",
                             VALUES(sql_bytes(ask->body), sql_number((int64_t)ask->dimension),
                                    sql_number(space), sql_number(sums->id)),
                             e);
}

/* Another bank of the same place, made meanwhile, is left as it is. */
static bool run_reindex(struct database *db, void *ctx, struct err *e) {
    struct bank_ask *ask = ctx;
    struct bank_sums sums;
    bool found = false;
    if (!bank_find(db, &ask->where, &sums, e) || !bank_read(db, ask, &found, e)) return false;
    if (!str_equal(ask->answer.items[0].name, ask->name)) return true;
    return bank_space_end(db, sums.space, e) && give_space(db, ask, &sums, e) &&
           bank_audit(db, ask, STR("bank.reindex"), (size_t)sums.records, e) &&
           bank_read(db, ask, &found, e);
}

struct bank_ask *bank_reindex_start(struct store *store, struct loop *loop,
                                    const struct bank_where *where, struct str name,
                                    struct str body, size_t dimension, bank_done_fn *done,
                                    void *ctx) {
    assert(body.len <= BANK_BODY_MAX_BYTES && dimension > 0 && dimension <= BANK_DIMENSION_MAX);
    struct bank_ask *ask = bank_ask_new(where, body.len, done, ctx, run_reindex);
    ask->name = bank_keep(ask, name);
    ask->body = bank_keep(ask, body);
    ask->dimension = dimension;
    store_run(store, loop, &ask->task, ask);
    return ask;
}
