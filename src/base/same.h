/* same: compare secrets in constant time.
 *
 * memcmp() stops at the first difference, and a peer can measure how long it took. These
 * functions always look at every byte.
 *
 * Memory   none.
 * Threads  any.
 */
#ifndef WEIR_BASE_SAME_H
#define WEIR_BASE_SAME_H

#include "base/str.h"

/* Whether `len` bytes are equal. The time depends only on `len`. */
bool same_bytes(const void *a, const void *b, size_t len);

/* Whether `given` is the secret. The time depends only on the length of `given`, so a peer
 * learns neither the secret's bytes nor its length. An empty secret never matches. */
bool same_secret(struct str given, struct str secret);

#endif
