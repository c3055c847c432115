/* gather: collect the parts of a reply that are reported only when complete.
 *
 * Tool calls arrive in fragments, usage may arrive before the last text, and every event names
 * the model. A dialect stores these here as they arrive. gather_tell() reports them at the end:
 * calls in the order of the reply, then the opaque message, then usage.
 *
 * Memory   owns what it collects, until gather_done().
 * Threads  none.
 */
#ifndef WEIR_PROVIDER_GATHER_H
#define WEIR_PROVIDER_GATHER_H

#include "provider/dialect.h"

#define GATHER_CALLS_MAX 1024 /* of one reply: what it asks for beyond them is passed over */
#define CALL_INDEX_NONE INT64_C(-1)

/* How the stream ends, as far as it has said so. */
enum gather_end { GATHER_OPEN, GATHER_FINISHED, GATHER_CUT, GATHER_FILTERED };

struct gathered_call {
    int64_t index;   /* the stream's index of it, or CALL_INDEX_NONE */
    struct buf item; /* the stream's name for it while it arrives, or empty */
    struct buf id, tool, args;
};

struct gather {
    struct gathered_call *calls;
    size_t call_count;
    struct buf model;
    struct buf refusal; /* the model's refusal, sent instead of an answer */
    struct buf opaque;
    struct buf text; /* the piece that is lent to the listener, if part of it was escaped */
    bool calls_full; /* there were more than GATHER_CALLS_MAX calls */
    struct event_usage usage;
    bool usage_seen;
};

void gather_init(struct gather *gather);
void gather_done(struct gather *gather);

/* Append a call. NULL: there are GATHER_CALLS_MAX already, and the caller should ignore the
 * fragments of this one. */
struct gathered_call *gather_call(struct gather *gather, int64_t index);

/* Replace the contents of `out` with `string`, unless it is empty or not a string. */
void gather_replace(struct buf *out, struct json string);

/* Report the text of `string` as REPLY_TEXT or REPLY_THINKING, unless it is empty or not a
 * string. */
void gather_lend(struct gather *gather, struct reply *reply, enum reply_kind kind,
                 struct json string);

/* The number under `key`, or TOKENS_UNKNOWN. */
int64_t gather_count(struct json object, const char *key);

/* Report the calls, the opaque message unless it is empty, and usage. If the reply was cut off,
 * only calls with complete arguments are reported. A repeated or empty call id is reported as
 * empty; the listener then names the call. */
void gather_tell(struct gather *gather, struct reply *reply, struct str dialect,
                 enum reply_outcome outcome);

/* For a reply that fails: report the usage, if the stream contained any. */
void gather_tell_usage(struct gather *gather, struct reply *reply);

/* The outcome of a reply whose stream has ended. An open end, a content filter and a refusal
 * are failures and set the reply's failure. */
enum reply_outcome gather_outcome(struct gather *gather, struct reply *reply,
                                  enum gather_end end);

#endif
