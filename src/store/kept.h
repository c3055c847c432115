/* kept: small records that a contract keeps, each under a key.
 *
 * A table beside the log. A record is replaced or deleted as a whole; what its bytes mean is
 * its writer's. All changes of one write are committed together. No secret of ours belongs here;
 * a webhook has what its caller wants to be shown.
 *
 * Memory   requests are copied; an answer is borrowed during the callback.
 * Threads  start: any loop; answers come on the loop that was given. Writes are carried out in
 *          the order in which they were started, whatever their loops.
 */
#ifndef WEIR_STORE_KEPT_H
#define WEIR_STORE_KEPT_H

#include "store/store.h"

/* Numbers are for ever. */
enum kept_space {
    KEPT_ACCOUNT = 1,         /* contract/nimi/account: who is logged in */
    KEPT_ACCOUNT_EVENT = 2,   /* by sequence, highest byte first */
    KEPT_ACCOUNT_BINDING = 3, /* those that are not over, by id */
    KEPT_WEBHOOK = 4,         /* contract/a2a: by "<run>-<name>"; erased with the run */
    KEPT_WEBHOOK_SENT = 5,    /* what it was sent, under the same key */
    KEPT_WEBHOOK_CLAIM = 6,   /* the replica that sends to it, too: webhook_claim.h */
    KEPT_INTERRUPTING = 7,    /* a turn is to make way at another replica: interrupting.h */
};

#define KEPT_READ_MAX_BYTES (128 * MIB) /* 4,096 webhooks of 21 KiB and their marks */

/* SQL of the table. Values: space, key, bytes. */
#define KEPT_PUT                                                                               \
    "INSERT INTO kept(space, key, bytes) VALUES(?1, ?2, ?3)"                                   \
    " ON CONFLICT(space, key) DO UPDATE SET bytes = excluded.bytes"
#define KEPT_REMOVE "DELETE FROM kept WHERE space = ?1 AND key = ?2"

struct kept_record {
    enum kept_space space;
    struct str key, bytes;
    bool gone; /* of a write: delete it; no such record is no failure */
};

struct kept_ask;

/* Called once, never before the start function returns. failed is NULL on success; after a
 * write with ERR_OUTCOME_UNKNOWN it may have been made. Of a write: no records. */
typedef void kept_done_fn(const struct kept_record *records, size_t count,
                          const struct err *failed, void *ctx);

/* done  NULL: no caller waits for the outcome, and a failure is only logged */
struct kept_ask *kept_write_start(struct store *store, struct loop *loop,
                                  const struct kept_record *records, size_t count,
                                  kept_done_fn *done, void *ctx);

/* Read all records of the spaces from `first` to `last`, ordered by space and key.
 * errors  ERR_RESOURCE_EXHAUSTED more than KEPT_READ_MAX_BYTES */
struct kept_ask *kept_read_start(struct store *store, struct loop *loop, enum kept_space first,
                                 enum kept_space last, kept_done_fn *done, void *ctx);

/* Those of one space with a key of at least `from` and below `upto`. */
struct kept_ask *kept_read_keys_start(struct store *store, struct loop *loop,
                                      enum kept_space space, struct str from, struct str upto,
                                      kept_done_fn *done, void *ctx);

/* `done` will not be called; a write is still carried out. NULL is fine. */
void kept_forget(struct kept_ask *ask);

#endif
