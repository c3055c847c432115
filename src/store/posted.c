#include "store/posted.h"

#include "base/arena.h"
#include "store/changes.h"
#include "store/single.h"

#include <stdio.h>

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

static void on_posting(const struct err *failed, void *ctx) {
    struct posting *posting = ctx;
    posting->on_done(posting, failed, posting->ctx);
}

void posting_send(struct store *store, struct loop *home, struct posting *posting) {
    posting->sender = (int64_t)store_epoch(store);
    posting->task = (struct store_task){.light = true, .fn = put_row, .on_done = on_posting};
    store_run(store, home, &posting->task, posting);
}

static bool look_at_row(struct database *db, void *ctx, struct err *e) {
    struct posting *posting = ctx;
    struct database_rows rows =
        database_ask(db,
                     "SELECT refusal, refused FROM posted WHERE"
                     " sender = ?1 AND number = ?2 AND refused IS NOT NULL",
                     VALUES(ROW(posting)), e);
    posting->refused = POSTED_ACCEPTED;
    if (database_next(&rows, e)) {
        posting->refused = (enum posted_refusal)database_number_of(rows.row, 0);
        snprintf(posting->why, sizeof(posting->why), STR_FMT,
                 STR_ARG(database_bytes(rows.row, 1)));
    }
    return database_end(&rows);
}

void posting_look(struct store *store, struct loop *home, struct posting *posting) {
    posting->task =
        (struct store_task){.reads_only = true, .fn = look_at_row, .on_done = on_posting};
    store_run(store, home, &posting->task, posting);
}

/* The commit's outcome may have been unknown before: then the row is gone, and none is open. */
static bool withdraw_row(struct database *db, void *ctx, struct err *e) {
    struct posting *posting = ctx;
    bool stays = true,
         ok = database_run_with(db,
                                "DELETE FROM posted WHERE sender = ?1 AND number = ?2"
                                " AND taken = 0 AND refused IS NULL",
                                VALUES(ROW(posting)), e) &&
              database_has(db, "SELECT 1 FROM posted WHERE sender = ?1 AND number = ?2",
                           VALUES(ROW(posting)), &stays, e);
    posting->withdrawn = ok && !stays;
    return ok;
}

void posting_withdraw(struct store *store, struct loop *home, struct posting *posting) {
    posting->task =
        (struct store_task){.light = true, .fn = withdraw_row, .on_done = on_posting};
    store_run(store, home, &posting->task, posting);
}

/* --- changing a row ----------------------------------------------------------------------- */

/* A row that stays is removed with its sender. One that stays taken is read again by its taker,
 * which knows what it has given. */
static void change_row(struct store *store, struct loop *home, const char *sql,
                       struct sql_values values, uint64_t changed) {
    store_run_single(
        store, home,
        &(struct store_single){.sql = sql,
                               .values = values,
                               .changed = changed,
                               .light = true,
                               .insists = true,
                               .lost = "the row of a posted answer stays as it is"});
}

void posting_remove(struct store *store, struct loop *home, int64_t number) {
    change_row(store, home, "DELETE FROM posted WHERE sender = ?1 AND number = ?2",
               VALUES(sql_number((int64_t)store_epoch(store)), sql_number(number)), 0);
}

void posted_release(struct store *store, struct loop *home, struct posted_id id) {
    change_row(store, home,
               "UPDATE posted SET taken = 0 WHERE sender = ?1 AND number = ?2"
               " AND taken = ?3 AND refused IS NULL",
               VALUES(ROW(&id), sql_number((int64_t)store_epoch(store))), 0);
}

void posted_refuse(struct store *store, struct loop *home, struct posted_id id,
                   enum posted_refusal refusal, const char *why) {
    change_row(store, home,
               "UPDATE posted SET refusal = ?4, refused = ?5 WHERE sender = ?1"
               " AND number = ?2 AND taken IN (0, ?3) AND refused IS NULL",
               VALUES(ROW(&id), sql_number((int64_t)store_epoch(store)), sql_number(refusal),
                      sql_bytes(str_head(str_from(why), POSTED_WHY_BYTES - 1))),
               CHANGE_POSTED);
}

/* --- taking ------------------------------------------------------------------------------- */

static bool posted_take_row(struct database *db, void *ctx, struct err *e) {
    struct posted_take *take = ctx;
    bool ok = database_run_with(db,
                                "UPDATE posted SET taken = ?3 WHERE sender = ?1 AND number = ?2"
                                " AND taken IN (0, ?3) AND refused IS NULL",
                                VALUES(ROW(&take->id), sql_number(db->replica)), e);
    take->taken = ok && database_changes(db) == 1;
    return ok;
}

static void on_taken(const struct err *failed, void *ctx) {
    struct posted_take *take = ctx;
    take->on_done(take, failed, take->ctx);
}

void posted_take(struct store *store, struct loop *home, struct posted_take *take) {
    take->task = (struct store_task){.light = true, .fn = posted_take_row, .on_done = on_taken};
    store_run(store, home, &take->task, take);
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
    posted_list_done(list);
    list->arena = arena_new(READ_MAX_BYTES);
    struct database_rows rows =
        database_ask(db, read_rows,
                     VALUES(sql_number(db->replica), sql_number(POSTED_MAX),
                            sql_number(list->after.sender), sql_number(list->after.number)),
                     e);
    while (!list->more && database_next(&rows, e))
        list->more = !copy_row(list, rows.row) || list->count == POSTED_MAX;
    return database_end(&rows);
}

static void posted_on_read(const struct err *failed, void *ctx) {
    struct posted_list *list = ctx;
    list->on_done(list, failed, list->ctx);
}

void posted_read(struct store *store, struct loop *home, struct posted_list *list) {
    list->task = (struct store_task){
        .reads_only = true, .needs_tables = true, .fn = read_posted, .on_done = posted_on_read};
    store_run(store, home, &list->task, list);
}

void posted_list_done(struct posted_list *list) {
    arena_free(list->arena);
    list->arena = NULL;
    list->count = 0;
    list->more = false;
}
