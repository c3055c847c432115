/* once: a unary write under a key is made once, for all who wait for it.
 *
 * The first call with a key starts a *shared* call: nobody's own, with no transport, on that
 * call's loop. The row's handler works in it as in any other. Each call that asks the same,
 * the first one included, waits (replies.h) and is answered with what the shared call ended
 * with. When the last of them has left, the shared call is cancelled.
 *
 *     call ─▶ replies_ask() ─▶ NEW ─▶ shared call ─▶ begin() ... ─▶ its end ─▶ each who waits
 *                           └▶ WAITS, STORED, CONFLICT
 *
 * Memory   a shared call owns copies of what its handler asks of a call; it goes in the turn
 *          after its end.
 * Threads  the first call's loop.
 * Source   checks.md K28; contracts/nimi.md 3.2 K-DAEMON-006.
 */
#ifndef WEIR_CONTRACT_NIMI_ONCE_H
#define WEIR_CONTRACT_NIMI_ONCE_H

#include "contract/nimi/call.h"

/* Answer a unary write that has a key. */
void once_begin(struct nimi_call *call, const void *request, struct arena *arena);

/* The key under which a call's writes are remembered, kept by the call; empty without one. */
struct str once_key(struct nimi_call *call);

/* End of a shared call; its `once` says which. Exactly one of them, once. */
void once_made(struct once *once, struct str reply);
void once_failed(struct once *once, const struct fault *fault);

struct str once_keep(struct once *once, struct str text);
void once_waited(struct once *once, uint64_t waited_ms); /* for a slot */

/* The daemon stops: end all shared calls of the desk as CANCELLED. */
void once_stop_all(struct nimi_desk *desk);

#endif
