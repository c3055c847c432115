#include "store/webhook_claim.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/changes.h"
#include "store/kept.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX_BYTES (256 * KIB) /* of a request */
#define TOKEN_BYTES 48
#define CLAIMS_FIRST 16

struct webhook_claim_ask {
    struct store_task task;
    struct webhook_claim_put put; /* its texts are in `asked`; of others only key and number */
    char token[TOKEN_BYTES];      /* "<replica>-<number>" */
    uint64_t sent;
    enum webhook_claim_end end;
    bool stands;
    struct buf asked;
    struct arena *found;          /* of the claims */
    struct webhook_claim *claims; /* the answer of webhook_claims_take() */
    size_t count, room;
    webhook_claim_fn *done; /* both NULL: no caller waits */
    webhook_claims_fn *done_all;
    void *ctx;
};

/* --- asking ------------------------------------------------------------------------------- */

static struct webhook_claim_ask *webhook_claim_ask_new(struct store *store,
                                                       const struct webhook_claim_put *put) {
    struct webhook_claim_ask *ask = MEM_NEW(struct webhook_claim_ask);
    ask->put = *put;
    struct str *const texts[] = {&ask->put.key, &ask->put.bytes, &ask->put.peers};
    assert(put->key.len + put->bytes.len + put->peers.len <= TEXT_MAX_BYTES);
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
    snprintf(ask->token, sizeof(ask->token), "%" PRIu64 "-%" PRIu64, store_epoch(store),
             put->number);
    return ask;
}

static void webhook_claim_on_answer(const struct err *failed, void *ctx) {
    struct webhook_claim_ask *ask = ctx;
    if (ask->done)
        ask->done(ask->stands, failed, ask->ctx);
    else if (ask->done_all)
        ask->done_all(ask->claims, failed ? 0 : ask->count, failed, ask->ctx);
    else if (failed)
        log_debug("store: nobody hears what became of a webhook: %s", failed->text);
    buf_done(&ask->asked);
    arena_free(ask->found);
    free(ask->claims);
    free(ask);
}

static struct webhook_claim_ask *ask_of(struct store *store, struct str key, uint64_t number) {
    return webhook_claim_ask_new(
        store, &(struct webhook_claim_put){
                   .key = key, .bytes = STR_EMPTY, .peers = STR_EMPTY, .number = number});
}

static struct webhook_claim_ask *ask_run(struct store *store, struct loop *home,
                                         struct webhook_claim_ask *ask,
                                         const struct store_task *task) {
    ask->task = *task;
    ask->task.on_done = webhook_claim_on_answer;
    store_run(store, home, &ask->task, ask);
    return ask;
}

void webhook_claim_forget(struct webhook_claim_ask *ask) {
    if (!ask) return;
    ask->done = NULL;
    ask->done_all = NULL;
}

static struct sql_value webhook_claim_key_of(const struct webhook_claim_ask *ask) {
    return sql_bytes(ask->put.key);
}

static struct sql_value token_of(const struct webhook_claim_ask *ask) {
    return sql_bytes(str_from(ask->token));
}

static bool count_rows(struct database *db, const char *sql, struct sql_values values,
                       size_t *ret, struct err *e) {
    int64_t count = 0;
    bool ok = database_number_with(db, sql, values, &count, e);
    *ret = (size_t)count;
    return ok;
}

/* --- room --------------------------------------------------------------------------------- */

/* The keys of a run lie between "7-" and "7.". */
struct run_keys {
    char from[24], upto[24];
};

static struct run_keys keys_of(uint64_t run) {
    struct run_keys keys;
    snprintf(keys.from, sizeof(keys.from), "%" PRIu64 "-", run);
    snprintf(keys.upto, sizeof(keys.upto), "%" PRIu64 ".", run);
    return keys;
}

#define IN_TASK "kept.space = ?1 AND kept.key >= ?2 AND kept.key < ?3"
#define IN_WORKSPACE                                                                           \
    "kept.space = ?1 AND substring(kept.bytes FROM 1 FOR CAST(?2 AS INTEGER)) = ?3"
#define IN_ALL "kept.space = ?1"

/* The oldest that is over, of a list of webhooks. */
#define REMOVE_OVER(which)                                                                     \
    "DELETE FROM kept WHERE space IN (4, 5) AND key = (SELECT kept.key FROM kept WHERE " which \
    " AND NOT EXISTS (SELECT 1 FROM kept AS claim WHERE claim.space = 6 AND"                   \
    " claim.key = kept.key) ORDER BY kept.key LIMIT 1)"
#define COUNT(which) "SELECT count(*) FROM kept WHERE " which
#define COUNT_OVER(which)                                                                      \
    COUNT(which)                                                                               \
    " AND NOT EXISTS (SELECT 1 FROM kept AS claim WHERE claim.space = 6"                       \
    " AND claim.key = kept.key)"

struct webhook_limit {
    const char *count, *count_over, *remove_over;
    struct sql_values values;
    size_t max;
    const char *of;
};

static bool make_room_in(struct database *db, const struct webhook_limit *limit, bool removes,
                         size_t *ret_count, struct err *e) {
    size_t over;
    if (!count_rows(db, limit->count, limit->values, ret_count, e)) return false;
    if (*ret_count < limit->max) return true;
    if (!count_rows(db, limit->count_over, limit->values, &over, e)) return false;
    if (over == 0)
        return err_set(e, ERR_RESOURCE_EXHAUSTED,
                       "there are too many webhooks of tasks that go on: %zu of this %s; "
                       "delete some",
                       *ret_count, limit->of);
    return !removes || database_run_with(db, limit->remove_over, limit->values, e);
}

/* A removal under one limit makes room under the wider ones too, so the narrowest is first. A workspace
 * cannot have too many while all have fewer than it may. */
static bool webhook_claim_make_room(struct database *db, const struct webhook_claim_ask *ask,
                                    bool removes, struct err *e) {
    const struct webhook_claim_put *put = &ask->put;
    const struct run_keys keys = keys_of(put->run);
    size_t count = 0, all = 0;
    const struct webhook_limit task = {COUNT(IN_TASK),
                                       COUNT_OVER(IN_TASK),
                                       REMOVE_OVER(IN_TASK),
                                       VALUES(sql_number(KEPT_WEBHOOK),
                                              sql_bytes(str_from(keys.from)),
                                              sql_bytes(str_from(keys.upto))),
                                       put->limits.of_task,
                                       "task"};
    const struct webhook_limit workspace = {COUNT(IN_WORKSPACE),
                                            COUNT_OVER(IN_WORKSPACE),
                                            REMOVE_OVER(IN_WORKSPACE),
                                            VALUES(sql_number(KEPT_WEBHOOK),
                                                   sql_number((int64_t)put->peers.len),
                                                   sql_bytes(put->peers)),
                                            put->limits.of_workspace,
                                            "workspace"};
    const struct webhook_limit everyone = {
        COUNT(IN_ALL),       COUNT_OVER(IN_ALL),
        REMOVE_OVER(IN_ALL), VALUES(sql_number(KEPT_WEBHOOK)),
        put->limits.all,     "server"};
    return make_room_in(db, &task, removes, &count, e) &&
           count_rows(db, everyone.count, everyone.values, &all, e) &&
           (all < put->limits.of_workspace ||
            make_room_in(db, &workspace, removes, &count, e)) &&
           make_room_in(db, &everyone, removes, &count, e);
}

/* --- putting ------------------------------------------------------------------------------ */

static bool is_known(struct database *db, const struct webhook_claim_ask *ask, bool *ret,
                     struct err *e) {
    return database_has(db, "SELECT 1 FROM kept WHERE space = 4 AND key = ?1",
                        VALUES(webhook_claim_key_of(ask)), ret, e);
}

/* The replica that sends to it now has to hear of it. */
static bool tell_holder(struct database *db, const struct webhook_claim_ask *ask,
                        struct err *e) {
    char own[TOKEN_BYTES];
    bool others = false;
    snprintf(own, sizeof(own), "%" PRId64 "-%%", db->replica);
    bool ok = database_has(
        db, "SELECT 1 FROM kept WHERE space = 6 AND key = ?1 AND NOT bytes LIKE ?2",
        VALUES(webhook_claim_key_of(ask), sql_bytes(str_from(own))), &others, e);
    if (ok && others) db->changed |= CHANGE_WEBHOOKS;
    return ok;
}

static bool put_record(struct database *db, const struct webhook_claim_ask *ask,
                       enum kept_space space, struct sql_value bytes, struct err *e) {
    return database_run_with(db, KEPT_PUT,
                             VALUES(sql_number(space), webhook_claim_key_of(ask), bytes), e);
}

static bool remove_record(struct database *db, const struct webhook_claim_ask *ask,
                          enum kept_space space, struct err *e) {
    return database_run_with(db, KEPT_REMOVE,
                             VALUES(sql_number(space), webhook_claim_key_of(ask)), e);
}

static bool webhook_claim_run_put(struct database *db, void *ctx, struct err *e) {
    const struct webhook_claim_ask *ask = ctx;
    bool known;
    return is_known(db, ask, &known, e) &&
           (known || webhook_claim_make_room(db, ask, true, e)) && tell_holder(db, ask, e) &&
           put_record(db, ask, KEPT_WEBHOOK, sql_bytes(ask->put.bytes), e) &&
           put_record(db, ask, KEPT_WEBHOOK_CLAIM, token_of(ask), e) &&
           remove_record(db, ask, KEPT_WEBHOOK_SENT, e);
}

struct webhook_claim_ask *webhook_claim_put(struct store *store, struct loop *home,
                                            const struct webhook_claim_put *put,
                                            webhook_claim_fn *done, void *ctx) {
    struct webhook_claim_ask *ask = webhook_claim_ask_new(store, put);
    ask->done = done;
    ask->ctx = ctx;
    return ask_run(store, home, ask,
                   &(struct store_task){.light = true, .fn = webhook_claim_run_put});
}

static bool run_room(struct database *db, void *ctx, struct err *e) {
    const struct webhook_claim_ask *ask = ctx;
    bool known;
    return is_known(db, ask, &known, e) &&
           (known || webhook_claim_make_room(db, ask, false, e));
}

struct webhook_claim_ask *webhook_claim_room(struct store *store, struct loop *home,
                                             const struct webhook_claim_put *put,
                                             webhook_claim_fn *done, void *ctx) {
    struct webhook_claim_ask *ask = webhook_claim_ask_new(store, put);
    ask->done = done;
    ask->ctx = ctx;
    return ask_run(store, home, ask, &(struct store_task){.reads_only = true, .fn = run_room});
}

/* --- removing ----------------------------------------------------------------------------- */

static bool remove_all(struct database *db, const struct webhook_claim_ask *ask,
                       struct err *e) {
    return database_run_with(db, "DELETE FROM kept WHERE space BETWEEN 4 AND 6 AND key = ?1",
                             VALUES(webhook_claim_key_of(ask)), e);
}

static bool run_remove(struct database *db, void *ctx, struct err *e) {
    const struct webhook_claim_ask *ask = ctx;
    return tell_holder(db, ask, e) && remove_all(db, ask, e);
}

struct webhook_claim_ask *webhook_claim_remove(struct store *store, struct loop *home,
                                               struct str key, webhook_claim_fn *done,
                                               void *ctx) {
    struct webhook_claim_ask *ask = ask_of(store, key, 0);
    ask->done = done;
    ask->ctx = ctx;
    return ask_run(store, home, ask, &(struct store_task){.light = true, .fn = run_remove});
}

/* --- the replica that has the claim ------------------------------------------------------- */

#define STANDS "SELECT 1 FROM kept WHERE space = 6 AND key = ?1 AND bytes = ?2"

static bool run_check(struct database *db, void *ctx, struct err *e) {
    struct webhook_claim_ask *ask = ctx;
    return database_has(db, STANDS, VALUES(webhook_claim_key_of(ask), token_of(ask)),
                        &ask->stands, e);
}

struct webhook_claim_ask *webhook_claim_check(struct store *store, struct loop *home,
                                              struct str key, uint64_t number,
                                              webhook_claim_fn *done, void *ctx) {
    struct webhook_claim_ask *ask = ask_of(store, key, number);
    ask->done = done;
    ask->ctx = ctx;
    return ask_run(store, home, ask, &(struct store_task){.reads_only = true, .fn = run_check});
}

static bool keep_sent(struct database *db, const struct webhook_claim_ask *ask, struct err *e) {
    char sent[40];
    snprintf(sent, sizeof(sent), "%" PRIu64 "%s", ask->sent,
             ask->end == WEBHOOK_CLAIM_IS_OVER ? WEBHOOK_CLAIM_OVER : "");
    return put_record(db, ask, KEPT_WEBHOOK_SENT, sql_bytes(str_from(sent)), e);
}

static bool run_sent(struct database *db, void *ctx, struct err *e) {
    struct webhook_claim_ask *ask = ctx;
    if (!run_check(db, ask, e)) return false;
    if (!ask->stands) return true;
    switch (ask->end) {
    case WEBHOOK_CLAIM_IS_GONE: return remove_all(db, ask, e);
    case WEBHOOK_CLAIM_IS_OVER:
        return keep_sent(db, ask, e) && remove_record(db, ask, KEPT_WEBHOOK_CLAIM, e);
    case WEBHOOK_CLAIM_GOES_ON: break;
    }
    return keep_sent(db, ask, e);
}

void webhook_claim_sent(struct store *store, struct loop *home, struct str key, uint64_t number,
                        uint64_t sent, enum webhook_claim_end end) {
    struct webhook_claim_ask *ask = ask_of(store, key, number);
    ask->sent = sent;
    ask->end = end;
    ask_run(store, home, ask,
            &(struct store_task){.light = true, .insists = true, .fn = run_sent});
}

/* --- all of them -------------------------------------------------------------------------- */

/* Claims of replicas that are fenced, or gone. */
static const char drop_dead[] =
    "DELETE FROM kept WHERE space = 6 AND"
    " CASE WHEN space = 6 THEN CAST(split_part(convert_from(bytes, 'UTF8'), '-', 1) AS BIGINT)"
    " END NOT IN"
    " (SELECT id FROM replica WHERE fenced = 0)";

/* Also rows that were left by a daemon that had the store for itself. */
static const char take_free[] =
    "INSERT INTO kept(space, key, bytes) SELECT 6, key, ?1 FROM kept WHERE space = 4 AND"
    " NOT EXISTS (SELECT 1 FROM kept AS claim WHERE claim.space = 6 AND claim.key = kept.key)"
    " AND NOT EXISTS (SELECT 1 FROM kept AS sent WHERE sent.space = 5 AND sent.key = kept.key"
    " AND sent.bytes LIKE ?2) ORDER BY key LIMIT ?3";

static const char read_own[] =
    "SELECT claim.key, claim.bytes, coalesce(kept.bytes, ''), coalesce(sent.bytes, ''),"
    " CASE WHEN claim.bytes = ?1 THEN CAST(1 AS BIGINT) ELSE 0 END FROM kept AS claim"
    " LEFT JOIN kept ON kept.space = 4 AND kept.key = claim.key AND claim.bytes = ?1"
    " LEFT JOIN kept AS sent ON sent.space = 5 AND sent.key = claim.key AND claim.bytes = ?1"
    " WHERE claim.space = 6 AND claim.bytes LIKE ?2 ORDER BY claim.key";

static uint64_t number_of(struct str token) {
    struct str number;
    uint64_t ret = 0;
    (void)str_split(token, '-', &number);
    return str_to_u64(number, &ret) ? ret : 0;
}

static bool webhook_claim_take_row(struct webhook_claim_ask *ask, struct prepared *row,
                                   struct err *e) {
    if (ask->count == ask->room) {
        ask->room = ask->room ? 2 * ask->room : CLAIMS_FIRST;
        ask->claims = mem_resize(ask->claims, ask->room * sizeof(*ask->claims));
    }
    struct webhook_claim *claim = &ask->claims[ask->count];
    *claim = (struct webhook_claim){.number = number_of(database_bytes(row, 1)),
                                    .taken = database_number_of(row, 4) == 1};
    if (!arena_str(ask->found, database_bytes(row, 0), &claim->key) ||
        !arena_str(ask->found, database_bytes(row, 2), &claim->bytes) ||
        !arena_str(ask->found, database_bytes(row, 3), &claim->sent))
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the webhooks have more than %zu bytes",
                       KEPT_READ_MAX_BYTES);
    ask->count++;
    return true;
}

static bool read_claims(struct database *db, struct webhook_claim_ask *ask, struct err *e) {
    char own[TOKEN_BYTES];
    snprintf(own, sizeof(own), "%" PRId64 "-%%", db->replica);
    arena_free(ask->found);
    ask->found = arena_new(KEPT_READ_MAX_BYTES);
    ask->count = 0;
    struct database_rows rows =
        database_ask(db, read_own, VALUES(token_of(ask), sql_bytes(str_from(own))), e);
    while (database_next(&rows, e)) rows.ok = webhook_claim_take_row(ask, rows.row, e);
    return database_end(&rows);
}

static bool run_take(struct database *db, void *ctx, struct err *e) {
    struct webhook_claim_ask *ask = ctx;
    return database_run(db, drop_dead, e) &&
           database_run_with(db, take_free,
                             VALUES(token_of(ask), sql_bytes(STR("%" WEBHOOK_CLAIM_OVER)),
                                    sql_number(WEBHOOK_CLAIMS_MAX)),
                             e) &&
           read_claims(db, ask, e);
}

struct webhook_claim_ask *webhook_claims_take(struct store *store, struct loop *home,
                                              uint64_t number, webhook_claims_fn *done,
                                              void *ctx) {
    struct webhook_claim_ask *ask = ask_of(store, STR_EMPTY, number);
    ask->done_all = done;
    ask->ctx = ctx;
    return ask_run(store, home, ask, &(struct store_task){.light = true, .fn = run_take});
}
