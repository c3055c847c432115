#include "store/doomed.h"

bool doomed_add(struct database *db, struct str key, int64_t due_ms, int64_t flags,
                struct err *e) {
    return database_run_with(db,
                             "INSERT INTO object_doomed(object, due_ms, flags) VALUES(?, ?, ?)"
                             " ON CONFLICT(object) DO NOTHING",
                             VALUES(sql_bytes(key), sql_number(due_ms), sql_number(flags)), e);
}

bool doomed_take(struct database *db, struct str key, struct err *e) {
    struct prepared *take = NULL;
    bool row = false,
         ok = database_first(db, "DELETE FROM object_doomed WHERE object = ? RETURNING flags",
                             VALUES(sql_bytes(key)), &take, &row, e);
    bool listed = row;
    while (ok && row) ok = database_row(db, take, &row, e); /* to the end, so that it is done */
    database_finalize(take);
    return ok && (listed || err_set(e, ERR_ABORTED,
                                    "writing the object took too long, and it was given up"));
}

static bool find_object(struct database *db, int64_t artifact, struct buf *ret, struct err *e) {
    struct prepared *find = NULL;
    bool row = false,
         ok = database_first(db, "SELECT object FROM artifact_object WHERE artifact = ?",
                             VALUES(sql_number(artifact)), &find, &row, e);
    if (row) buf_append(ret, database_bytes(find, 0));
    database_finalize(find);
    return ok;
}

bool doomed_artifact(struct database *db, int64_t artifact, int64_t now_ms, struct err *e) {
    struct buf key;
    buf_init(&key, 2 * KIB);
    bool ok = find_object(db, artifact, &key, e);
    if (ok && key.len)
        ok = doomed_add(db, buf_str(&key), now_ms, 0, e) &&
             database_run_with(db, "DELETE FROM artifact_object WHERE artifact = ?",
                               VALUES(sql_number(artifact)), e);
    buf_done(&key);
    return ok;
}
