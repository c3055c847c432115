#include "store/upload.h"

#include "base/mem.h"
#include "store/audit.h"
#include "store/single.h"

#include <assert.h>
#include <stdlib.h>

#define PRUNE_PIECES "4" /* per commit, which overwrites each byte */

/* Values of upload.state. */
enum { COMING, WHOLE, OVER };

struct upload_ask {
    struct store_task task;
    struct buf asked;        /* owns the request's texts */
    struct buf found, bytes; /* own the result's; each run of the task makes them again */
    struct upload upload;    /* the request, then the result */
    struct kept_reply reply; /* with its texts; upload.reply is NULL or this */
    enum upload_piece piece;
    size_t place, limit;
    int64_t now_ms;
    struct store *store; /* for a prune, which takes two tasks */
    bool due;            /* something has expired */
    int64_t next_ms;
    upload_done_fn *done; /* both NULL: cancelled */
    upload_pruned_fn *pruned;
    void *ctx;
};

static void upload_ask_free(struct upload_ask *ask) {
    buf_done(&ask->asked);
    buf_done(&ask->found);
    buf_done(&ask->bytes);
    free(ask);
}

static void upload_on_done(const struct err *failed, void *ctx) {
    struct upload_ask *ask = ctx;
    if (ask->done) ask->done(&ask->upload, failed, ask->ctx);
    upload_ask_free(ask);
}

void upload_forget(struct upload_ask *ask) {
    if (!ask) return;
    ask->done = NULL;
    ask->pruned = NULL;
}

static struct upload_ask *upload_ask_new(int64_t now_ms,
                                         bool (*fn)(struct database *, void *, struct err *)) {
    struct upload_ask *ask = MEM_NEW(struct upload_ask);
    ask->task = (struct store_task){.fn = fn, .on_done = upload_on_done};
    ask->now_ms = now_ms;
    return ask;
}

/* --- put ---------------------------------------------------------------------------------- */

/* Record that it belongs to this start: uploads left unfinished by an earlier start will not be
 * finished. */
static bool upload_begin(struct database *db, const struct upload_ask *ask, struct err *e) {
    const struct upload *upload = &ask->upload;
    return database_run_with(
        db,
        "INSERT INTO upload(name, app, subject, content_type, title, state, epoch, created_ms,"
        " size, sum) SELECT ?1, ?2, ?3, ?4, ?5, 0, CASE WHEN ?7 > 0 THEN ?7 ELSE value END,"
        " ?6, 0, x'' FROM meta WHERE name = 'epoch'",
        VALUES(sql_bytes(upload->id), sql_bytes(upload->app), sql_bytes(upload->subject),
               sql_bytes(upload->content_type), sql_bytes(upload->name),
               sql_number(ask->now_ms), sql_number(db->replica)),
        e);
}

static bool find_coming(struct database *db, struct str id, int64_t *ret, struct err *e) {
    *ret = 0;
    return database_number_with(db, "SELECT id FROM upload WHERE name = ? AND state = 0",
                                VALUES(sql_bytes(id)), ret, e) &&
           (*ret || err_set(e, ERR_NOT_FOUND, "this upload is over; begin a new one"));
}

static bool put_piece(struct database *db, int64_t row, const struct upload_ask *ask,
                      struct err *e) {
    if (ask->upload.bytes.len == 0) return true;
    return database_run_with(
        db, "INSERT INTO upload_piece(upload, place, bytes) VALUES(?, ?, ?)",
        VALUES(sql_number(row), sql_number((int64_t)ask->place), sql_bytes(ask->upload.bytes)),
        e);
}

static bool make_whole(struct database *db, int64_t row, const struct upload_ask *ask,
                       struct err *e) {
    return database_run_with(
        db, "UPDATE upload SET state = 1, size = ?, sum = ?, created_ms = ? WHERE id = ?",
        VALUES(sql_number((int64_t)ask->upload.size), sql_bytes(ask->upload.sum),
               sql_number(ask->now_ms), sql_number(row)),
        e);
}

/* If there are too many uploads, expire the oldest. */
static bool keep_the_newest(struct database *db, struct err *e) {
    return database_run_with(db,
                             "UPDATE upload SET state = 2 WHERE state = 1 AND id <="
                             " (SELECT id FROM upload WHERE state = 1"
                             "  ORDER BY id DESC LIMIT 1 OFFSET ?)",
                             VALUES(sql_number(UPLOAD_KEPT_MAX)), e);
}

/* Its digest is that of the bytes, so a copy of them can be recognised. */
static bool audit_upload(const struct upload *upload, struct database *db, struct err *e) {
    struct audit_record record = {.texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.upload"),
                                            [AUDIT_OPERATION] = STR_INIT("put"),
                                            [AUDIT_WORKSPACE] = upload->app,
                                            [AUDIT_USER] = upload->subject,
                                            [AUDIT_CONTRACT] = STR_INIT("nimi"),
                                            [AUDIT_CAPABILITY] = upload->id,
                                            [AUDIT_DIGEST] = upload->sum}};
    audit_set(&record, AUDIT_OUTCOME, ERR_NONE);
    return audit_note(db, &record, e);
}

static bool upload_run_put(struct database *db, void *ctx, struct err *e) {
    struct upload_ask *ask = ctx;
    int64_t row = 0;
    if (ask->place == 0 && !upload_begin(db, ask, e)) return false;
    if (!find_coming(db, ask->upload.id, &row, e) || !put_piece(db, row, ask, e)) return false;
    if (ask->piece == UPLOAD_GOES_ON) return true;
    ask->upload.created_ms = ask->now_ms;
    return make_whole(db, row, ask, e) && keep_the_newest(db, e) &&
           audit_upload(&ask->upload, db, e) && once_reply_put(db, ask->upload.reply, e);
}

static size_t names_len(const struct upload *upload) {
    return upload->id.len + upload->app.len + upload->subject.len + upload->content_type.len +
           upload->name.len + upload->sum.len;
}

static void keep_upload(struct upload_ask *ask, const struct upload *upload) {
    assert(names_len(upload) <= UPLOAD_NAMES_MAX_BYTES);
    struct upload *kept = &ask->upload;
    *kept = *upload;
    if (upload->reply) {
        ask->reply = *upload->reply;
        kept->reply = &ask->reply;
    }
    struct str *const texts[] = {&kept->id,   &kept->app, &kept->subject, &kept->content_type,
                                 &kept->name, &kept->sum, &kept->bytes,   &ask->reply.reply};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
}

struct upload_ask *upload_put_start(struct store *store, struct loop *loop,
                                    const struct upload *upload, size_t place,
                                    enum upload_piece piece, int64_t now_ms,
                                    upload_done_fn *done, void *ctx) {
    struct upload_ask *ask = upload_ask_new(now_ms, upload_run_put);
    assert(upload->id.len && upload->app.len && place % UPLOAD_PIECE_BYTES == 0);
    assert(piece == UPLOAD_LAST ? upload->sum.len == UPLOAD_SUM_BYTES
                                : upload->bytes.len == UPLOAD_PIECE_BYTES);
    keep_upload(ask, upload);
    ask->place = place;
    ask->piece = piece;
    ask->done = done;
    ask->ctx = ctx;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- drop --------------------------------------------------------------------------------- */

void upload_drop(struct store *store, struct loop *loop, struct str id) {
    store_run_single(store, loop,
                     &(struct store_single){.sql = "UPDATE upload SET state = 2 WHERE name = ?",
                                            .values = VALUES(sql_bytes(id))});
}

/* --- get ---------------------------------------------------------------------------------- */

/* How many of the requested bytes exist. */
static size_t wanted(const struct upload_ask *ask, size_t size) {
    size_t rest = ask->place < size ? size - ask->place : 0;
    return rest < ask->limit ? rest : ask->limit;
}

static void upload_take_row(struct upload_ask *ask, struct prepared *row) {
    struct upload *upload = &ask->upload;
    upload->size = (size_t)database_number_of(row, 4);
    upload->created_ms = database_number_of(row, 5);
    upload->content_type = database_bytes(row, 1);
    upload->name = database_bytes(row, 2);
    upload->sum = database_bytes(row, 3);
    struct str *const texts[] = {&upload->content_type, &upload->name, &upload->sum};
    buf_done(&ask->found);
    buf_keep_texts(&ask->found, texts, ARRAY_LEN(texts));
}

/* Copy the part of a piece, which begins at `place`, that lies in the requested window. */
static void take_piece(struct upload_ask *ask, size_t place, struct str bytes, size_t *left) {
    if (place < ask->place) bytes = str_skip(bytes, ask->place - place);
    bytes = str_head(bytes, *left);
    buf_append(&ask->bytes, bytes);
    *left -= bytes.len;
}

static bool take_pieces(struct database *db, struct upload_ask *ask, int64_t row,
                        struct err *e) {
    size_t left = wanted(ask, ask->upload.size);
    buf_done(&ask->bytes);
    buf_init(&ask->bytes, left);
    if (left == 0) return true;
    struct database_rows list = database_ask(
        db,
        "SELECT place, bytes FROM upload_piece WHERE upload = ?"
        " AND place > ? AND place < ? ORDER BY place",
        VALUES(sql_number(row), sql_number((int64_t)ask->place - (int64_t)UPLOAD_PIECE_BYTES),
               sql_number((int64_t)(ask->place + left))),
        e);
    while (database_next(&list, e))
        take_piece(ask, (size_t)database_number_of(list.row, 0), database_bytes(list.row, 1),
                   &left);
    ask->upload.bytes = buf_str(&ask->bytes);
    return database_end(&list) &&
           (left == 0 ||
            err_set(e, ERR_DATA_LOSS, "a piece of the upload is missing; send it again"));
}

/* Only a complete one is found. */
static bool run_get(struct database *db, void *ctx, struct err *e) {
    struct upload_ask *ask = ctx;
    int64_t id = 0;
    struct database_rows find = database_ask(
        db,
        "SELECT id, content_type, title, sum, size, created_ms"
        " FROM upload WHERE name = ? AND app = ? AND subject = ?"
        " AND state = 1 AND created_ms > ?",
        VALUES(sql_bytes(ask->upload.id), sql_bytes(ask->upload.app),
               sql_bytes(ask->upload.subject), sql_number(ask->now_ms - UPLOAD_KEPT_MS)),
        e);
    if (database_next(&find, e)) {
        id = database_number_of(find.row, 0);
        upload_take_row(ask, find.row);
    }
    if (!database_end(&find)) return false;
    if (id) return take_pieces(db, ask, id, e);
    return err_set(e, ERR_NOT_FOUND,
                   "there is no artifact '" STR_FMT "' of this app and subject; one is kept "
                   "for 30 minutes, so send it again",
                   STR_ARG(str_head(ask->upload.id, 80)));
}

struct upload_ask *upload_get_start(struct store *store, struct loop *loop, struct str app,
                                    struct str subject, struct str id, size_t offset,
                                    size_t limit, int64_t now_ms, upload_done_fn *done,
                                    void *ctx) {
    struct upload_ask *ask = upload_ask_new(now_ms, run_get);
    ask->task.reads_only = true;
    keep_upload(ask, &(struct upload){.id = id, .app = app, .subject = subject});
    ask->place = offset < UPLOAD_MAX_BYTES ? offset : UPLOAD_MAX_BYTES;
    ask->limit = limit < UPLOAD_MAX_BYTES ? limit : UPLOAD_MAX_BYTES;
    ask->done = done;
    ask->ctx = ctx;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- prune -------------------------------------------------------------------------------- */

/* Uploads that have expired at ?1, or that will not be finished. Among replicas `epoch` is the
 * number of the one that receives it. */
#define DUE_AT(begun)                                                                          \
    "(state = 2 OR created_ms <= ?1 OR (state = 0 AND epoch <> (SELECT value FROM meta"        \
    " WHERE name = 'epoch')" begun "))"
#define OF_NO_REPLICA " AND epoch NOT IN (SELECT id FROM replica WHERE fenced = 0)"

#define LOOK(due)                                                                              \
    "SELECT max(CASE WHEN " due " THEN 1 ELSE 0 END), min(CASE WHEN " due                      \
    " THEN NULL ELSE created_ms END) FROM upload"
#define DOOM(due) "UPDATE upload SET state = 2 WHERE state <> 2 AND " due

static bool upload_look(struct database *db, void *ctx, struct err *e) {
    struct upload_ask *ask = ctx;
    struct database_rows sum =
        database_ask(db, database_sql(db, LOOK(DUE_AT("")), LOOK(DUE_AT(OF_NO_REPLICA))),
                     VALUES(sql_number(ask->now_ms - UPLOAD_KEPT_MS)), e);
    ask->due = false;
    ask->next_ms = 0;
    if (database_next(&sum, e)) {
        ask->due = database_number_of(sum.row, 0);
        if (!database_is_null(sum.row, 1))
            ask->next_ms = database_number_of(sum.row, 1) + UPLOAD_KEPT_MS;
    }
    return database_end(&sum);
}

static bool run_prune(struct database *db, void *ctx, struct err *e) {
    struct upload_ask *ask = ctx;
    int64_t line = ask->now_ms - UPLOAD_KEPT_MS;
    return database_run_with(db,
                             database_sql(db, DOOM(DUE_AT("")), DOOM(DUE_AT(OF_NO_REPLICA))),
                             VALUES(sql_number(line)), e) &&
           database_run(db,
                        "DELETE FROM upload_piece WHERE id IN (SELECT p.id FROM upload AS u"
                        " JOIN upload_piece AS p ON p.upload = u.id WHERE u.state = 2"
                        " LIMIT " PRUNE_PIECES ")",
                        e) &&
           database_run(db,
                        "DELETE FROM upload WHERE state = 2 AND NOT EXISTS"
                        " (SELECT 1 FROM upload_piece AS p WHERE p.upload = upload.id)",
                        e) &&
           upload_look(db, ask, e);
}

/* Called after the search, and again after the deletion that it required. */
static void on_pruned(const struct err *failed, void *ctx) {
    struct upload_ask *ask = ctx;
    struct store_task *task = &ask->task;
    bool looked = task->reads_only;
    if (!failed && looked && ask->due && ask->pruned) {
        task->reads_only = false;
        task->purges = true;
        task->fn = run_prune;
        store_run(ask->store, task->home, task, ask);
        return;
    }
    if (ask->pruned) ask->pruned(ask->due, ask->next_ms, failed, ask->ctx);
    upload_ask_free(ask);
}

struct upload_ask *upload_prune_start(struct store *store, struct loop *loop, int64_t now_ms,
                                      upload_pruned_fn *done, void *ctx) {
    struct upload_ask *ask = upload_ask_new(now_ms, upload_look);
    ask->task.reads_only = true;
    ask->task.on_done = on_pruned;
    ask->store = store;
    ask->pruned = done;
    ask->ctx = ctx;
    store_run(store, loop, &ask->task, ask);
    return ask;
}
