/* session_table: all sessions of the process, and what their turns share.
 *
 * Sessions are in stripes, each with a lock. Idle ones stay in memory until there are too many
 * of them, until memory is short, or until they were unused for long.
 *
 * Memory   owns its sessions and what its getters return.
 * Threads  any.
 */
#ifndef WEIR_SESSION_SESSION_TABLE_H
#define WEIR_SESSION_SESSION_TABLE_H

#include "session/pending_approvals.h"
#include "store/store.h"

struct directory;
struct idempotency_claims;
struct key_leases;
struct session_table;
struct slots;

#define SESSIONS_RESIDENT_MAX 10240   /* idle sessions in memory, in all stripes together */
#define SESSIONS_IDLE_BYTES (1 * MIB) /* so much of idle sessions stays until unused for long */
#define SESSIONS_WINDOW_BYTES (16 * MIB)
#define SESSIONS_TRIM_MS 1000 /* between two calls of session_table_trim() */

/* `store` is borrowed. NULL: sessions live in memory only. */
struct session_table *session_table_new(struct store *store);
void session_table_free(struct session_table *table); /* no lease may be out */

/* Forget idle sessions, the least recently used of each stripe first, until `bytes` of text are
 * freed or none is left. Returns the bytes freed. The next turn of such a session reads it from
 * the store again. Any thread, also while turns run; no lock of the table may be held. */
size_t session_table_shed(struct session_table *table, size_t bytes);

/* Forget the sessions that the store has and that were unused for `unused_ms`. Returns how
 * many. */
size_t session_table_tidy(struct session_table *table, uint64_t unused_ms);

/* Idle sessions that the store has leave memory by bytes too:
 *
 *     more than SESSIONS_IDLE_BYTES ─▶ many() ─▶ session_table_trim() every SESSIONS_TRIM_MS
 *                                                 until no more than that is left
 *
 * What may stay above the bound is what the turns that end now would fill in a minute, as if each
 * session stayed for that time. So a steady load keeps its sessions, and soon after a burst they
 * leave, the least recently used of each stripe first. "Now" is a window of a second if they hold
 * SESSIONS_WINDOW_BYTES or more, and longer the less they hold: a few large sessions are not
 * dropped because a second passes without a turn.
 *
 * many() comes from any thread, with a lock of the table held, and not again before
 * session_table_trim() has returned 0. Set it before the first turn. After session_table_many_end()
 * none begins; one may still be running on another thread. */
typedef void session_table_many_fn(void *ctx);
void session_table_many_with(struct session_table *table, session_table_many_fn *many,
                             void *ctx);
void session_table_many_end(struct session_table *table);

/* Forget what may not stay of what was unused for `unused_ms`. Returns after how many
 * milliseconds it wants to be called again, 0: not before many(). One thread. */
uint64_t session_table_trim(struct session_table *table, uint64_t unused_ms);

/* What idle sessions hold, as it is counted for that. */
size_t session_table_idle_bytes(const struct session_table *table);

/* How long a turn waits for a session that another replica holds (holding.h), at most. Only of a
 * shared store, and before the first turn. */
void session_table_wait(struct session_table *table, uint64_t wait_ms);
uint64_t session_table_wait_ms(const struct session_table *table);

/* A loop ends: its turns get no more sessions from other replicas. Call on that loop, and on all
 * of them before the store is closed. */
void session_table_leave(struct session_table *table, const struct loop *loop);

/* Keys among replicas; NULL: the store is not shared. */
struct key_leases *session_table_key_leases(struct session_table *table);

/* The live runs. Lives as long as the table. */
struct directory *session_table_directory(struct session_table *table);

/* The keys of live runs; and the store, which may be NULL. */
struct idempotency_claims *session_table_claims(struct session_table *table);
struct store *session_table_store(struct session_table *table);
/* Counts and limits the running turns of each workspace. */
struct slots *session_table_slots(struct session_table *table);

/* The last id given to a run. All hosts that share the table share this counter. */
_Atomic uint64_t *session_table_last_run(struct session_table *table);

/* A number for an answer that is posted (posted_answer.h): no other one of this process has it. */
int64_t session_table_number_posted(struct session_table *table);

/* The parked runs, for pending_approvals_list(). */
struct pending_approvals *session_table_approvals(struct session_table *table);

#endif
