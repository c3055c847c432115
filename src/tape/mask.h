/* mask: a text or a JSON document without its secrets, the rest byte for byte.
 *
 * What is hidden becomes "***". Masking twice is masking once, so a request that quotes what
 * was recorded is the same request again.
 *
 * Memory   known secrets are borrowed.
 * Threads  any; values only.
 */
#ifndef WEIR_TAPE_MASK_H
#define WEIR_TAPE_MASK_H

#include "wire/json.h"

struct mask {
    const struct str *known; /* keys and header values of the settings */
    size_t known_count;
};

/* Append `text` without secrets. `cuts` are places in it, ascending; each becomes the place in
 * what was appended. */
bool mask_text(const struct mask *mask, struct str text, struct buf *out, size_t *cuts,
               size_t cut_count);

/* Append the accepted value compactly: each string without secrets, and "***" for a string
 * whose member's name says that it is one ("authorization"). */
bool mask_json(const struct mask *mask, struct json value, struct buf *out);

#endif
