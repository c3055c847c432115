/* call: one call of this contract, and the eight interceptors that every call passes.
 *
 *     version ─▶ lifecycle ─▶ activity ─▶ protocol ─▶ authn ─▶ authz ─▶ scrub ─▶ audit ─▶ row
 *
 * A row is one method: its request type, its kind of call and the function that answers. That
 * function either ends the call before it returns (nimi_reply, nimi_refuse) or attaches work
 * (nimi_work) whose callbacks follow the call. Private to contract/nimi.
 *
 * Memory   the call lives until its transport is gone.
 * Threads  one loop.
 * Source   contracts/nimi.md 3.2 K-DAEMON-005.
 */
#ifndef WEIR_CONTRACT_NIMI_CALL_H
#define WEIR_CONTRACT_NIMI_CALL_H

#include "contract/nimi/envelope.h"
#include "contract/nimi/guard.h"
#include "contract/nimi/nimi.h"
#include "contract/nimi/subject.h"
#include "contract/nimi/ulid.h"
#include "store/share.h"
#include "stream/close.h"
#include "wire/trace_context.h"

struct facts_wait;
struct grant_use;
struct nimi_call;
struct once;

#define NIMI_STOPPING_TEXT                                                                     \
    STR("runtime shutting down") /* plain text; the real SDK looks for it */

enum {
    NIMI_READS = 1,     /* admitted even while the runtime stops */
    NIMI_BARE = 2,      /* needs no basic headers */
    NIMI_ONCE = 4,      /* a unary write; with a key it is made once (once.h) */
    NIMI_LOOKS = 8,     /* changes nothing, and is refused while the runtime stops */
    NIMI_RECORDED = 16, /* reads, and is in the audit log all the same */
    NIMI_SESSION = 32,  /* a session that the caller names must be valid (auth/) */
    NIMI_PROVES = 64,   /* the token itself is used, not only who it is of (account/) */
    NIMI_ALONE = 128,   /* its state is in this process: replicas refuse it */
    NIMI_KNOWS = 256,   /* it needs what other replicas decided (facts.h) */
    NIMI_SECRET =
        512, /* its reply has a token, which is in no store: its key is this replica's */
};

/* `request` is the first message. It is NULL when the row does not decode requests, or when a
 * client stream ended without a message. */
typedef void nimi_begin_fn(struct nimi_call *call, const void *request);

struct nimi_row {
    struct str path;
    enum rpc_kind kind;
    enum close_mode ends;
    enum nimi_guard guard;
    unsigned facts;
    const struct pb_message *type; /* of the request; NULL: not decoded */
    struct nimi_subject subject;   /* where the request names it */
    nimi_begin_fn *begin;
};

/* Work that continues after begin() has returned. Every member may be NULL. */
struct nimi_work {
    void (*drained)(void *ctx);
    void (*stopping)(void *ctx);
    void (*cancelled)(enum close_cause why, void *ctx); /* nothing more can be sent */
    void (*closed)(void *ctx);                          /* the last callback: free ctx */
    /* Client streams only: the further messages, then the end of them. The work itself calls
     * rpc_next() when it is ready for a message. */
    void (*message)(const void *request, void *ctx);
    void (*half_closed)(void *ctx);
    /* The runtime stops: the call goes on as long as its reader reads, but no longer than half
     * of the shutdown deadline. stopping() is not called. */
    bool outlasts_stop;
};

/* What a call to a model used, for its audit record. Counts are -1 where unknown. */
struct nimi_used {
    struct str capability;          /* "TEXT_GENERATE"; empty: no model was asked */
    struct str app, subject, model; /* as the request names them */
    int64_t input_tokens, output_tokens, compute_ms, queue_ms;
};

/* What came of a call while it waited (bearer.h, facts.h): its first message and the end of them. */
struct nimi_held {
    struct buf message;
    bool has_message, half_closed;
};

/* The token of a call, for rows that use it. */
struct nimi_proof {
    struct str token, issuer; /* no token: the call had none */
    int64_t expires_s;        /* Unix */
};

struct nimi_call {
    struct rpc_call *rpc; /* NULL: a shared call, made for all calls that wait for it */
    struct once *once;    /* of a shared call */
    struct loop *loop;
    struct nimi_instance *instance;
    const struct nimi_row *row;
    struct list link; /* in instance->calls */
    struct envelope envelope;
    struct str subject; /* of the token; empty: an anonymous caller */
    struct str scope;   /* of the token */
    struct str
        session; /* the id of the session that the caller named and proved; NIMI_SESSION */
    struct nimi_proof proof; /* NIMI_PROVES */
    struct grant_use *grant; /* the access token that it brings; NULL: none (grant/use.h) */
    struct str session_asked, session_token; /* that it names, and its token; empty: none */
    struct str grant_id;                     /* that token's; empty: none */
    struct str peer;                         /* the caller's address, without its port */
    struct str host;                         /* the host the caller used; empty: not needed */
    bool brief; /* deltas need no `frame` (x-nimi-stream-frame: terminal) */
    bool over;  /* its status has been sent */
    bool audited;
    char trace[ULID_LEN + 1];
    struct trace_context
        *caller_trace; /* that of the caller's own tracing; NULL: it has none */
    uint64_t opened_ms;
    const struct nimi_work *work;
    void *work_ctx;
    struct arena *arena; /* of the request, and for its reply; only while begin() runs */

    size_t passed;                 /* interceptors */
    struct token_wait *token_wait; /* for the keys of its token's issuer; NULL: none */
    struct facts_wait *facts_wait; /* for what other replicas decided; NULL: none */
    bool facts_known;              /* it has waited for that */
    struct nimi_held held;         /* while it waits for either */

    /* For the audit record. */
    enum err_code code;
    int reason;
    struct nimi_used used;

    struct reply_ask *ask; /* its wait for a shared call, or for an upload; NULL: none */
};

static inline struct str nimi_trace(const struct nimi_call *call) {
    return str_of(call->trace, ULID_LEN);
}

/* Whose share of the slots the call uses: app ids are the callers' own words. */
static inline struct str nimi_owner(const struct nimi_call *call) {
    return call->subject.len ? call->subject : call->peer;
}

/* Whose share of the store what it keeps counts in. Of the call's texts, and `app`. */
static inline struct share_owner nimi_share_owner(const struct nimi_call *call,
                                                  struct str app) {
    struct str caller = nimi_owner(call);
    return (struct share_owner){caller.len ? caller : STR("local"), app}; /* a Unix socket */
}

/* Copy text for the life of the call. The copy ends in NUL. */
struct str nimi_keep(struct nimi_call *call, struct str text);

/* Report how long the call waited for its slot of the scheduler (x-nimi-queue-wait-ms). Must
 * come before the call ends. */
void nimi_waited(struct nimi_call *call, uint64_t waited_ms);

/* End the call with one message and OK. */
void nimi_reply(struct nimi_call *call, const struct pb_message *type, const void *message);

/* End the call with the stored reply of an earlier identical write. */
void nimi_reply_again(struct nimi_call *call, struct str reply);

/* End a call that goes on, from outside of its work: refuse it, let the work go, and count it among
 * the refused ones. */
void nimi_cut(struct nimi_call *call, const struct fault *fault);

/* Refuse the call: with a fault, or with the one that fault_set() or fault_set_code() would make. */
void nimi_refuse(struct nimi_call *call, const struct fault *fault);
PRINTF_LIKE(3, 4)
void nimi_refuse_for(struct nimi_call *call, int reason, const char *format, ...);
PRINTF_LIKE(4, 5)
void nimi_refuse_code(struct nimi_call *call, int reason, enum err_code code,
                      const char *format, ...);

/* End the call with a bare status and a plain message without a reason code, as when a
 * subscription is cut. */
void nimi_end(struct nimi_call *call, enum err_code code, struct str message);

/* Parts of a stream_wire, for work whose first member is its call. */
size_t nimi_queued(void *ctx);
size_t nimi_nothing_queued(void *ctx); /* of a call that sends nothing before its end */
void nimi_wake_at(size_t low, void *ctx);
uint64_t nimi_stalled_ms(void *ctx);

/* Let `work` handle the call from here on. */
void nimi_work(struct nimi_call *call, const struct nimi_work *work, void *ctx);

/* Go on with a call that waited (bearer.h, facts.h), and with what it held. */
void nimi_resume(struct nimi_call *call);

/* Let the row answer: its begin() with the arena that the request is in. */
void nimi_begin(struct nimi_call *call, const void *request, struct arena *arena);

/* The handler of every row. */
extern const struct rpc_handler nimi_handler;

/* The row of a method of this instance. */
const struct nimi_row *nimi_row_of(const struct nimi_instance *instance,
                                   const struct rpc_method *method);

/* The names of the interceptors in order; NULL after the last. */
const char *nimi_interceptor_name(size_t index);

#endif
