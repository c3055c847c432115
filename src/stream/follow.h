/* follow: read a run, from its live journal or from the store.
 *
 * A live run is read from its journal. Events that have left the journal's window, and runs
 * that ended long ago, are read from the store, piece by piece. The wire sees one stream of
 * events without gaps.
 *
 *     after_seq ─▶ live journal reaches back that far? ─▶ stream on it
 *                     │ no                                  ▲
 *                     ▼                                     │ piece is read: look again
 *                  a piece from the store ─▶ stream on the piece
 *
 * A run that goes on at another replica of a shared store is read from the store as well: each
 * stretch once it is committed, when the replicas hear of it.
 *
 * Memory   opaque; follow_free() at any time, also from inside a callback.
 * Threads  belongs to one loop.
 * Source   design.md "The journal" and "Slow readers": observers never pace.
 */
#ifndef WEIR_STREAM_FOLLOW_H
#define WEIR_STREAM_FOLLOW_H

#include "session/directory.h"
#include "store/store.h"
#include "stream/stream.h"
#include "turn/dormant_wake.h"

struct follow;

struct follow_options {
    struct loop *loop;
    struct directory *directory;
    struct store *store; /* NULL: only live runs are found */
    uint64_t run, after_seq;
    enum close_mode mode;
    uint64_t stall_ms, heartbeat_ms; /* as struct stream_options has them */
    const struct stream_wire *wire;  /* `ended` is the last call, as for a stream */
    /* Called once, before any call to the wire: there is something to read, or will be. May be
     * NULL. */
    void (*begun)(void *ctx);
    /* Called instead of `begun`: there is no live run, and the store has nothing after
     * `after_seq`. `failed` says why the store could not answer, or is NULL. The last call of
     * all. */
    void (*missing)(const struct err *failed, void *ctx);
    void *ctx;
};

/* No callback before it returns. */
struct follow *follow_new(const struct follow_options *options);
void follow_free(struct follow *follow); /* no callback afterwards; NULL is fine */

/* Like stream_end() and stream_drained(). */
void follow_end(struct follow *follow, enum close_cause cause);
void follow_drained(struct follow *follow);

#endif
