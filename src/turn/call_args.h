/* call_args: what a model wrote as the arguments of a call.
 *
 *     nothing          {}
 *     one JSON object  as it came; an escape of half a surrogate pair becomes U+FFFD
 *     anything else    the call is not made: the model reads what is wrong, and may call again
 *
 * The journal and the next prompt then have {} as the call's arguments, because most wires carry an
 * object there. A caller's own call goes out as the model wrote it, by a contract that carries
 * arguments as text: its clients read and answer such calls themselves.
 *
 * Memory   texts are kept in the run's arena.
 * Threads  the loop of the run.
 * Source   docs/internals/turn.md "One call and its three policies"; checks.md U5.
 */
#ifndef WEIR_TURN_CALL_ARGS_H
#define WEIR_TURN_CALL_ARGS_H

#include "base/err.h"
#include "turn/calls.h"

/* Keep `text` as the arguments of `call`. False: the run has failed, its memory is full. */
MUST_CHECK bool call_args_keep(struct turn_call *call, struct str text);

/* Whether the model wrote an object.
 * errors  ERR_INVALID_ARGUMENT for the model: what is wrong, where, and how the text began */
MUST_CHECK bool call_args_check(const struct turn_call *call, struct err *e);

#endif
