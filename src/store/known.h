/* known: which sessions may be in the store, answered without asking it.
 *
 * The first turn of every conversation asks for a history that does not exist. A Bloom filter
 * of all session keys says so at once, on the caller's loop, without a lock or a thread: "no"
 * is certain, "perhaps" is asked of the store. It grows by layers, each twice the one before,
 * so it takes two to four bytes a session and is never built anew.
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

/* False: certainly never added, as far as this thread can know. */
bool known_perhaps(const struct known *known, struct str workspace, struct str user,
                   struct str session);

#endif
