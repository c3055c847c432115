/* acted: the calls of a turn that may have had an effect, for a failure that names them.
 *
 * Asking again after such a failure could repeat the effect, so the answer says which calls were
 * made: those without an answer first, then those that were answered.
 *
 * Memory   owns what it was given; acted_done() ends it.
 * Threads  none; values only.
 * Source   checks.md K28.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_ACTED_H
#define WEIR_CONTRACT_AGENTBREEDER_ACTED_H

#include "base/text.h"
#include "wire/json.h"

enum acted_effect {
    ACTED_UNKNOWN, /* the call was made; its answer is lost */
    ACTED_DONE,    /* it was answered */
    ACTED_FAILED,  /* it was answered with an error */
    ACTED_EFFECT_COUNT,
};

/* Calls of one kind of certainty. */
struct acted_calls {
    struct buf items; /* of a JSON array: the first ones, as many as there is room for */
    struct text tool; /* of the first */
    size_t count;
};

struct acted {
    struct acted_calls unknown, answered;
};

void acted_init(struct acted *acted);
void acted_done(struct acted *acted);

/* `args` is JSON; long ones are left out of what is written. */
void acted_add(struct acted *acted, struct str tool, struct str args, enum acted_effect effect);

/* Append `message`, and a clause that names what was done, if anything was. */
void acted_say(const struct acted *acted, struct str message, struct buf *out);

/* Write the member "calls": [{"name","args","effect"}], unless nothing was done. */
void acted_write(const struct acted *acted, struct json_writer *json);

static inline bool acted_any(const struct acted *acted) {
    return acted->unknown.count + acted->answered.count > 0;
}

#endif
