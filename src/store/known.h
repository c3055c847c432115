/* known: tells whether a session may be in the store, without asking the store.
 *
 * The first turn of every conversation asks for a history that does not exist. A Bloom filter
 * of all session keys finds that out at once, on the caller's loop, without a lock or a thread:
 * "no" is certain, after "perhaps" the store is asked. It grows in layers, each twice the
 * previous one, so it takes two to four bytes per session and is never rebuilt.
 *
 * Memory   owns its layers, until known_free().
 * Threads  known_add: the store's; known_perhaps: any.
 */
#ifndef WEIR_STORE_KNOWN_H
#define WEIR_STORE_KNOWN_H

#include "base/str.h"

struct known;

struct known *known_new(void);
void known_free(struct known *known);

void known_add(struct known *known, struct str workspace, struct str user, struct str session);

/* False: it was never added, as far as this thread can see. */
bool known_perhaps(const struct known *known, struct str workspace, struct str user,
                   struct str session);

#endif
