/* jsonb: JSON that PostgreSQL's jsonb holds.
 *
 * It holds no NUL, and no number with very many digits. NUL becomes U+FFFD, and such a number the
 * text of itself: 1e999999 is "1e999999".
 *
 * Memory   appends to the caller's buffer.
 * Threads  any.
 * Source   PostgreSQL 15, 8.14 "JSON Types" and table 8.2: up to 131,072 digits before the point,
 *          and 16,383 after it.
 */
#ifndef WEIR_ORCHESTRATOR_JSONB_H
#define WEIR_ORCHESTRATOR_JSONB_H

#include "base/buf.h"

/* Bytes of a number, and its exponent either way, that are always held. */
#define JSONB_NUMBER_MAX 4096

/* Whether a text of this JSON holds a NUL. */
bool jsonb_has_nul(struct str json);

/* json: valid JSON. At most three times as long. */
void jsonb_put(struct str json, struct buf *out);

#endif
