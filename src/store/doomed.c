#include "store/doomed.h"

bool doomed_add(struct database *db, struct str key, int64_t due_ms, int64_t flags,
                struct err *e) {
    return database_run_with(db,
                             "INSERT INTO object_doomed(object, due_ms, flags) VALUES(?, ?, ?)"
                             " ON CONFLICT(object) DO NOTHING",
                             VALUES(sql_bytes(key), sql_number(due_ms), sql_number(flags)), e);
}

bool doomed_take(struct database *db, struct str key, int64_t now_ms, struct err *e) {
    return database_run_with(
               db, "DELETE FROM object_doomed WHERE object = ? AND due_ms > ? AND flags < ?",
               VALUES(sql_bytes(key), sql_number(now_ms), sql_number(DOOMED_TRIED)), e) &&
           (database_changes(db) > 0 ||
            err_set(e, ERR_ABORTED, "writing the object took too long, and it was given up"));
}

static bool find_object(struct database *db, int64_t artifact, struct buf *ret, struct err *e) {
    struct database_rows find =
        database_ask(db, "SELECT object FROM artifact_object WHERE artifact = ?",
                     VALUES(sql_number(artifact)), e);
    if (database_next(&find, e)) buf_append(ret, database_bytes(find.row, 0));
    return database_end(&find);
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
