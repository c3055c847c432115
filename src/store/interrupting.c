#include "store/interrupting.h"

#include "base/arena.h"
#include "base/mem.h"
#include "store/changes.h"
#include "store/kept.h"
#include "store/single.h"
#include "wire/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_MAX_BYTES 128
#define RECORD_MAX_BYTES (64 * KIB)
#define NUMBERS 3 /* the run; the lengths of workspace and user */

struct interrupting_ask {
    struct store_task task;
    struct arena *arena;
    struct interrupting *wishes;
    size_t count;
    interrupting_fn *done; /* NULL: no caller waits */
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

/* --- wishing ------------------------------------------------------------------------------ */

#define LOST "a turn's wish to take the place of others"

void interrupting_wish(struct store *store, struct loop *home,
                       const struct interrupting *wish) {
    struct buf key, bytes;
    buf_init(&key, KEY_MAX_BYTES);
    buf_init(&bytes, RECORD_MAX_BYTES);
    write_key(&key, (int64_t)store_epoch(store), &wish->lease);
    write_wish(&bytes, wish);
    store_run_single(store, home,
                     &(struct store_single){.sql = KEPT_PUT,
                                            .values = VALUES(sql_number(KEPT_INTERRUPTING),
                                                             sql_bytes(buf_str(&key)),
                                                             sql_bytes(buf_str(&bytes))),
                                            .changed = CHANGE_POSTED,
                                            .light = true,
                                            .lost = LOST});
    buf_done(&key);
    buf_done(&bytes);
}

void interrupting_end(struct store *store, struct loop *home, const struct lease_key *lease) {
    struct buf key;
    buf_init(&key, KEY_MAX_BYTES);
    write_key(&key, (int64_t)store_epoch(store), lease);
    store_run_single(store, home,
                     &(struct store_single){.sql = KEPT_REMOVE,
                                            .values = VALUES(sql_number(KEPT_INTERRUPTING),
                                                             sql_bytes(buf_str(&key))),
                                            .light = true,
                                            .insists = true,
                                            .lost = LOST});
    buf_done(&key);
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
    char own[32], past_own[32];
    snprintf(own, sizeof(own), "%" PRId64 "-", db->replica);
    snprintf(past_own, sizeof(past_own), "%" PRId64 ".", db->replica); /* what follows '-' */
    arena_free(ask->arena);
    ask->arena = arena_new(INTERRUPTING_MAX * RECORD_MAX_BYTES);
    ask->wishes = mem_resize(ask->wishes, INTERRUPTING_MAX * sizeof(*ask->wishes));
    ask->count = 0;
    struct database_rows rows =
        database_ask(db, read_wishes,
                     VALUES(sql_number(KEPT_INTERRUPTING), sql_bytes(str_from(own)),
                            sql_bytes(str_from(past_own)), sql_number(INTERRUPTING_MAX)),
                     e);
    while (database_next(&rows, e) && take_wish(ask, rows.row)) continue;
    return database_end(&rows);
}

static void on_read(const struct err *failed, void *ctx) {
    struct interrupting_ask *ask = ctx;
    if (ask->done) ask->done(ask->wishes, failed ? 0 : ask->count, failed, ask->ctx);
    arena_free(ask->arena);
    free(ask->wishes);
    free(ask);
}

struct interrupting_ask *interrupting_read(struct store *store, struct loop *home,
                                           interrupting_fn *done, void *ctx) {
    struct interrupting_ask *ask = MEM_NEW(struct interrupting_ask);
    ask->done = done;
    ask->ctx = ctx;
    ask->task = (struct store_task){.reads_only = true, .fn = run_read, .on_done = on_read};
    store_run(store, home, &ask->task, ask);
    return ask;
}

void interrupting_forget(struct interrupting_ask *ask) {
    if (ask) ask->done = NULL;
}
