/* call: one call of this contract, and the eight interceptors that every one passes.
 *
 *     version ─▶ lifecycle ─▶ activity ─▶ protocol ─▶ authn ─▶ authz ─▶ scrub ─▶ audit ─▶ row
 *
 * A row is one method: its messages, what kind of call it is, and the function that answers.
 * That function ends the call before it returns (nimi_reply, nimi_refuse), or leaves work
 * behind, which hears what becomes of the call. Private to contract/nimi.
 *
 * Memory   the call lives until its transport is gone.
 * Threads  one loop.
 * Source   contracts/nimi.md 3.2 K-DAEMON-005.
 */
#ifndef WEIR_CONTRACT_NIMI_CALL_H
#define WEIR_CONTRACT_NIMI_CALL_H

#include "contract/nimi/envelope.h"
#include "contract/nimi/nimi.h"
#include "contract/nimi/ulid.h"
#include "stream/close.h"

struct nimi_call;
struct once;

#define NIMI_STOPPING_TEXT                                                                     \
    STR("runtime shutting down") /* plain words: the real SDK looks at them */

enum {
    NIMI_READS = 1, /* let in also while the runtime stops */
    NIMI_BARE = 2,  /* without the basic headers */
    NIMI_ONCE = 4,  /* a unary write: under a key it is made once (once.h) */
};

/* `request` is the first message, or NULL for one that is not looked at, or when a client
 * stream ended without any. */
typedef void nimi_begin_fn(struct nimi_call *call, const void *request, struct arena *arena);

struct nimi_row {
    struct str path;
    enum rpc_kind kind;
    enum close_mode ends;
    unsigned facts;
    const struct pb_message *type; /* of the request; NULL: it is not looked at */
    nimi_begin_fn *begin;
};

/* What goes on after begin() has returned; every member may be NULL. */
struct nimi_work {
    void (*drained)(void *ctx);
    void (*stopping)(void *ctx);
    void (*cancelled)(enum close_cause why, void *ctx); /* nothing more can be sent */
    void (*closed)(void *ctx);                          /* the last: free it */
    /* Of a client stream: its further messages, and that no more will come. It says rpc_next()
     * itself when it is ready for one. */
    void (*message)(const void *request, struct arena *arena, void *ctx);
    void (*half_closed)(void *ctx);
};

struct nimi_call {
    struct rpc_call *rpc; /* NULL: a shared call, made for all who wait for it */
    struct once *once;    /* of a shared call */
    struct loop *loop;
    struct nimi_desk *desk;
    const struct nimi_row *row;
    struct list link; /* in desk->calls */
    struct envelope envelope;
    struct str host; /* by which the caller came; empty: nobody wants to know */
    bool brief; /* deltas need not say twice what they say (x-nimi-stream-frame: terminal) */
    bool over;  /* it has its status */
    bool audited;
    char trace[ULID_LEN + 1];
    uint64_t opened_ms;
    const struct nimi_work *work;
    void *work_ctx;

    /* For the record that audit leaves. */
    enum err_code code;
    int reason;

    struct reply_ask *ask; /* it waits for a shared call; NULL: it does not */

    /* Of an upload that is remembered. */
    struct str once_key; /* empty: it is not */
    uint8_t once_digest[REPLIES_DIGEST_BYTES];
};

static inline struct str nimi_trace(const struct nimi_call *call) {
    return str_of(call->trace, ULID_LEN);
}

/* A copy that lives as long as the call, and ends in NUL. */
struct str nimi_keep(struct nimi_call *call, struct str text);

/* It has its slot of the scheduler, after so long: x-nimi-queue-wait-ms. Before its end. */
void nimi_waited(struct nimi_call *call, uint64_t waited_ms);

/* End it with one message and OK; a write is remembered. */
void nimi_reply(struct nimi_call *call, const struct pb_message *type, const void *message);

/* End it with the reply of the same write, made before. */
void nimi_reply_again(struct nimi_call *call, struct str reply);

/* Whether an upload was made before, under the key that the caller sent; without one it is new.
 * The digest says what is written. When it is new, nimi_reply() remembers it. */
enum reply_found nimi_once(struct nimi_call *call, const uint8_t *digest, struct buf *stored);

/* End it as refused. */
void nimi_refuse(struct nimi_call *call, const struct fault *fault);

/* End it with a bare status, as on a subscription that is cut: plain words, no reason. */
void nimi_end(struct nimi_call *call, enum err_code code, struct str message);

/* Go on by itself from here. */
void nimi_work(struct nimi_call *call, const struct nimi_work *work, void *ctx);

/* The handler of every row. */
extern const struct rpc_handler nimi_handler;

/* Of a desk's method: its row. */
const struct nimi_row *nimi_row_of(const struct nimi_desk *desk,
                                   const struct rpc_method *method);

/* The names of the interceptors in their order; NULL behind the last. */
const char *nimi_interceptor_name(size_t index);

#endif
