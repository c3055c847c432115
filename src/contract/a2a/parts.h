/* parts: a message's parts as content that import_read() takes. Private to this contract.
 *
 *     0.3    {"kind":"text"|"data"|"file", "text" | "data" | "file":{"bytes"|"uri","mimeType","name"}}
 *     1.0    {"text" | "data" | "raw" | "url", "mediaType", "filename"}
 *
 * Memory   appends to the caller's buffer; the arena holds what is decoded.
 * Threads  none.
 * Source   A2A 0.3 6.5; A2A 1.0 4.1.6.
 */
#ifndef WEIR_CONTRACT_A2A_PARTS_H
#define WEIR_CONTRACT_A2A_PARTS_H

#include "base/arena.h"
#include "contract/a2a/dialect.h"
#include "wire/json.h"

/* Append an array of content parts. *ret_pictures: at least one is a picture.
 * errors  as a2a_request_read() */
MUST_CHECK bool a2a_parts_convert(enum a2a_dialect dialect, struct json parts,
                                  struct arena *arena, struct buf *out, bool *ret_pictures,
                                  struct err *e);

#endif
