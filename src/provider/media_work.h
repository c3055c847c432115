/* media_work: what the calls of all kinds of media have in common.
 *
 * A kind asks (a child process, a server) and says how it went; the rest is the same for all:
 * what came is made into what was asked for on another thread, because decoding and resampling
 * millions of bytes would hold up the loop, and then told in one order, with one ending.
 *
 *     asking ─▶ shaping ─▶ over           a kind that asks nobody begins with shaping
 *      ▲ │         └── failed, cancelled ──▶ over
 *      │ ▼
 *     waiting   to ask again
 *
 * Memory   a call copies its request, except `bytes` and `inputs` of the caller when it is
 *          asked to borrow them. What it makes lives in its arena until it is over.
 * Threads  the call's loop. Only shape() runs on another thread, and it reads only what
 *          belongs to the call.
 */
#ifndef WEIR_PROVIDER_MEDIA_WORK_H
#define WEIR_PROVIDER_MEDIA_WORK_H

#include "base/arena.h"
#include "loop/job.h"
#include "provider/dialect.h"
#include "provider/media.h"

/* Of a request and all that is made for it. */
#define MEDIA_WORK_MAX_BYTES (192 * MIB)

enum media_state {
    MEDIA_ASKING,
    MEDIA_WAITING,
    MEDIA_SHAPING,
    MEDIA_OVER, /* nothing is told any more */
    MEDIA_STATE_COUNT,
};

bool media_may_become(enum media_state state, enum media_state next);
struct str media_state_name(enum media_state state);

struct media_vector {
    const double *values;
    size_t count;
};

/* What shape() makes, in the arena of the call. Zeroed is nothing. */
struct media_made {
    struct media_artifact *artifacts;
    size_t artifact_count;
    struct str text; /* at NULL: none */
    struct media_vector *vectors;
    size_t vector_count;
    struct event_usage usage;
    bool has_usage;
    struct str model; /* empty: as asked */
};

struct media_work_kind {
    /* On another thread. False: `failure` of the call is set. */
    bool (*shape)(struct media_call *call);
    /* Ask nobody any more: the child, the request. Also when nobody is asked. */
    void (*stop)(struct media_call *call);
    /* Its time is up: set `failure`. */
    void (*late)(struct media_call *call);
    /* What the kind added; the call itself too. */
    void (*free)(struct media_call *call);
};

/* What the call of each kind begins with. */
struct media_call {
    const struct media_work_kind *kind;
    struct media *media;
    struct loop *loop;
    struct media_request request; /* in the arena; `bytes` are the caller's */
    reply_event_fn *on_reply;
    void *ctx;
    enum media_state state;
    unsigned inside; /* callbacks on the stack: the last one to leave frees */
    bool working;    /* a thread shapes: it frees */
    struct timer deadline;
    struct task task; /* tells what failed in start() */
    struct job job;
    uint64_t start_ms;
    struct arena *arena;
    struct media_made made;
    struct reply_failure failure;
};

/* Fill a zeroed call, and start its clock. False: the request is too large, `failure` is set.
 */
MUST_CHECK bool media_work_init(struct media_call *call, const struct media_work_kind *kind,
                                struct media *media, struct loop *loop,
                                const struct media_request *request, reply_event_fn *on_reply,
                                void *ctx);

/* It failed as `failure` says: told later, from start(); told now, from a callback. After the
 * second one the call may be gone. */
void media_work_fail_later(struct media_call *call);
void media_work_fail(struct media_call *call);

/* The only ways to another state. */
void media_work_move(struct media_call *call, enum media_state next);

/* All came: shape it and tell it. */
void media_work_shape(struct media_call *call);

/* media_kind.cancel of all. */
void media_work_cancel(struct media_call *call);

/* Around a callback that may end the call. */
void media_work_enter(struct media_call *call);
void media_work_leave(struct media_call *call);

/* Set `failure`. Returns false. */
PRINTF_LIKE(4, 5)
bool media_work_set(struct media_call *call, enum err_code code, const char *reason,
                    const char *format, ...);

/* For late(): `who` was not done in time. */
void media_work_set_late(struct media_call *call, const char *who);

#endif
