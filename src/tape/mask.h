/* mask: remove secrets from a text or a JSON document; the rest is unchanged.
 *
 * A secret becomes "***". Masking is idempotent, so a request that quotes recorded output still
 * matches its recording.
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

/* Append `text` without secrets. `cuts` are ascending offsets in `text`; each is replaced by
 * the matching offset in the appended text. */
bool mask_text(const struct mask *mask, struct str text, struct buf *out, size_t *cuts,
               size_t cut_count);

/* Append the accepted value compactly, each string without secrets. A string whose member name
 * denotes a secret ("authorization") becomes "***". */
bool mask_json(const struct mask *mask, struct json value, struct buf *out);

#endif
