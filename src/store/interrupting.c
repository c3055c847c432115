#include "store/interrupting.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/changes.h"
#include "store/kept.h"
#include "wire/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_MAX_BYTES 128
#define RECORD_MAX_BYTES (64 * KIB)
#define NUMBERS 3 /* the run; the lengths of workspace and user */

struct interrupting_ask {
    struct store_task task;
    int64_t replica;
    struct buf key, bytes; /* of a wish */
    struct arena *arena;   /* of what was read */
    struct interrupting *wishes;
    size_t count;
    interrupting_fn *done; /* NULL: nobody waits */
    void *ctx;
};

/* --- a record ----------------------------------------------------------------------------- */

/* "<replica>-<the lease in hex>" */
static void write_key(struct buf *key, int64_t replica, const struct lease_key *lease) {
    buf_append_i64(key, replica);
    buf_append_byte(key, '-');
    hex_append(key, str_of(lease->bytes, sizeof(lease->bytes)));
}

/* Three numbers; the three names. */
static void write_wish(struct buf *out, const struct interrupting *wish) {
    const uint64_t numbers[NUMBERS] = {wish->run, wish->workspace.len, wish->user.len};
    buf_append(out, str_of((const char *)numbers, sizeof(numbers)));
    buf_append(out, wish->workspace);
    buf_append(out, wish->user);
    buf_append(out, wish->session);
}

static bool read_wish(struct str bytes, struct interrupting *ret) {
    uint64_t numbers[NUMBERS];
    if (bytes.len < sizeof(numbers)) return false;
    memcpy(numbers, bytes.at, sizeof(numbers));
    struct str names = str_skip(bytes, sizeof(numbers));
    if (numbers[1] > names.len || numbers[2] > names.len - numbers[1]) return false;
    ret->run = numbers[0];
    ret->workspace = str_head(names, numbers[1]);
    ret->user = str_head(str_skip(names, numbers[1]), numbers[2]);
    ret->session = str_skip(names, numbers[1] + numbers[2]);
    return true;
}

/* --- asking ------------------------------------------------------------------------------- */

static struct interrupting_ask *interrupting_new(struct store *store) {
    struct interrupting_ask *ask = MEM_NEW(struct interrupting_ask);
    ask->replica = (int64_t)store_epoch(store);
    buf_init(&ask->key, KEY_MAX_BYTES);
    buf_init(&ask->bytes, RECORD_MAX_BYTES);
    return ask;
}

static void on_answer(struct store_task *task, const struct err *failed, void *ctx) {
    struct interrupting_ask *ask = ctx;
    (void)task;
    if (ask->done)
        ask->done(ask->wishes, failed ? 0 : ask->count, failed, ask->ctx);
    else if (failed)
        log_debug("a turn's wish to take the place of others: %s", failed->text);
    arena_free(ask->arena);
    free(ask->wishes);
    buf_done(&ask->key);
    buf_done(&ask->bytes);
    free(ask);
}

static void interrupting_run(struct store *store, struct loop *home,
                             struct interrupting_ask *ask, const struct store_task *task) {
    ask->task = *task;
    ask->task.home = home;
    ask->task.on_done = on_answer;
    ask->task.ctx = ask;
    store_run(store, &ask->task);
}

/* --- wishing ------------------------------------------------------------------------------ */

static bool put_wish(struct database *db, void *ctx, struct err *e) {
    const struct interrupting_ask *ask = ctx;
    db->changed |= CHANGE_POSTED;
    return database_run_with(db,
                             "INSERT INTO kept(space, key, bytes) VALUES(?1, ?2, ?3)"
                             " ON CONFLICT(space, key) DO UPDATE SET bytes = excluded.bytes",
                             VALUES(sql_number(KEPT_INTERRUPTING),
                                    sql_bytes(buf_str(&ask->key)),
                                    sql_bytes(buf_str(&ask->bytes))),
                             e);
}

void interrupting_wish(struct store *store, struct loop *home,
                       const struct interrupting *wish) {
    struct interrupting_ask *ask = interrupting_new(store);
    write_key(&ask->key, ask->replica, &wish->lease);
    write_wish(&ask->bytes, wish);
    interrupting_run(store, home, ask, &(struct store_task){.light = true, .fn = put_wish});
}

static bool remove_wish(struct database *db, void *ctx, struct err *e) {
    const struct interrupting_ask *ask = ctx;
    return database_run_with(
        db, "DELETE FROM kept WHERE space = ?1 AND key = ?2",
        VALUES(sql_number(KEPT_INTERRUPTING), sql_bytes(buf_str(&ask->key))), e);
}

void interrupting_end(struct store *store, struct loop *home, const struct lease_key *lease) {
    struct interrupting_ask *ask = interrupting_new(store);
    write_key(&ask->key, ask->replica, lease);
    interrupting_run(store, home, ask,
                     &(struct store_task){.light = true, .insists = true, .fn = remove_wish});
}

/* --- reading ------------------------------------------------------------------------------ */

static const char read_wishes[] =
    "SELECT bytes FROM kept WHERE space = ?1 AND NOT (key >= ?2 AND key < ?3) LIMIT ?4";

static bool take_wish(struct interrupting_ask *ask, struct prepared *row) {
    struct str bytes;
    if (!arena_str(ask->arena, database_bytes(row, 0), &bytes)) return false;
    ask->count += read_wish(bytes, &ask->wishes[ask->count]);
    return true;
}

static bool run_read(struct database *db, void *ctx, struct err *e) {
    struct interrupting_ask *ask = ctx;
    struct prepared *rows = NULL;
    bool row = false;
    char own[32], past_own[32];
    snprintf(own, sizeof(own), "%" PRId64 "-", ask->replica);
    snprintf(past_own, sizeof(past_own), "%" PRId64 ".", ask->replica); /* what follows '-' */
    arena_free(ask->arena);
    ask->arena = arena_new(INTERRUPTING_MAX * RECORD_MAX_BYTES);
    ask->wishes = mem_resize(ask->wishes, INTERRUPTING_MAX * sizeof(*ask->wishes));
    ask->count = 0;
    bool ok = database_ask(db, read_wishes,
                           VALUES(sql_number(KEPT_INTERRUPTING), sql_bytes(str_from(own)),
                                  sql_bytes(str_from(past_own)), sql_number(INTERRUPTING_MAX)),
                           &rows, e);
    while (ok && (ok = database_row(db, rows, &row, e)) && row) {
        if (!take_wish(ask, rows)) break;
    }
    database_finalize(rows);
    return ok;
}

struct interrupting_ask *interrupting_read(struct store *store, struct loop *home,
                                           interrupting_fn *done, void *ctx) {
    struct interrupting_ask *ask = interrupting_new(store);
    ask->done = done;
    ask->ctx = ctx;
    interrupting_run(store, home, ask,
                     &(struct store_task){.reads_only = true, .fn = run_read});
    return ask;
}

void interrupting_forget(struct interrupting_ask *ask) {
    if (ask) ask->done = NULL;
}
