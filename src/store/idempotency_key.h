/* idempotency_key: which run a caller's idempotency key stands for.
 *
 * The key and the fingerprint of its request are in the run's first event, so they reach the
 * disk together with it; this table is filled from there. An old key may be reused for another
 * run: the newest run counts. The caller of key_find() decides when a key is free again. A key
 * may also stand for a human's answer to a run that waited. It is then in an item of the run's
 * journal, and means what the run said after that question. Entries too old to count are
 * deleted by a walk over the table, some entries at a time: this needs no index, and no commit
 * waits for long.
 *
 * Memory   borrows texts during a call, and owns the position of the walk.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_IDEMPOTENCY_KEY_H
#define WEIR_STORE_IDEMPOTENCY_KEY_H

#include "base/buf.h"
#include "store/database.h"
#include "store/store.h"

/* An EVENT_ITEM: a human's answer came with an idempotency key. */
#define KEY_ITEM "application/vnd.weir.key"

struct key_item {
    struct str user, key, print; /* whose key, and the fingerprint of the answer */
    uint64_t seq;                /* of the question */
};

/* False at the buffer's limit. */
bool key_item_append(const struct key_item *item, struct buf *out);

/* Returns views into `bytes`. False: key_item_append() did not write these bytes. */
MUST_CHECK bool key_item_read(struct str bytes, struct key_item *ret);

struct key_entry {
    struct str workspace, user, key;
    struct store_key means;
};

struct key_table {
    struct database *db;
    struct prepared *put, *find, *walk, *prune;
    struct buf reached; /* the last entry the walk looked at; empty: at the start */
    size_t reached_workspace_len, reached_user_len; /* of that, the rest is the key */
};

MUST_CHECK bool key_open(struct key_table *table, struct database *db, struct err *e);
void key_close(struct key_table *table);

/* Within the caller's transaction. */
MUST_CHECK bool key_write(struct key_table *table, const struct key_entry *entry,
                          struct err *e);

/* Fill entry->means; run 0: the key was never used. The fingerprint is in `arena`. */
MUST_CHECK bool key_find(struct key_table *table, struct key_entry *entry, struct arena *arena,
                         struct err *e);

#define KEY_WALK_ENTRIES 256

/* Look at the next KEY_WALK_ENTRIES entries and delete those that began before `before_ms`.
 * *ret_end: the end was reached, and the next call starts over. */
MUST_CHECK bool key_prune(struct key_table *table, int64_t before_ms, bool *ret_end,
                          struct err *e);

#endif
