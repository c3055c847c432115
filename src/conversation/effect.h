/* effect: how to report a call whose answer is not known.
 *
 * A call is recorded before it is made, and its answer afterwards. If its turn ends in between,
 * for any reason, the call must still be accounted for: either it was not made, or it was made
 * and its result is lost. A call that is not idempotent may then have taken effect. Models and
 * people who continue that session can read that, and the call is never repeated automatically.
 *
 * Threads  none; values only.
 * Source   design.md "The run"; checks.md K27.
 */
#ifndef WEIR_CONVERSATION_EFFECT_H
#define WEIR_CONVERSATION_EFFECT_H

#include "base/buf.h"
#include "base/err.h"

enum effect {
    EFFECT_NONE,     /* the call was not made */
    EFFECT_HARMLESS, /* it was made, but is idempotent: it may be repeated */
    EFFECT_UNKNOWN,  /* it was made, and is not idempotent */
};

/* Append the result that the model reads, one JSON object, to `out`; `ret` says the same to
 * people. `cause` is a clause: "the turn ended while this call was out". */
void effect_write(enum effect effect, struct str cause, struct buf *out, struct err *ret);

/* Room for what effect_write() appends. */
#define EFFECT_MAX_BYTES 4096

#endif
