/* safe: a stranger's words inside a sentence of ours.
 *
 * What a vendor says about a failure ends in logs, events and on the caller's screen. It may
 * hold control characters, a page of HTML, or the key that was sent with the request. The
 * first half of the work, reply_append_safe(), knows what keys look like and stands in
 * dialect.h, because every dialect quotes; the second half knows the very key. What keys look
 * like is base/secret.h's to know.
 *
 * Memory   none.
 * Threads  any; values only.
 */
#ifndef WEIR_PROVIDER_SAFE_H
#define WEIR_PROVIDER_SAFE_H

#include "base/err.h"

/* Put "***" in place of `key`, and of every longer piece of it, in the text of `e`; pieces
 * shorter than SECRET_PIECE_BYTES stay. */
void safe_hide(struct err *e, struct str key);

#endif
