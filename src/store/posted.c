#include "store/posted.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/changes.h"

#include <stdio.h>
#include <stdlib.h>

#define READ_MAX_BYTES (64 * MIB) /* an answer that has no room waits for the next reading */

static void bind_row(struct prepared *statement, int64_t sender, int64_t number) {
    database_bind_number(statement, 1, sender);
    database_bind_number(statement, 2, number);
}

/* --- sending ------------------------------------------------------------------------------ */

static bool put_row(struct database *db, void *ctx, struct err *e) {
    const struct posting *posting = ctx;
    const struct posted_words *words = &posting->words;
    struct prepared *statement = NULL;
    bool ok = database_prepare(
        db,
        "INSERT INTO posted(sender, number, run, seq, words, key, key_user, print)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(sender, number) DO NOTHING",
        &statement, e);
    if (ok) {
        bind_row(statement, posting->sender, posting->number);
        database_bind_number(statement, 3, (int64_t)words->run);
        database_bind_number(statement, 4, (int64_t)words->seq);
        database_bind(statement, 5, words->text);
        database_bind(statement, 6, words->key);
        database_bind(statement, 7, words->key_user);
        database_bind(statement, 8, words->print);
        ok = database_do(db, statement, e);
    }
    database_finalize(statement);
    db->changed |= CHANGE_POSTED;
    return ok;
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
         ok = database_prepare(db,
                               "SELECT refused FROM posted WHERE sender = ?1 AND number = ?2"
                               " AND refused IS NOT NULL",
                               &statement, e);
    if (ok) {
        bind_row(statement, posting->sender, posting->number);
        ok = database_row(db, statement, &row, e);
    }
    posting->refused = ok && row;
    if (posting->refused)
        snprintf(posting->why, sizeof(posting->why), STR_FMT,
                 STR_ARG(database_bytes(statement, 0)));
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

/* --- changing a row ----------------------------------------------------------------------- */

struct row_change {
    struct store_task task;
    int64_t sender, number, replica;
    bool removes, refuses;
    char why[POSTED_WHY_BYTES];
};

static const char *sql_of(const struct row_change *change) {
    if (change->removes) return "DELETE FROM posted WHERE sender = ?1 AND number = ?2";
    if (change->refuses)
        return "UPDATE posted SET refused = ?3 WHERE sender = ?1 AND number = ?2";
    return "UPDATE posted SET given = ?3 WHERE sender = ?1 AND number = ?2";
}

static bool change_row(struct database *db, void *ctx, struct err *e) {
    const struct row_change *change = ctx;
    struct prepared *statement = NULL;
    bool ok = database_prepare(db, sql_of(change), &statement, e);
    if (ok) {
        bind_row(statement, change->sender, change->number);
        if (change->refuses) database_bind(statement, 3, str_from(change->why));
        if (!change->refuses && !change->removes)
            database_bind_number(statement, 3, change->replica);
        ok = database_do(db, statement, e);
    }
    database_finalize(statement);
    if (change->refuses) db->changed |= CHANGE_POSTED;
    return ok;
}

/* A row that stays is removed with its sender, and finds that nobody waits. */
static void on_changed(struct store_task *task, const struct err *failed, void *ctx) {
    (void)task;
    if (failed) log_debug("the row of a posted answer stays: %s", failed->text);
    free(ctx);
}

static void change_start(struct store *store, struct loop *home, struct row_change *change) {
    change->task = (struct store_task){
        .light = true, .fn = change_row, .home = home, .on_done = on_changed, .ctx = change};
    store_run(store, &change->task);
}

void posting_remove(struct store *store, struct loop *home, int64_t number) {
    struct row_change *change = MEM_NEW(struct row_change);
    change->sender = (int64_t)store_epoch(store);
    change->number = number;
    change->removes = true;
    change_start(store, home, change);
}

void posted_note(struct store *store, struct loop *home, const struct posted *posted,
                 const char *refused) {
    struct row_change *change = MEM_NEW(struct row_change);
    change->sender = posted->sender;
    change->number = posted->number;
    change->replica = (int64_t)store_epoch(store);
    change->refuses = refused != NULL;
    if (refused) snprintf(change->why, sizeof(change->why), "%s", refused);
    change_start(store, home, change);
}

/* --- reading ------------------------------------------------------------------------------ */

/* Whose a run is: as takeover.c has it. */
static const char read_rows[] =
    "SELECT posted.sender, posted.number, posted.run, posted.seq, words, posted.key, key_user,"
    " print FROM posted JOIN run ON run.id = posted.run JOIN log ON log.id = run.last_log"
    " LEFT JOIN moved ON moved.run = posted.run WHERE given <> ?1 AND refused IS NULL AND"
    " coalesce(moved.holder, log.replica) = ?1 ORDER BY sender, number LIMIT ?2";

/* False: it has no room. */
static bool copy_row(struct posted_list *list, struct prepared *statement) {
    struct posted *posted = &list->all[list->count];
    struct posted_words *words = &posted->words;
    struct str *texts[] = {&words->text, &words->key, &words->key_user, &words->print};
    *posted = (struct posted){.sender = database_number_of(statement, 0),
                              .number = database_number_of(statement, 1)};
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
    if (ok) {
        database_bind_number(statement, 1, list->replica);
        database_bind_number(statement, 2, POSTED_MAX);
    }
    while (ok && (ok = database_row(db, statement, &row, e)) && row) {
        if (!copy_row(list, statement)) break;
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
