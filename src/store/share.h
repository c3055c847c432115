/* share: how much of a table one app of a caller, one caller, and all may have.
 *
 * Who fills a share is refused, or loses rows of their own. Where the share of all is full, a table
 * may take rows from who has the most (once_reply.h); nothing else that one caller does takes
 * anything from another one. An app id is the caller's own word, so an app's share lies within its
 * caller's.
 *
 * A table with shares has the columns caller, app, size (bytes) and until_ms. Rows whose time is
 * over do not count.
 *
 * Memory   none.
 * Threads  the store's, within a task (task.h).
 */
#ifndef WEIR_STORE_SHARE_H
#define WEIR_STORE_SHARE_H

#include "store/database.h"

enum share_of { SHARE_OF_APP, SHARE_OF_CALLER, SHARE_OF_ALL, SHARE_COUNT };

struct share_table {
    const char *name; /* of the table */
    const char *what; /* its rows, for people: "facts" */
    struct {
        int64_t rows, bytes;
    } max[SHARE_COUNT];
};

struct share_owner {
    struct str caller, app;
};

/* Whether all shares have room, with the rows that are there; *ret is the first that has not, or
 * SHARE_COUNT. */
MUST_CHECK bool share_look(struct database *db, const struct share_table *table,
                           const struct share_owner *owner, int64_t unix_ms, enum share_of *ret,
                           struct err *e);

struct str share_name(enum share_of share); /* "caller" */

/* Refuse what filled a share, and count it (weir_store_refused_total). Returns false:
 * ERR_RESOURCE_EXHAUSTED. */
bool share_refuse(const struct share_table *table, enum share_of full, struct err *e);

#endif
