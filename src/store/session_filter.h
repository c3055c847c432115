/* session_filter: tells whether a session may be in the store, without asking the store.
 *
 * The first turn of every conversation asks for a history that does not exist. A Bloom filter
 * of all session keys finds that out at once, on the caller's loop, without a lock or a thread:
 * "no" is certain, after "perhaps" the store is asked. It grows in layers, each twice the
 * previous one, so it takes two to four bytes per session and is never rebuilt.
 *
 * Memory   owns its layers, until session_filter_free().
 * Threads  session_filter_add: the store's; session_filter_perhaps: any.
 */
#ifndef WEIR_STORE_SESSION_FILTER_H
#define WEIR_STORE_SESSION_FILTER_H

#include "base/str.h"

struct session_filter;

struct session_filter *session_filter_new(void);
void session_filter_free(struct session_filter *known);

void session_filter_add(struct session_filter *known, struct str workspace, struct str user,
                        struct str session);

/* False: it was never added, as far as this thread can see. */
bool session_filter_perhaps(const struct session_filter *known, struct str workspace,
                            struct str user, struct str session);

#endif
