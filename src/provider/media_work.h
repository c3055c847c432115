/* media_work: the part of a call that all kinds of media share.
 *
 * A kind sends the request (to a child process or a server) and reports the result. The rest is
 * common: another thread converts the result into the requested form, because decoding and
 * resampling millions of bytes would block the loop. The loop then reports it in a fixed order,
 * with one ending.
 *
 *     asking ─▶ shaping ─▶ over           a kind that sends no request starts in shaping
 *      ▲ │         └── failed, cancelled ──▶ over
 *      │ ▼
 *     waiting   to ask again
 *
 * Memory   a call copies its request except `bytes`, which the caller keeps alive. Everything
 *          it makes lives in its arena until it is over.
 * Threads  the call's loop. Only shape() runs on another thread, and it reads only what
 *          belongs to the call.
 */
#ifndef WEIR_PROVIDER_MEDIA_WORK_H
#define WEIR_PROVIDER_MEDIA_WORK_H

#include "base/arena.h"
#include "base/states.h"
#include "loop/job.h"
#include "provider/dialect.h"
#include "provider/media.h"

/* For a request and everything made for it. */
#define MEDIA_WORK_MAX_BYTES (192 * MIB)

enum media_state {
    MEDIA_ASKING,
    MEDIA_WAITING,
    MEDIA_SHAPING,
    MEDIA_OVER, /* no more callbacks */
    MEDIA_STATE_COUNT,
};

extern const struct state media_states[MEDIA_STATE_COUNT];

struct media_vector {
    const double *values;
    size_t count;
};

/* The output of shape(), in the arena of the call. Zeroed: no output. */
struct media_made {
    struct media_artifact *artifacts;
    size_t artifact_count;
    struct str text; /* at NULL: none */
    struct media_vector *vectors;
    size_t vector_count;
    struct event_usage usage;
    bool has_usage;
    struct str model; /* empty: the requested one */
};

struct media_work_kind {
    /* Runs on another thread. False: `failure` of the call is set. */
    bool (*shape)(struct media_call *call);
    /* Stop the child or the request. Also called when neither is running. */
    void (*stop)(struct media_call *call);
    /* The deadline has passed: set `failure`. */
    void (*late)(struct media_call *call);
    /* Free what the kind added, and the call itself. */
    void (*free)(struct media_call *call);
};

/* The first member of each kind's own call. */
struct media_call {
    const struct media_work_kind *kind;
    struct media *media;
    struct loop *loop;
    struct media_request request; /* in the arena; `bytes` are the caller's */
    reply_event_fn *on_reply;
    void *ctx;
    enum media_state state;
    unsigned inside; /* callbacks on the stack: the last one to return frees the call */
    bool working;    /* a thread is in shape(): the call is freed when it is done */
    struct timer deadline;
    struct task task; /* reports a failure in start() */
    struct job job;
    uint64_t start_ms;
    struct arena *arena;
    struct media_made made;
    struct reply_failure failure;
};

/* Fill a zeroed call and start its deadline. False: the request is too large and `failure` is
 * set. */
MUST_CHECK bool media_work_init(struct media_call *call, const struct media_work_kind *kind,
                                struct media *media, struct loop *loop,
                                const struct media_request *request, reply_event_fn *on_reply,
                                void *ctx);

/* Check that there are inputs to make vectors of, and that none is empty. */
MUST_CHECK bool media_work_check_inputs(const struct media_request *request, struct err *e);

/* End the call with `failure`. From start() use fail_later, which reports it later; from a
 * callback use fail, which reports it now and may free the call. */
void media_work_fail_later(struct media_call *call);
void media_work_fail(struct media_call *call);

/* The only way to change the state. */
void media_work_move(struct media_call *call, enum media_state next);

/* Everything has arrived: shape it and report it. */
void media_work_shape(struct media_call *call);

/* media_kind.cancel for every kind. */
void media_work_cancel(struct media_call *call);

/* Call these around a callback that may end the call. */
void media_work_enter(struct media_call *call);
void media_work_leave(struct media_call *call);

/* Set `failure`. Returns false. */
PRINTF_LIKE(4, 5)
bool media_work_set(struct media_call *call, enum err_code code, const char *reason,
                    const char *format, ...);

/* For late(): `who` did not finish in time. */
void media_work_set_late(struct media_call *call, const char *who);

#endif
