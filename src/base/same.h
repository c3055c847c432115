/* same: compare secrets without telling how much of them was right.
 *
 * memcmp() stops at the first difference, and how long that took can be measured. These look
 * at every byte, whatever the bytes are.
 *
 * Memory   none.
 * Threads  any.
 */
#ifndef WEIR_BASE_SAME_H
#define WEIR_BASE_SAME_H

#include "base/str.h"

/* Whether `len` bytes are the same, in a time that depends on `len` alone. */
bool same_bytes(const void *a, const void *b, size_t len);

/* Whether somebody gave the secret, in a time that depends on the length of `given` alone: a
 * peer learns neither the secret's bytes nor its length. An empty secret is given by nobody. */
bool same_secret(struct str given, struct str secret);

#endif
