/* safe: quote foreign text inside our own error messages.
 *
 * A vendor's error text ends up in logs, in events and on the caller's screen. It may contain
 * control characters, a page of HTML, or the key that was sent with the request. There are two
 * steps. reply_append_safe() hides anything that looks like a key (base/secret.h); it is in
 * dialect.h because every dialect quotes. safe_hide() hides the actual key.
 *
 * Memory   none.
 * Threads  any; values only.
 */
#ifndef WEIR_PROVIDER_SAFE_H
#define WEIR_PROVIDER_SAFE_H

#include "base/err.h"

/* Replace `key`, and pieces of it, with "***" in the text of `e`. Pieces shorter than
 * SECRET_PIECE_BYTES stay. */
void safe_hide(struct err *e, struct str key);

#endif
