/* once: make a unary write with a key once, for every call that waits for it.
 *
 * The first call with a key starts a *shared* call on its own loop. A shared call has no
 * transport and belongs to none of the waiting calls. The row's handler treats it like any
 * other call. Every call with the same request, the first included, waits (replies.h) and gets
 * the result of the shared call. When the last waiting call has left, the shared call is
 * cancelled. Where replicas share a store, the shared call first claims the key there
 * (shared_once.h); a reply that another replica made is its own.
 *
 *     call ─▶ replies_ask() ─▶ NEW ─▶ shared call ─▶ begin() ... ─▶ its end ─▶ each waiter
 *                           └▶ WAITS, STORED, CONFLICT
 *
 * Memory   a shared call owns copies of what its handler reads from a call. It is freed in the
 *          loop's turn after its end.
 * Threads  the first call's loop.
 * Source   checks.md K28; contracts/nimi.md 3.2 K-DAEMON-006.
 */
#ifndef WEIR_CONTRACT_NIMI_ONCE_H
#define WEIR_CONTRACT_NIMI_ONCE_H

#include "contract/nimi/call.h"
#include "store/once_reply.h"

/* Answer a unary write that has a key. */
void once_begin(struct nimi_call *call, const void *request, struct arena *arena);

/* The key under which the reply to a call's write is stored, kept by the call. Empty without
 * an idempotency key. */
struct str once_key(struct nimi_call *call);

/* What a caller hears whose key could not be claimed in the store. */
void once_refusal(const struct err *why, struct fault *ret);

/* End a shared call, identified by its `once`. Call exactly one of these, once. */
void once_made(struct once *once, struct str reply);
void once_failed(struct once *once, const struct fault *fault);

/* Where replicas share a store, a reply that is known before its effect is committed is kept in the
 * same transaction (store/once_reply.h), so that no replica that dies in between lets the effect be
 * made twice. NULL: there is nothing to keep. Once the transaction is committed the call is answered
 * with once_made_with_effect(), which fits any call. `reply` is borrowed by *ret. */
struct kept_reply *once_with_effect(struct nimi_call *call, struct str reply,
                                    struct kept_reply *ret);
void once_made_with_effect(struct nimi_call *call, struct str reply);

struct str once_keep(struct once *once, struct str text);
void once_waited(struct once *once, uint64_t waited_ms); /* for a slot */

/* The daemon stops. End all shared calls of the instance as CANCELLED. */
void once_stop_all(struct nimi_instance *instance);

#endif
