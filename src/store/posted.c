#include "store/posted.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/changes.h"

#include <stdio.h>
#include <stdlib.h>

#define READ_MAX_BYTES (64 * MIB) /* one that has no room comes with the next page */

/* The values of "sender = ?1 AND number = ?2". */
#define ROW(row) sql_number((row)->sender), sql_number((row)->number)

/* --- sending ------------------------------------------------------------------------------ */

static bool put_row(struct database *db, void *ctx, struct err *e) {
    const struct posting *posting = ctx;
    const struct posted_words *words = &posting->words;
    db->changed |= CHANGE_POSTED;
    return database_run_with(
        db,
        "INSERT INTO posted(sender, number, run, seq, words, key, key_user, print)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(sender, number) DO NOTHING",
        VALUES(ROW(posting), sql_number((int64_t)words->run), sql_number((int64_t)words->seq),
               sql_bytes(words->text), sql_bytes(words->key), sql_bytes(words->key_user),
               sql_bytes(words->print)),
        e);
}

static void on_posting(struct store_task *task, const struct err *failed, void *ctx) {
    struct posting *posting = ctx;
    (void)task;
    posting->on_done(posting, failed, posting->ctx);
}

void posting_send(struct store *store, struct loop *home, struct posting *posting) {
    posting->sender = (int64_t)store_epoch(store);
    posting->task = (struct store_task){
        .light = true, .fn = put_row, .home = home, .on_done = on_posting, .ctx = posting};
    store_run(store, &posting->task);
}

static bool look_at_row(struct database *db, void *ctx, struct err *e) {
    struct posting *posting = ctx;
    struct prepared *statement = NULL;
    bool row = false,
         ok = database_first(db,
                             "SELECT refusal, refused FROM posted WHERE"
                             " sender = ?1 AND number = ?2 AND refused IS NOT NULL",
                             VALUES(ROW(posting)), &statement, &row, e);
    posting->refused = POSTED_ACCEPTED;
    if (ok && row) {
        posting->refused = (enum posted_refusal)database_number_of(statement, 0);
        snprintf(posting->why, sizeof(posting->why), STR_FMT,
                 STR_ARG(database_bytes(statement, 1)));
    }
    database_finalize(statement);
    return ok;
}

void posting_look(struct store *store, struct loop *home, struct posting *posting) {
    posting->task = (struct store_task){.reads_only = true,
                                        .fn = look_at_row,
                                        .home = home,
                                        .on_done = on_posting,
                                        .ctx = posting};
    store_run(store, &posting->task);
}

/* The commit's outcome may have been unknown before: then the row is gone, and none is open. */
static bool withdraw_row(struct database *db, void *ctx, struct err *e) {
    struct posting *posting = ctx;
    struct prepared *statement = NULL;
    bool row = false,
         ok = database_run_with(db,
                                "DELETE FROM posted WHERE sender = ?1 AND number = ?2"
                                " AND taken = 0 AND refused IS NULL",
                                VALUES(ROW(posting)), e) &&
              database_first(db, "SELECT 1 FROM posted WHERE sender = ?1 AND number = ?2",
                             VALUES(ROW(posting)), &statement, &row, e);
    posting->withdrawn = ok && !row;
    database_finalize(statement);
    return ok;
}

void posting_withdraw(struct store *store, struct loop *home, struct posting *posting) {
    posting->task = (struct store_task){
        .light = true, .fn = withdraw_row, .home = home, .on_done = on_posting, .ctx = posting};
    store_run(store, &posting->task);
}

/* --- changing a row ----------------------------------------------------------------------- */

enum row_step { ROW_REMOVE, ROW_RELEASE, ROW_REFUSE };

struct row_change {
    struct store_task task;
    enum row_step step;
    struct posted_id id;
    int64_t replica;
    enum posted_refusal refusal;
    char why[POSTED_WHY_BYTES];
};

static bool change_row(struct database *db, void *ctx, struct err *e) {
    const struct row_change *change = ctx;
    const struct posted_id *id = &change->id;
    switch (change->step) {
    case ROW_REMOVE:
        return database_run_with(db, "DELETE FROM posted WHERE sender = ?1 AND number = ?2",
                                 VALUES(ROW(id)), e);
    case ROW_RELEASE:
        return database_run_with(db,
                                 "UPDATE posted SET taken = 0 WHERE sender = ?1 AND number = ?2"
                                 " AND taken = ?3 AND refused IS NULL",
                                 VALUES(ROW(id), sql_number(change->replica)), e);
    case ROW_REFUSE: break;
    }
    db->changed |= CHANGE_POSTED;
    return database_run_with(db,
                             "UPDATE posted SET refusal = ?4, refused = ?5 WHERE sender = ?1"
                             " AND number = ?2 AND taken IN (0, ?3) AND refused IS NULL",
                             VALUES(ROW(id), sql_number(change->replica),
                                    sql_number(change->refusal),
                                    sql_bytes(str_from(change->why))),
                             e);
}

/* A row that stays is removed with its sender. One that stays taken is read again by its taker,
 * which knows what it has given. */
static void on_changed(struct store_task *task, const struct err *failed, void *ctx) {
    (void)task;
    if (failed) log_debug("the row of a posted answer stays as it is: %s", failed->text);
    free(ctx);
}

static struct row_change *change_start(struct store *store, struct loop *home,
                                       enum row_step step, struct posted_id id) {
    struct row_change *change = MEM_NEW(struct row_change);
    change->step = step;
    change->id = id;
    change->replica = (int64_t)store_epoch(store);
    change->task = (struct store_task){.light = true,
                                       .insists = true,
                                       .fn = change_row,
                                       .home = home,
                                       .on_done = on_changed,
                                       .ctx = change};
    return change;
}

void posting_remove(struct store *store, struct loop *home, int64_t number) {
    const struct posted_id id = {(int64_t)store_epoch(store), number};
    store_run(store, &change_start(store, home, ROW_REMOVE, id)->task);
}

void posted_release(struct store *store, struct loop *home, struct posted_id id) {
    store_run(store, &change_start(store, home, ROW_RELEASE, id)->task);
}

void posted_refuse(struct store *store, struct loop *home, struct posted_id id,
                   enum posted_refusal refusal, const char *why) {
    struct row_change *change = change_start(store, home, ROW_REFUSE, id);
    change->refusal = refusal;
    snprintf(change->why, sizeof(change->why), "%s", why);
    store_run(store, &change->task);
}

/* --- taking ------------------------------------------------------------------------------- */

static bool take_row(struct database *db, void *ctx, struct err *e) {
    struct posted_take *take = ctx;
    bool ok = database_run_with(db,
                                "UPDATE posted SET taken = ?3 WHERE sender = ?1 AND number = ?2"
                                " AND taken IN (0, ?3) AND refused IS NULL",
                                VALUES(ROW(&take->id), sql_number(take->replica)), e);
    take->taken = ok && database_changes(db) == 1;
    return ok;
}

static void on_taken(struct store_task *task, const struct err *failed, void *ctx) {
    struct posted_take *take = ctx;
    (void)task;
    take->on_done(take, failed, take->ctx);
}

void posted_take(struct store *store, struct loop *home, struct posted_take *take) {
    take->replica = (int64_t)store_epoch(store);
    take->task = (struct store_task){
        .light = true, .fn = take_row, .home = home, .on_done = on_taken, .ctx = take};
    store_run(store, &take->task);
}

/* --- reading ------------------------------------------------------------------------------ */

/* Whose a run is: as takeover.c has it. */
static const char read_rows[] =
    "SELECT posted.sender, posted.number, posted.run, posted.seq, words, posted.key, key_user,"
    " print FROM posted JOIN run ON run.id = posted.run JOIN log ON log.id = run.last_log"
    " LEFT JOIN moved ON moved.run = posted.run WHERE taken IN (0, ?1) AND refused IS NULL AND"
    " coalesce(moved.holder, log.replica) = ?1 AND (sender, number) > (?3, ?4)"
    " ORDER BY sender, number LIMIT ?2";

/* False: it has no room. */
static bool copy_row(struct posted_list *list, struct prepared *statement) {
    struct posted *posted = &list->all[list->count];
    struct posted_words *words = &posted->words;
    struct str *texts[] = {&words->text, &words->key, &words->key_user, &words->print};
    *posted = (struct posted){
        .id = {database_number_of(statement, 0), database_number_of(statement, 1)}};
    words->run = (uint64_t)database_number_of(statement, 2);
    words->seq = (uint64_t)database_number_of(statement, 3);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!arena_str(list->arena, database_bytes(statement, (int)i + 4), texts[i]))
            return false;
    }
    list->count++;
    return true;
}

static bool read_posted(struct database *db, void *ctx, struct err *e) {
    struct posted_list *list = ctx;
    struct prepared *statement = NULL;
    bool row, ok = database_prepare(db, read_rows, &statement, e);
    arena_free(list->arena);
    list->arena = arena_new(READ_MAX_BYTES);
    list->count = 0;
    list->more = false;
    if (ok) {
        database_bind_number(statement, 1, list->replica);
        database_bind_number(statement, 2, POSTED_MAX);
        database_bind_number(statement, 3, list->after.sender);
        database_bind_number(statement, 4, list->after.number);
    }
    while (ok && (ok = database_row(db, statement, &row, e)) && row) {
        list->more = !copy_row(list, statement) || list->count == POSTED_MAX;
        if (list->more) break;
    }
    database_finalize(statement);
    return ok;
}

static void on_read(struct store_task *task, const struct err *failed, void *ctx) {
    struct posted_list *list = ctx;
    (void)task;
    list->on_done(list, failed, list->ctx);
}

void posted_read(struct store *store, struct loop *home, struct posted_list *list) {
    list->replica = (int64_t)store_epoch(store);
    list->task = (struct store_task){.reads_only = true,
                                     .needs_tables = true,
                                     .fn = read_posted,
                                     .home = home,
                                     .on_done = on_read,
                                     .ctx = list};
    store_run(store, &list->task);
}

void posted_list_done(struct posted_list *list) {
    arena_free(list->arena);
    list->arena = NULL;
    list->count = 0;
}
