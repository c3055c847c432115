#include "store/erase.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/doomed.h"
#include "store/kept.h"
#include "store/row.h"
#include "store/run.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ROW_MAX_BYTES (256 * MIB) /* more than any row written */

/* --- finding the runs --------------------------------------------------------------------- */

void erase_runs_done(struct erase_runs *runs) {
    free(runs->ids);
    *runs = (struct erase_runs){.session = 0};
}

static void add_run(struct erase_runs *runs, uint64_t id) {
    if (runs->count == runs->room) {
        runs->room = runs->room ? 2 * runs->room : 16;
        runs->ids = mem_resize(runs->ids, runs->room * sizeof(*runs->ids));
    }
    runs->ids[runs->count++] = id;
}

static bool find_session(struct database *db, struct str workspace, struct str user,
                         struct str session, int64_t *ret_id, uint64_t *ret_newest,
                         struct err *e) {
    struct database_rows find =
        database_ask(db,
                     "SELECT id, newest_run FROM session"
                     " WHERE workspace = ? AND user = ? AND name = ?",
                     VALUES(sql_bytes(workspace), sql_bytes(user), sql_bytes(session)), e);
    bool found = database_next(&find, e);
    if (found) {
        *ret_id = database_number_of(find.row, 0);
        *ret_newest = (uint64_t)database_number_of(find.row, 1);
    }
    return database_end(&find) &&
           (found || err_set(e, ERR_NOT_FOUND, "there is no such session"));
}

/* Collect the runs of a session; each one names the one before it. */
static bool follow_chain(struct database *db, uint64_t newest, struct erase_runs *ret,
                         struct err *e) {
    struct runs runs;
    struct run_entry entry;
    struct run_chain chain = run_chain();
    bool ok = run_open(&runs, db, e), found;
    run_entry_init(&entry, 0);
    for (; ok && newest; newest = entry.previous) {
        entry.id = newest;
        ok = run_find(&runs, &entry, &found, e);
        run_release(&runs);
        if (ok && (!found || !run_chain_follows(&chain, &entry)))
            ok = err_set(e, ERR_DATA_LOSS,
                         "store %s: its table of runs is damaged; restore the file from a "
                         "backup",
                         db->path);
        if (ok) add_run(ret, newest);
    }
    run_entry_done(&entry);
    run_close(&runs);
    return ok;
}

bool erase_find(struct database *db, struct str workspace, struct str user, struct str session,
                struct erase_runs *ret, struct err *e) {
    uint64_t newest = 0;
    if (!find_session(db, workspace, user, session, &ret->session, &newest, e)) return false;
    if (!follow_chain(db, newest, ret, e)) return false;
    for (size_t i = 0; i + i + 1 < ret->count; i++) {
        uint64_t other = ret->ids[ret->count - 1 - i];
        ret->ids[ret->count - 1 - i] = ret->ids[i];
        ret->ids[i] = other;
    }
    return true;
}

/* --- rows of the log ---------------------------------------------------------------------- */

struct eraser {
    struct database *db;
    struct rows rows;
    struct runs runs;
    struct prepared *rewrite, *remove, *remove_run;
    struct buf kept; /* sections of other runs in a row */
};

static bool eraser_open(struct eraser *eraser, struct database *db, struct err *e) {
    *eraser = (struct eraser){.db = db};
    buf_init(&eraser->kept, ROW_MAX_BYTES);
    return row_open(&eraser->rows, db, e) && run_open(&eraser->runs, db, e) &&
           database_prepare(db, "UPDATE log SET run = ?, sum = ?, bytes = ? WHERE id = ?",
                            &eraser->rewrite, e) &&
           database_prepare(db, "DELETE FROM log WHERE id = ?", &eraser->remove, e) &&
           database_prepare(db, "DELETE FROM run WHERE id = ?", &eraser->remove_run, e);
}

static void eraser_close(struct eraser *eraser) {
    database_finalize(eraser->rewrite);
    database_finalize(eraser->remove);
    database_finalize(eraser->remove_run);
    run_close(&eraser->runs);
    row_close(&eraser->rows);
    buf_done(&eraser->kept);
}

static bool remove_by_id(struct eraser *eraser, struct prepared *statement, int64_t id,
                         struct err *e) {
    database_bind_number(statement, 1, id);
    return database_do(eraser->db, statement, e);
}

/* Rewrite the row with only the `kept` sections. weir.mark counts up to the newest row, so that
 * row stays even if it is empty. */
static bool write_kept(struct eraser *eraser, int64_t id, uint64_t owner, struct err *e) {
    struct str kept = buf_str(&eraser->kept);
    if (kept.len == 0 && id != eraser->rows.newest)
        return remove_by_id(eraser, eraser->remove, id, e);
    if (kept.len == 0) owner = 0;
    database_bind_number(eraser->rewrite, 1, (int64_t)owner);
    database_bind_number(eraser->rewrite, 2, (int64_t)row_sum(owner, kept));
    database_bind(eraser->rewrite, 3, kept);
    database_bind_number(eraser->rewrite, 4, id);
    return database_do(eraser->db, eraser->rewrite, e);
}

/* Remove the run's sections from one row. */
static bool erase_from_row(struct eraser *eraser, int64_t id, uint64_t run, struct err *e) {
    uint64_t owner;
    bool changed;
    buf_clear(&eraser->kept);
    return row_without(&eraser->rows, id, run, &eraser->kept, &owner, &changed, e) &&
           (!changed || write_kept(eraser, id, owner, e));
}

/* Rows of the run that its list does not hold, because it is too long. They are collected
 * first, then changed. */
struct found_rows {
    int64_t *ids;
    size_t count;
};

static bool note_row(const struct row *row, void *ctx, struct err *e) {
    struct found_rows *found = ctx;
    (void)e;
    if ((found->count & (found->count - 1)) == 0)
        found->ids = mem_resize(found->ids, (2 * found->count + 1) * sizeof(*found->ids));
    if (found->count && found->ids[found->count - 1] == row->id) return true; /* same row */
    found->ids[found->count++] = row->id;
    return true;
}

static bool erase_unlisted(struct eraser *eraser, const struct run_entry *entry, int64_t listed,
                           struct err *e) {
    struct found_rows found = {.count = 0};
    bool ok = listed >= entry->last_log || row_each_of(&eraser->rows, entry->id, listed,
                                                       entry->last_log, note_row, &found, e);
    for (size_t i = 0; ok && i < found.count; i++) {
        ok = erase_from_row(eraser, found.ids[i], entry->id, e);
    }
    free(found.ids);
    return ok;
}

static bool erase_run(struct eraser *eraser, uint64_t id, struct err *e) {
    struct run_entry entry;
    bool found;
    run_entry_init(&entry, id);
    bool ok = run_find(&eraser->runs, &entry, &found, e);
    run_release(&eraser->runs);
    if (ok && entry.state == 0)
        ok = err_set(e, ERR_FAILED_PRECONDITION, "a turn of this session is not over");
    int64_t listed = entry.first_log - 1;
    struct run_places cursor = run_entry_places(&entry);
    while (ok && run_places_next(&cursor)) {
        listed = cursor.row;
        ok = erase_from_row(eraser, cursor.row, id, e);
    }
    ok = ok && erase_unlisted(eraser, &entry, listed, e) &&
         remove_by_id(eraser, eraser->remove_run, (int64_t)id, e);
    run_entry_done(&entry);
    return ok;
}

/* --- tables beside the log ---------------------------------------------------------------- */

static int compare_runs(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* There are few artifacts and no index by run, so all are scanned, without their bytes. */
static bool erase_artifacts(struct database *db, const struct erase_runs *runs, struct err *e) {
    struct found_rows found = {.count = 0};
    uint64_t *sorted = mem_alloc((runs->count + 1) * sizeof(*sorted));
    if (runs->count) memcpy(sorted, runs->ids, runs->count * sizeof(*sorted));
    qsort(sorted, runs->count, sizeof(*sorted), compare_runs);
    struct database_rows list =
        database_ask(db, "SELECT id, run FROM artifact", (struct sql_values){0}, e);
    while (database_next(&list, e)) {
        struct row noted = {.id = database_number_of(list.row, 0)};
        uint64_t run = (uint64_t)database_number_of(list.row, 1);
        if (bsearch(&run, sorted, runs->count, sizeof(run), compare_runs))
            list.ok = note_row(&noted, &found, e);
    }
    bool ok = database_end(&list);
    free(sorted);
    for (size_t i = 0; ok && i < found.count; i++) {
        ok = doomed_artifact(db, found.ids[i], clock_unix_ms(), e) &&
             database_run_with(db, "DELETE FROM artifact_token WHERE artifact = ?",
                               VALUES(sql_number(found.ids[i])), e) &&
             database_run_with(db, "DELETE FROM artifact WHERE id = ?",
                               VALUES(sql_number(found.ids[i])), e);
    }
    free(found.ids);
    return ok;
}

/* A webhook's key is "<run>-<name>". */
static bool erase_webhooks(struct database *db, const struct erase_runs *runs, struct err *e) {
    char from[32], upto[32];
    for (size_t i = 0; i < runs->count; i++) {
        snprintf(from, sizeof(from), "%" PRIu64 "-", runs->ids[i]);
        snprintf(upto, sizeof(upto), "%" PRIu64 ".", runs->ids[i]); /* what follows '-' */
        if (!database_run_with(
                db, "DELETE FROM kept WHERE space BETWEEN ? AND ? AND key >= ? AND key < ?",
                VALUES(sql_number(KEPT_WEBHOOK), sql_number(KEPT_WEBHOOK_CLAIM),
                       sql_bytes(str_from(from)), sql_bytes(str_from(upto))),
                e))
            return false;
    }
    return true;
}

bool erase_session(struct database *db, const struct erase_runs *runs, struct err *e) {
    struct eraser eraser;
    bool ok = eraser_open(&eraser, db, e);
    ok = ok && database_run_with(
                   db, /* while the runs still name their owner */
                   "DELETE FROM keyed WHERE run IN (SELECT id FROM run WHERE session = ?)",
                   VALUES(sql_number(runs->session)), e);
    for (size_t i = 0; ok && i < runs->count; i++) ok = erase_run(&eraser, runs->ids[i], e);
    eraser_close(&eraser);
    database_reached(db, "runs erased");
    return ok && erase_artifacts(db, runs, e) && erase_webhooks(db, runs, e) &&
           database_run_with(db, "DELETE FROM session WHERE id = ?",
                             VALUES(sql_number(runs->session)), e);
}
