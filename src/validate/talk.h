/* talk: one gRPC call to the target, and all that came back.
 *
 * talk_wait() blocks: it runs the loop until what was waited for has come, the call has ended, more
 * came than TALK_MAX_BYTES, or time is up. However the server behaves, it returns in time.
 *
 *     open ─▶ say ... ─▶ wait ─▶ say ... ─▶ finish ─▶ wait ─▶ done
 *
 * Memory   owns the messages until talk_done(), which also cancels a call that goes on.
 * Threads  the main thread.
 */
#ifndef WEIR_VALIDATE_TALK_H
#define WEIR_VALIDATE_TALK_H

#include "client/grpc_call.h"
#include "validate/ask.h"

#define TALK_MAX_BYTES (16 * MIB)
#define TALK_MESSAGES_MAX 20000
#define TALK_FIELDS_MAX 64

struct talk;

/* One field of metadata, as text or, when its name ends in -bin, as bytes. */
struct talk_field {
    struct str name, value;
    size_t before; /* this many messages had come: 0 in the head */
};

/* Whether what came so far is enough. */
typedef bool talk_enough_fn(const struct talk *talk, void *ctx);

struct talk {
    struct asker *asker;
    struct grpc_call *call; /* NULL: over */
    struct arena *arena;
    struct str *messages;
    size_t count, room;
    bool ended, timed_out, too_much;
    struct grpc_call_end end; /* its text is in end_text */
    struct talk_field fields[TALK_FIELDS_MAX];
    size_t field_count;
    struct buf end_text;
    talk_enough_fn *enough;
    void *enough_ctx;
};

struct talk_options {
    struct str url; /* of the server */
    struct str path;
    const struct grpc_metadata *metadata;
    size_t metadata_count;
};

void talk_open(struct asker *asker, const struct talk_options *options, struct talk *ret);
void talk_say(struct talk *talk, struct str message);
void talk_finish(struct talk *talk);
void talk_leave(struct talk *talk); /* cancel */

/* enough: NULL waits for the end. False: the time was up. Other calls go on meanwhile. */
bool talk_wait(struct talk *talk, talk_enough_fn *enough, void *ctx, uint64_t timeout_ms);
void talk_done(struct talk *talk);

/* A unary call: one message each way. */
void talk_once(struct asker *asker, const struct talk_options *options, struct str message,
               uint64_t timeout_ms, struct talk *ret);

/* The same, without a message, until the answer is another one than UNAVAILABLE: a server that
 * starts may listen before it can answer. Each try, and all of them, take timeout_ms at most. */
void talk_until_available(struct asker *asker, const struct talk_options *options,
                          uint64_t timeout_ms);

/* The first field of that name, or NULL. */
const struct talk_field *talk_find(const struct talk *talk, struct str name);

/* "OK", "INVALID_ARGUMENT: memory: key is required", "no end in time". */
void talk_describe_end(const struct talk *talk, struct buf *out);

/* It ended with this status, which the server itself sent. */
bool talk_ended_with(const struct talk *talk, enum err_code code);

#endif
