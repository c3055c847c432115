/* record: what a caller wants remembered, as it is stored.
 *
 * A record's time is when the thing happened (occurred_at, observed_at), else when another
 * system committed it, else now. Its words, for recall, are the texts of its payload.
 *
 * Private to contract/nimi/memory.
 *
 * Memory   a record's texts are in the caller's arena.
 * Threads  any; values only.
 * Source   contracts/nimi.md 1.11.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_RECORD_H
#define WEIR_CONTRACT_NIMI_MEMORY_RECORD_H

#include "contract/nimi/memory/locator.h"

/* Microseconds since 1970 of a time that a caller named.
 * errors  PROTOCOL_ENVELOPE_INVALID no year from 1 to 9999 */
MUST_CHECK bool record_moment(const char *name, const struct google_timestamp *at,
                              int64_t *ret_us, struct fault *fault);

/* Make what is stored of `input`, and *ret_message, which is the reply's. `id` is its memory_id,
 * in the arena, and now_us when it is retained.
 * errors  PROTOCOL_ENVELOPE_INVALID */
MUST_CHECK bool record_make(const struct nimi_memory_record_input *input,
                            const struct locator *bank, struct str id, int64_t now_us,
                            struct arena *arena, struct bank_record *ret,
                            struct nimi_memory_record *ret_message, struct fault *fault);

#endif
