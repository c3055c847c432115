/* effect: what is said of a call whose answer is not known.
 *
 * A call is recorded before it is made and its answer after. When its turn ends in between, by
 * whatever cause, somebody must account for it: it was not made, or it was and what came of it
 * is lost. A call that is not idempotent may then have had its effect; whoever goes on in that
 * session, model or human, reads so, and it is never made again by itself.
 *
 * Threads  none; values only.
 * Source   design.md "The run"; checks.md K27.
 */
#ifndef WEIR_CONVERSATION_EFFECT_H
#define WEIR_CONVERSATION_EFFECT_H

#include "base/buf.h"
#include "base/err.h"

enum effect {
    EFFECT_NONE,     /* the call never left */
    EFFECT_HARMLESS, /* it left and may be made again: it is idempotent */
    EFFECT_UNKNOWN,  /* it left */
};

/* The result that the model reads, one JSON object, appended to `out`; and the same for people.
 * `cause` is a clause: "the turn ended while this call was out". */
void effect_write(enum effect effect, struct str cause, struct buf *out, struct err *ret);

/* Room for what effect_write() appends. */
#define EFFECT_MAX_BYTES 4096

/* Whether `result` says that the effect is unknown. */
bool effect_is_unknown(struct str result);

#endif
