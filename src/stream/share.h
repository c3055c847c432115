/* share: many readers of runs, each run encoded once.
 *
 * A share serves all readers of one loop whose streams hold the same bytes, such as the
 * server-sent events of a run. What a reader needs is copied from the pages (pages.h). What is not
 * there is read once for all who wait: from the live journal, or from the store.
 *
 *     reader ─▶ its turn ─▶ pages ─▶ transport ─▶ its turn ...
 *                │  not there                │ full: wait until it has drained
 *                ▼
 *             live journal, else store ─▶ encode ─▶ pages
 *
 * Of a run that goes on at another replica of a shared store, readers get each stretch once it is
 * committed: they wait at its tail, and the store is asked again when something was written.
 *
 * Readers take turns. In one turn a reader gets at most SHARE_TURN_BYTES, and the loop goes back to
 * its sockets after SHARE_PASS_BYTES, so that no reader starves and other calls are not kept
 * waiting.
 *
 * A stream ends after the run's last event. It sends that event like all others (mode DONE). One
 * that ends earlier is cut if that is inside an event, or if the rest of the run is gone.
 *
 * Memory   opaque; share_close() at any time, but from inside a callback only in the last one.
 * Threads  a share and its readers belong to one loop; `pages` may be shared by several.
 * Source   design.md "The journal" and "Slow readers": observers never pace.
 */
#ifndef WEIR_STREAM_SHARE_H
#define WEIR_STREAM_SHARE_H

#include "base/states.h"
#include "session/directory.h"
#include "store/store.h"
#include "stream/close.h"
#include "stream/pages.h"
#include "turn/dormant_wake.h"

#define SHARE_TURN_BYTES (16 * KIB)
#define SHARE_PASS_BYTES (2 * MIB)
#define SHARE_SEND_BYTES (8 * KIB) /* what one send costs, in bytes copied */
#define SHARE_HIGH_BYTES (8 * KIB) /* waiting in the transport: no turn */
#define SHARE_LOW_BYTES (4 * KIB)
#define SHARE_REST_MS 3000 /* after so long without readers' work: give memory back */

struct share;
struct share_reader;

struct share_options {
    struct loop *loop;
    struct directory *directory;
    struct store *store; /* NULL: only live runs are found */
    struct pages *pages;
    /* Append what is sent for `event`, or nothing. The same bytes for every reader. */
    void (*encode)(const struct event *event, struct buf *out, const void *ctx);
    const void *ctx;
};

struct share *share_new(const struct share_options *options);
void share_free(struct share *share); /* all readers must have been closed; NULL is fine */

/* How a reader's bytes leave. All are called on the loop with the reader's ctx. `begun` may call
 * share_end(); the last call may close the reader; the others report trouble with the transport
 * later. */
struct share_wire {
    /* Called once, before any other call but `missing`: there is something to read, or will be. */
    void (*begun)(void *ctx);
    /* Called instead of `begun`: there is no live run, and the store has nothing after `after_seq`.
     * `failed` says why the store could not answer, or is NULL. The last call of all. */
    void (*missing)(const struct err *failed, void *ctx);
    void (*send)(struct str bytes, void *ctx);
    size_t (*queued)(void *ctx);            /* bytes waiting in the transport */
    void (*wake_at)(size_t low, void *ctx); /* call share_drained() at `low` bytes */
    uint64_t (*stalled_ms)(void *ctx);      /* how long the peer has not been reading */
    void (*heartbeat)(void *ctx);           /* send something that the peer skips */
    /* The last call of all. cut: an event was begun and its rest will not be sent, or the rest of
     * the run is gone (it was erased, or the store fails). The peer must see that it has not got
     * everything, so the transport breaks the stream off in place of ending it. */
    void (*ended)(enum close_cause cause, bool cut, void *ctx);
};

struct share_reading {
    uint64_t run, after_seq;
    uint64_t stall_ms, heartbeat_ms; /* both must be set */
    const struct share_wire *wire;
    void *ctx;
};

/* No callback before it returns. */
struct share_reader *share_open(struct share *share, const struct share_reading *reading);
void share_close(struct share_reader *reader); /* no callback afterwards; NULL is fine */

/* End it for a reason outside the run. `ended` is called before this returns, unless the last call
 * was made already. */
void share_end(struct share_reader *reader, enum close_cause cause);

/* The transport's queue has fallen to the bytes that wake_at asked for. */
void share_drained(struct share_reader *reader);

/* What a reader waits for. */
enum share_state {
    SHARE_QUEUED, /* its turn */
    SHARE_TAIL,   /* the live run's next event, and then its turn */
    SHARE_FULL,   /* its transport */
    SHARE_LOAD,   /* the store, or a run that is brought back to memory */
    SHARE_OVER,   /* nothing: the last call was made */
    SHARE_STATE_COUNT,
};

extern const struct state share_states[SHARE_STATE_COUNT];

#endif
