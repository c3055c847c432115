#include "store/lease.h"

#include "store/changes.h"
#include "store/single.h"

#include <nettle/sha2.h>
#include <stdio.h>

/* --- keys --------------------------------------------------------------------------------- */

struct lease_key lease_key(enum lease_of of, const struct str *texts, size_t count) {
    struct sha256_ctx hash;
    struct lease_key key;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        uint8_t len[8];
        for (size_t n = 0; n < sizeof(len); n++)
            len[n] = (uint8_t)((uint64_t)texts[i].len >> (8 * n));
        sha256_update(&hash, sizeof(len), len);
        if (texts[i].len) sha256_update(&hash, texts[i].len, (const uint8_t *)texts[i].at);
    }
    sha256_digest(&hash, sizeof(digest), digest);
    key.bytes[0] = (char)of;
    memcpy(key.bytes + 1, digest, sizeof(digest));
    return key;
}

static struct str store_lease_key_of(const struct lease_request *request) {
    return str_of(request->key.bytes, LEASE_KEY_BYTES);
}

/* --- asking ------------------------------------------------------------------------------- */

/* Its holder keeps it, also when that one is dead: who takes over frees it. */
static const char take[] =
    "INSERT INTO lease(key, holder) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE"
    " SET holder = excluded.holder WHERE lease.holder = excluded.holder OR"
    " (lease.holder = -excluded.holder AND ?3 > 0)";

static const char who[] =
    "SELECT name FROM lease JOIN replica ON replica.id = abs(lease.holder) WHERE key = ?1";

static bool find_holder(struct database *db, struct lease_request *request, struct err *e) {
    struct database_rows rows =
        database_ask(db, who, VALUES(sql_bytes(store_lease_key_of(request))), e);
    if (database_next(&rows, e))
        snprintf(request->holder, sizeof(request->holder), STR_FMT,
                 STR_ARG(database_bytes(rows.row, 0)));
    return database_end(&rows);
}

static bool take_lease(struct database *db, void *ctx, struct err *e) {
    struct lease_request *request = ctx;
    bool ok = database_run_with(db, take,
                                VALUES(sql_bytes(store_lease_key_of(request)),
                                       sql_number(db->replica), sql_number(request->recovers)),
                                e);
    if (ok) request->held = database_changes(db) == 1;
    request->holder[0] = '\0';
    return ok && (request->held || find_holder(db, request, e));
}

static void on_asked(const struct err *failed, void *ctx) {
    struct lease_request *request = ctx;
    request->on_done(request, failed, request->ctx);
}

void lease_ask(struct store *store, struct loop *home, struct lease_request *request) {
    request->task = (struct store_task){
        .light = true, .takes = true, .fn = take_lease, .on_done = on_asked};
    store_run(store, home, &request->task, request);
}

static const char is_ours[] = "SELECT 1 FROM lease WHERE key = ?1 AND holder = ?2";

static bool look_at_lease(struct database *db, void *ctx, struct err *e) {
    struct lease_request *request = ctx;
    request->holder[0] = '\0';
    return database_has(db, is_ours,
                        VALUES(sql_bytes(store_lease_key_of(request)), sql_number(db->replica)),
                        &request->held, e) &&
           (request->held || find_holder(db, request, e));
}

void lease_look(struct store *store, struct loop *home, struct lease_request *request) {
    request->task =
        (struct store_task){.reads_only = true, .fn = look_at_lease, .on_done = on_asked};
    store_run(store, home, &request->task, request);
}

/* --- giving back -------------------------------------------------------------------------- */

uint64_t lease_change(const struct lease_key *key) {
    return CHANGE_FREED | change_name(str_of(key->bytes, sizeof(key->bytes)));
}

/* A failure says that the store was closed before: what this replica has is free when it ends. */
void lease_give_back(struct store *store, struct loop *home, const struct lease_key *key) {
    store_run_single(
        store, home,
        &(struct store_single){.sql = "DELETE FROM lease WHERE key = ?1 AND holder = ?2",
                               .values = VALUES(sql_bytes(str_of(key->bytes, LEASE_KEY_BYTES)),
                                                sql_number((int64_t)store_epoch(store))),
                               .changed = lease_change(key),
                               .light = true,
                               .insists = true});
}
