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
#include "wire/pb.h"

#define TALK_MAX_BYTES (16 * MIB)
#define TALK_MESSAGES_MAX 20000
#define TALK_FIELDS_MAX 64
#define TALK_DECODED_MAX_BYTES (64 * MIB)
#define TALK_TEXT_MAX_BYTES (4 * MIB)
#define TALK_END_BYTES 1024

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
    struct arena *decoded; /* what talk_decode() has made */
    char *frames;
    struct buf sent_text, seen_text; /* what people are shown */
    struct evidence evidence;        /* views into them; set by talk_show() */
};

struct talk_options {
    struct str url; /* of the server */
    struct str path;
    const struct grpc_metadata *metadata;
    size_t metadata_count;
};

void talk_open(struct asker *asker, const struct talk_options *options, struct talk *ret);
/* One that was never opened, as if its time had been up. */
void talk_none(struct asker *asker, struct talk *ret);
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

/* Whether the server serves this method: it answers a call without a message, if only to refuse
 * it, and does not say that it has no such method. */
bool talk_serves(struct asker *asker, const struct talk_options *options, uint64_t timeout_ms);

/* The messages as structs of a type, up to the first that is none; they live as long as the talk.
 * Returns how many. */
size_t talk_decode(struct talk *talk, const struct pb_message *type, const void **ret_frames);

/* Make the evidence: what was appended to sent_text, and `seen`, without what is secret. */
void talk_show(struct talk *talk, struct str seen);

/* The first field of that name, or NULL. */
const struct talk_field *talk_find(const struct talk *talk, struct str name);

/* "OK", "INVALID_ARGUMENT: memory: key is required", "no end in time". */
void talk_describe_end(const struct talk *talk, struct buf *out);
const char *talk_end(const struct talk *talk, char room[TALK_END_BYTES]);

/* It ended with this status, which the server itself sent. */
bool talk_ended_with(const struct talk *talk, enum err_code code);

/* Begin `out` with the text of an input: that of a JSON string, or the JSON itself. */
void talk_put_message(struct str json, struct buf *out);

#endif
