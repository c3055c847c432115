#include "store/row.h"

#include "store/shorten.h"
#include "store/sum.h"

#include <inttypes.h>

#define ROW_MAX_BYTES (256 * MIB) /* more than any that is written */
#define SCRATCH_BYTES (64 * KIB)  /* kept between two rows */

bool row_open(struct rows *rows, struct database *db, struct err *e) {
    *rows = (struct rows){.db = db};
    buf_init(&rows->scratch, ROW_MAX_BYTES);
    return database_prepare(db, "INSERT INTO log(run, sum, bytes) VALUES(?, ?, ?)",
                            &rows->append, e) &&
           database_prepare(db, "SELECT id, run, sum, bytes FROM log WHERE id = ?", &rows->read,
                            e) &&
           database_prepare(db,
                            "SELECT id, run, sum, bytes FROM log WHERE id > ? AND id <= ? "
                            "AND run IN (0, ?) ORDER BY id",
                            &rows->range, e) &&
           database_prepare(
               db, "SELECT id, run, sum, bytes FROM log WHERE id > ? ORDER BY id LIMIT ?",
               &rows->from, e) &&
           database_number(db, "SELECT max(id) FROM log", &rows->newest, e);
}

void row_close(struct rows *rows) {
    buf_done(&rows->scratch);
    sqlite3_finalize(rows->append);
    sqlite3_finalize(rows->read);
    sqlite3_finalize(rows->range);
    sqlite3_finalize(rows->from);
}

static void clear_scratch(struct rows *rows) {
    buf_clear(&rows->scratch);
    if (rows->scratch.room > SCRATCH_BYTES) buf_release(&rows->scratch);
}

bool row_append(struct rows *rows, uint64_t run, struct str bytes, struct err *e) {
    clear_scratch(rows);
    if (run && shorten_row(bytes, &rows->scratch)) bytes = buf_str(&rows->scratch);
    sqlite3_bind_int64(rows->append, 1, (int64_t)run);
    sqlite3_bind_int64(rows->append, 2, (int64_t)sum_of(run, bytes));
    database_bind(rows->append, 3, bytes);
    return database_do(rows->db, rows->append, e);
}

static bool damaged(struct rows *rows, int64_t id, struct err *e) {
    return err_set(e, ERR_DATA_LOSS,
                   "store %s: row %" PRId64 " of the log is damaged; restore the file from a "
                   "backup, or move its folder away to begin anew",
                   rows->db->path, id);
}

static bool store_row_take(struct rows *rows, sqlite3_stmt *statement, struct row *ret,
                           struct err *e) {
    ret->id = sqlite3_column_int64(statement, 0);
    ret->run = (uint64_t)sqlite3_column_int64(statement, 1);
    ret->bytes = database_bytes(statement, 3);
    if ((int64_t)sum_of(ret->run, ret->bytes) != sqlite3_column_int64(statement, 2)) {
        bool no_memory = sqlite3_errcode(rows->db->handle) == SQLITE_NOMEM;
        return no_memory ? database_fail(rows->db, e) : damaged(rows, ret->id, e);
    }
    if (!shorten_did(ret->bytes)) return true;
    struct err cause;
    clear_scratch(rows);
    if (!shorten_undo(ret->bytes, &rows->scratch, &cause)) return damaged(rows, ret->id, e);
    ret->bytes = buf_str(&rows->scratch);
    return true;
}

bool row_read(struct rows *rows, int64_t id, struct row *ret, struct err *e) {
    sqlite3_reset(rows->read);
    sqlite3_bind_int64(rows->read, 1, id);
    bool found;
    if (!database_row(rows->db, rows->read, &found, e)) return false;
    if (found) return store_row_take(rows, rows->read, ret, e);
    return err_set(e, ERR_DATA_LOSS,
                   "store %s: row %" PRId64 " of the log is missing; restore the file from a "
                   "backup, or move its folder away to begin anew",
                   rows->db->path, id);
}

void row_release(struct rows *rows) {
    sqlite3_reset(rows->read);
}

static bool walk(struct rows *rows, sqlite3_stmt *statement, row_fn *each, void *ctx,
                 struct err *e) {
    bool found, ok = true;
    while ((ok = database_row(rows->db, statement, &found, e)) && found) {
        struct row row;
        if (!(ok = store_row_take(rows, statement, &row, e))) break;
        if (!(ok = each(&row, ctx, e))) break;
    }
    sqlite3_reset(statement);
    return ok;
}

bool row_each(struct rows *rows, int64_t after, size_t count, row_fn *each, void *ctx,
              struct err *e) {
    sqlite3_bind_int64(rows->from, 1, after);
    sqlite3_bind_int64(rows->from, 2, (int64_t)count);
    return walk(rows, rows->from, each, ctx, e);
}

bool row_each_of(struct rows *rows, uint64_t run, int64_t after, int64_t last, row_fn *each,
                 void *ctx, struct err *e) {
    sqlite3_bind_int64(rows->range, 1, after);
    sqlite3_bind_int64(rows->range, 2, last);
    sqlite3_bind_int64(rows->range, 3, (int64_t)run);
    return walk(rows, rows->range, each, ctx, e);
}
