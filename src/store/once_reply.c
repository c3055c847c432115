#include "store/once_reply.h"

#include "base/same.h"
#include "metrics/metrics.h"
#include "store/changes.h"
#include "store/single.h"

#include <assert.h>

static struct str once_reply_key_of(const struct once_claim *claim) {
    return str_of(claim->key, sizeof(claim->key));
}

/* --- claiming ----------------------------------------------------------------------------- */

static void read_claim(struct prepared *statement, struct once_claim *claim) {
    struct str print = database_bytes(statement, 0);
    bool is_its = database_number_of(statement, 1) == claim->replica &&
                  database_number_of(statement, 2) == claim->number;
    if (print.len != sizeof(claim->print) ||
        !same_bytes(print.at, claim->print, sizeof(claim->print))) {
        claim->found = ONCE_OTHER;
    } else if (!database_is_null(statement, 3)) {
        claim->found = ONCE_KEPT;
        buf_clear(&claim->reply);
        buf_append(&claim->reply, database_bytes(statement, 3));
    } else {
        claim->found = is_its ? ONCE_NEW : ONCE_MAKING;
    }
}

static bool look_at_claim(struct database *db, struct once_claim *claim, struct err *e) {
    struct database_rows rows =
        database_ask(db, "SELECT print, holder, number, bytes FROM once_reply WHERE key = ?1",
                     VALUES(sql_bytes(once_reply_key_of(claim))), e);
    claim->found = ONCE_MAKING;
    if (database_next(&rows, e)) read_claim(rows.row, claim);
    return database_end(&rows);
}

static const struct share_table once_replies = {
    .name = "once_reply",
    .what = "writes with a key",
    .max = {[SHARE_OF_APP] = {ONCE_APP_MAX, ONCE_APP_MAX_BYTES},
            [SHARE_OF_CALLER] = {ONCE_CALLER_MAX, ONCE_CALLER_MAX_BYTES},
            [SHARE_OF_ALL] = {ONCE_ALL_MAX, ONCE_ALL_MAX_BYTES}}};

/* Some that are over, and the one of this key if it is. */
static bool remove_some(struct database *db, const struct once_claim *claim, struct err *e) {
    return database_run_with(db,
                             "DELETE FROM once_reply WHERE key IN (SELECT key FROM once_reply"
                             " WHERE until_ms <= ?1 ORDER BY until_ms LIMIT ?2)",
                             VALUES(sql_number(claim->unix_ms), sql_number(ONCE_SWEPT_MAX)),
                             e) &&
           database_run_with(
               db, "DELETE FROM once_reply WHERE key = ?1 AND until_ms <= ?2",
               VALUES(sql_bytes(once_reply_key_of(claim)), sql_number(claim->unix_ms)), e);
}

/* What a reply weighs besides its bytes, so that rows and bytes fill the share of all alike. */
#define ROW_WEIGHS "26843"
static_assert(ONCE_ALL_MAX_BYTES / ONCE_ALL_MAX == 26843, "ROW_WEIGHS");

static const char *const oldest[] = {
    [SHARE_OF_APP] = "DELETE FROM once_reply WHERE key IN (SELECT key FROM once_reply"
                     " WHERE caller = ?1 AND app = ?2 AND bytes IS NOT NULL"
                     " ORDER BY until_ms LIMIT 16)",
    [SHARE_OF_CALLER] = "DELETE FROM once_reply WHERE key IN (SELECT key FROM once_reply"
                        " WHERE caller = ?1 AND bytes IS NOT NULL ORDER BY until_ms LIMIT 16)",
    [SHARE_OF_ALL] = "DELETE FROM once_reply WHERE key IN (SELECT key FROM once_reply"
                     " WHERE bytes IS NOT NULL AND caller = (SELECT caller FROM once_reply"
                     " WHERE bytes IS NOT NULL GROUP BY caller"
                     " ORDER BY count(*) * " ROW_WEIGHS " + sum(size) DESC, caller LIMIT 1)"
                     " ORDER BY until_ms LIMIT 16)",
};

/* Of whom the oldest are: parameters of the statements above. */
static const size_t oldest_values[] = {
    [SHARE_OF_APP] = 2, [SHARE_OF_CALLER] = 1, [SHARE_OF_ALL] = 0};

/* A few, so that not every claim has to. */
static bool remove_oldest(struct database *db, const struct once_claim *claim,
                          enum share_of full, struct err *e) {
    const struct sql_value values[] = {sql_bytes(claim->owner.caller),
                                       sql_bytes(claim->owner.app)};
    if (!database_run_with(db, oldest[full], (struct sql_values){values, oldest_values[full]},
                           e))
        return false;
    int64_t removed = database_changes(db);
    if (!removed) return share_refuse(&once_replies, full, e);
    metrics_report(METRIC_STORE_EVICTED, (uint64_t)removed,
                   (struct str[]){str_from(once_replies.name), share_name(full)});
    return true;
}

/* A claim that fills a share makes room there, as long as there is a reply to forget. */
static bool once_reply_make_room(struct database *db, const struct once_claim *claim,
                                 struct err *e) {
    for (;;) {
        enum share_of full = SHARE_COUNT;
        if (!share_look(db, &once_replies, &claim->owner, claim->unix_ms, &full, e))
            return false;
        if (full == SHARE_COUNT) return true;
        if (!remove_oldest(db, claim, full, e)) return false;
    }
}

/* It may have been claimed before, by a commit whose outcome was unknown. A key that is there is
 * answered, however full its share is. */
static bool put_claim(struct database *db, void *ctx, struct err *e) {
    struct once_claim *claim = ctx;
    if (!remove_some(db, claim, e) ||
        !database_run_with(
            db,
            "INSERT INTO once_reply(key, print, holder, number, until_ms, caller, app)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(key) DO NOTHING",
            VALUES(sql_bytes(once_reply_key_of(claim)),
                   sql_bytes(str_of(claim->print, sizeof(claim->print))),
                   sql_number(claim->replica), sql_number(claim->number), sql_number(INT64_MAX),
                   sql_bytes(claim->owner.caller), sql_bytes(claim->owner.app)),
            e))
        return false;
    if (database_changes(db) == 1 && !once_reply_make_room(db, claim, e)) return false;
    return look_at_claim(db, claim, e);
}

static void on_claimed(const struct err *failed, void *ctx) {
    struct once_claim *claim = ctx;
    claim->on_done(claim, failed, claim->ctx);
}

void once_claim_start(struct store *store, struct loop *home, struct once_claim *claim) {
    claim->replica = (int64_t)store_epoch(store);
    claim->task = (struct store_task){.takes = true, .fn = put_claim, .on_done = on_claimed};
    store_run(store, home, &claim->task, claim);
}

uint64_t once_reply_change(const uint8_t key[ONCE_REPLY_KEY_BYTES]) {
    return CHANGE_FREED | change_name(str_of((const char *)key, ONCE_REPLY_KEY_BYTES));
}

/* --- its end ------------------------------------------------------------------------------ */

struct kept_reply kept_reply_of(const struct once_claim *claim, struct str reply,
                                int64_t until_ms) {
    struct kept_reply made = {.replica = claim->replica,
                              .number = claim->number,
                              .until_ms = until_ms,
                              .reply = reply};
    memcpy(made.key, claim->key, sizeof(made.key));
    return made;
}

#define ITS " WHERE key = ?1 AND holder = ?2 AND number = ?3 AND bytes IS NULL"

/* The values of ITS; it has the key of `made`. */
#define VALUES_OF_ITS(made)                                                                    \
    sql_bytes(key_made(made)), sql_number((made)->replica), sql_number((made)->number)

static const char keep[] = "UPDATE once_reply SET bytes = ?4, until_ms = ?5, size = ?6" ITS;

#define VALUES_TO_KEEP(made)                                                                   \
    VALUES(VALUES_OF_ITS(made), sql_bytes((made)->reply), sql_number((made)->until_ms),        \
           sql_number((int64_t)(made)->reply.len))

static struct str key_made(const struct kept_reply *made) {
    return str_of(made->key, sizeof(made->key));
}

bool once_reply_put(struct database *db, const struct kept_reply *made, struct err *e) {
    if (!made) return true;
    db->changed = change_join(db->changed, once_reply_change(made->key));
    return database_run_with(db, keep, VALUES_TO_KEEP(made), e);
}

void once_reply_keep(struct store *store, struct loop *home, const struct kept_reply *made,
                     once_kept_fn *kept, void *ctx) {
    assert(made->reply.len <= ONCE_REPLY_MAX_BYTES);
    store_run_single(store, home,
                     &(struct store_single){.sql = keep,
                                            .values = VALUES_TO_KEEP(made),
                                            .changed = once_reply_change(made->key),
                                            .insists = true,
                                            .done = kept,
                                            .ctx = ctx});
}

/* A failure says that the store was closed before: the row goes with this replica. */
void once_reply_drop(struct store *store, struct loop *home, const struct once_claim *claim) {
    const struct kept_reply made = kept_reply_of(claim, STR_EMPTY, 0);
    store_run_single(store, home,
                     &(struct store_single){.sql = "DELETE FROM once_reply" ITS,
                                            .values = VALUES(VALUES_OF_ITS(&made)),
                                            .changed = once_reply_change(made.key),
                                            .insists = true});
}

void once_reply_forget(struct store *store, struct loop *home,
                       const uint8_t key[ONCE_REPLY_KEY_BYTES], struct str reply) {
    store_run_single(
        store, home,
        &(struct store_single){
            .sql = "DELETE FROM once_reply WHERE key = ?1 AND bytes = ?2",
            .values = VALUES(sql_bytes(str_of(key, ONCE_REPLY_KEY_BYTES)), sql_bytes(reply)),
            .insists = true});
}
