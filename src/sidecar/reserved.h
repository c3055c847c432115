/* reserved: the fields of an answer that belong to the sidecar.
 *
 *     trace_id, tokens {input, output, total}, cost_usd, model, latency_ms
 *
 * An agent's values under these names are dropped, even if ours are unknown; all other members
 * stay as they came.
 *
 * Memory   appends to the caller's buffer.
 * Threads  none; values only.
 * Source   contracts/agentbreeder.md 1.7 and 4.6.
 */
#ifndef WEIR_SIDECAR_RESERVED_H
#define WEIR_SIDECAR_RESERVED_H

#include "wire/json.h"

/* How `tokens` is written; upstream's A2A client expects a number there and fails at an object. */
enum reserved_tokens { RESERVED_TOKENS_OBJECT, RESERVED_TOKENS_TOTAL, RESERVED_TOKENS_OFF };

struct reserved {
    struct str trace_id;
    struct str model;             /* empty: unknown */
    int64_t input, output, total; /* tokens, or TOKENS_UNKNOWN */
    int64_t cost_nano;            /* or TOKENS_UNKNOWN */
    uint64_t latency_ms;
    enum reserved_tokens tokens;
};

/* Append the object with these fields in place of its own. `object` is an object, or JSON_NONE
 * for one without members. */
void reserved_write(struct json object, const struct reserved *fields, struct buf *out);

/* Append an error's envelope with `trace_id` in place of its own. */
void reserved_write_trace(struct json object, struct str trace_id, struct buf *out);

#endif
