/* key: which run an idempotency key of a caller stands for.
 *
 * The key and the fingerprint of its request stand in the run's first event, so they are on
 * disk exactly with it; this table is filled from there. A key that stood for a run long ago
 * may be given to another one: the newest counts. When it is free again, who asks decides.
 * A key may also stand for a human's answer to a run that waited: then it came with an item of
 * the run's journal, and what counts is what the run said after that question.
 * Entries that are older than any that counts are deleted by a walk over the table, some
 * entries at a time: no index is kept for it, and no commit waits for long.
 *
 * Memory   borrows texts for the call, and owns the place that the walk has reached.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_KEY_H
#define WEIR_STORE_KEY_H

#include "base/buf.h"
#include "store/database.h"
#include "store/store.h"

/* An EVENT_ITEM: a human's answer came with an idempotency key. */
#define KEY_ITEM "application/vnd.weir.key"

struct key_item {
    struct str user, key, print; /* whose key, and the fingerprint of what he sent */
    uint64_t seq;                /* of the question */
};

/* False at the buffer's limit. */
bool key_item_append(const struct key_item *item, struct buf *out);

/* Views into `bytes`. False: key_item_append() did not write that. */
MUST_CHECK bool key_item_read(struct str bytes, struct key_item *ret);

struct key_entry {
    struct str workspace, user, key;
    struct store_key means;
};

struct key_table {
    struct database *db;
    sqlite3_stmt *put, *find, *walk, *prune;
    struct buf reached; /* the entry that the walk looked at last; empty: it begins */
    size_t reached_workspace_len, reached_user_len; /* of that, the rest is the key */
};

MUST_CHECK bool key_open(struct key_table *table, struct database *db, struct err *e);
void key_close(struct key_table *table);

/* Within the caller's transaction. */
MUST_CHECK bool key_write(struct key_table *table, const struct key_entry *entry,
                          struct err *e);

/* Fill entry->means, with run 0 when nobody has used the key. The fingerprint is in `arena`. */
MUST_CHECK bool key_find(struct key_table *table, struct key_entry *entry, struct arena *arena,
                         struct err *e);

#define KEY_WALK_ENTRIES 256

/* Look at the next KEY_WALK_ENTRIES entries and delete those that began before `before_ms`.
 * *ret_end: there are no more, and the next walk begins at the first. */
MUST_CHECK bool key_prune(struct key_table *table, int64_t before_ms, bool *ret_end,
                          struct err *e);

#endif
