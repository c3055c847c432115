/* facts: the apps, sessions and access tokens of all replicas.
 *
 * They are in memory (auth/sessions.h, grant/grants.h). Where replicas share a store, each change of
 * them is a fact in the store (store/fact.h) before its caller has its reply, and a call that needs
 * them waits until this process has read what was published before the call:
 *
 *     a change ─▶ published ─▶ read back, in the order of all ─▶ its reply
 *     a call that needs them ─▶ waits ─▶ what is new is read ─▶ goes on
 *
 * So a token that was revoked is refused everywhere once the revocation was answered. All replicas
 * apply the facts in the same order, and so agree. The memory changes by reading alone: a change that
 * could not be published was not made, and nothing is to be undone. Without replicas it is
 * made at once.
 *
 * Private to contract/nimi.
 *
 * Memory   the runtime's; borrows the tables.
 * Threads  any; one lock inside, taken before those of the tables. A call belongs to its loop.
 */
#ifndef WEIR_CONTRACT_NIMI_FACTS_H
#define WEIR_CONTRACT_NIMI_FACTS_H

#include "contract/nimi/call.h"
#include "proto/nimi_fact.pb.h"

#define FACTS_APP_KEPT_MS (30ll * 24 * 60 * 60 * 1000) /* of a registration */

struct facts;
struct grants;
struct sessions;

struct facts *facts_new(struct sessions *sessions, struct grants *grants);
void facts_free(struct facts *facts); /* NULL is fine */

/* Share them with the other replicas of this store, if there may be any. Harmless again. */
void facts_share(struct facts *facts, struct store *store);

/* Keep the memory close to what is published, on the loop of one instance: lasting streams
 * look there. */
void facts_watch_init(struct nimi_instance *instance);
void facts_watch(struct nimi_instance *instance);
void facts_unwatch(struct nimi_instance *instance);

/* Apply a fact, as one that was read. For tests and fuzzing too.
 * errors  ERR_MALFORMED these bytes are no fact */
MUST_CHECK bool facts_apply(struct facts *facts, struct str bytes, struct err *e);

/* --- a call that needs them --------------------------------------------------------------- */

/* True: the call waits (call->facts_wait), and goes on with nimi_resume(). */
bool facts_wait(struct nimi_call *call);

/* The call is over; it waits no more. */
void facts_leave(struct nimi_call *call);

/* --- a call that changes them ------------------------------------------------------------- */

struct facts_change;

/* A change, and its reply, which are encoded before this returns.
 * until_ms  Unix time from which the fact is not needed any more */
struct facts_change *facts_change(struct nimi_call *call, const struct fact_fact *fact,
                                  int64_t until_ms, const struct pb_message *type,
                                  const void *reply);

/* Make the change, at all replicas, then reply. Takes it. No lock of the tables is held.
 * refuses  RESOURCE_EXHAUSTED the caller has too many (store/fact.h); UNAVAILABLE it could not be
 *          published, or it is not known whether it was */
void facts_tell(struct facts_change *change);

#endif
