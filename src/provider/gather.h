/* gather: what a reply says bit by bit and tells only when it is whole.
 *
 * Tool calls come in fragments, counts may come before the last word, and who answered stands
 * in every event. A dialect puts these here as they come; gather_tell() says them at the end:
 * calls in the order of the reply, then the opaque message, then usage.
 *
 * Memory   owns what it gathers, until gather_done().
 * Threads  none.
 */
#ifndef WEIR_PROVIDER_GATHER_H
#define WEIR_PROVIDER_GATHER_H

#include "provider/dialect.h"

#define GATHER_CALLS_MAX 1024 /* of one reply: what it asks for beyond them is passed over */
#define GATHER_MAX_BYTES (16 * MIB)
#define CALL_INDEX_NONE INT64_C(-1)

/* What a stream has said of its end so far. */
enum gather_end { GATHER_OPEN, GATHER_FINISHED, GATHER_CUT, GATHER_FILTERED };

struct gathered_call {
    int64_t index;   /* as the stream counts, or CALL_INDEX_NONE */
    struct buf item; /* how the stream names it while it comes, or empty */
    struct buf id, tool, args;
};

struct gather {
    struct gathered_call *calls;
    size_t call_count;
    struct buf model;
    struct buf refusal; /* what the model said in place of an answer */
    struct buf opaque;
    struct buf text; /* the piece that is lent to the listener just now */
    bool calls_full; /* it asked for more than GATHER_CALLS_MAX */
    struct event_usage usage;
    bool usage_seen;
};

void gather_init(struct gather *gather);
void gather_done(struct gather *gather);

/* A call behind the others, or NULL: GATHER_CALLS_MAX are here. What comes of one more is to
 * be passed over. */
struct gathered_call *gather_call(struct gather *gather, int64_t index);

/* Put `string` in place of what stands in `out`, unless it is empty or no string. */
void gather_replace(struct buf *out, struct json string);

/* Report the text of `string` as REPLY_TEXT or REPLY_THINKING, unless it is empty or no string.
 */
void gather_lend(struct gather *gather, struct reply *reply, enum reply_kind kind,
                 struct json string);

/* The number under `key`, TOKENS_UNKNOWN when there is none. */
int64_t gather_count(struct json object, const char *key);

/* Say the calls (of a reply that was cut off only those with whole arguments), the opaque
 * message unless it is empty, and usage. A call id that comes twice, or is empty, is told as
 * empty: whoever listens names the call. */
void gather_tell(struct gather *gather, struct reply *reply, struct str dialect,
                 enum reply_outcome outcome);

/* Of a reply that fails: usage, if the stream said any. */
void gather_tell_usage(struct gather *gather, struct reply *reply);

/* The reply fails with the model's own refusal, or with `otherwise` when it said none. */
bool gather_refused(struct gather *gather, struct reply *reply, const char *otherwise);

/* What becomes of a reply whose stream is over: an open end, a filter and a refusal are
 * failures, and then the failure is set. */
enum reply_outcome gather_outcome(struct gather *gather, struct reply *reply,
                                  enum gather_end end);

#endif
