/* inner: what the files of the client library share.
 *
 * A client has one thread, which runs one loop; all calls of its streams are on it. A stream has
 * two sides. The loop's side makes the call, has each frame judged (reader/reader.h) and puts it
 * into the queue; the consumer's side takes frames out. When the queue is full the loop's side
 * pauses the call, and the consumer's side has it resumed when half of it is empty.
 *
 *     loop: call ─▶ reader ─▶ queue ─▶ weir_stream_next()          stream: opening ─▶ running
 *              ◀─ pause ──────┘  └─ half empty: resume             ─▶ ended
 *
 * After the completing frame the server has STREAM_LINGER_MS to close the call; then we do.
 *
 * Private to library/.
 *
 * Memory   a client lives until its last stream is freed, and a stream is freed on the loop.
 * Threads  what both sides use is in struct shared, with its lock.
 * Source   include/weir/client.h; contracts/nimi.md 7.1, 7.2.
 */
#ifndef WEIR_LIBRARY_INNER_H
#define WEIR_LIBRARY_INNER_H

#include "base/list.h"
#include "base/states.h"
#include "base/text.h"
#include "client/grpc_call.h"
#include "reader/reader.h"
#include "wire/protojson.h"

#include <pthread.h>
#include <weir/client.h>

#define STREAM_QUEUE_BYTES (1 * MIB)
#define STREAM_LINGER_MS 2000

/* For a request, for the fields that it is sent with, and for the body of a refusal. */
#define STREAM_REQUEST_MAX_BYTES (16 * MIB)
#define STREAM_HEADERS_MAX_BYTES (32 * KIB)
#define STREAM_REFUSAL_MAX_BYTES (64 * KIB)

/* For a decoded frame, and for its JSON. */
#define STREAM_ARENA_MAX_BYTES (64 * MIB)
#define STREAM_JSON_MAX_BYTES (128 * MIB)

struct weir_client {
    struct loop *loop;
    struct http_pool *pool;
    struct protojson *json;
    pthread_t thread;
    struct mail stop;
    struct text host, base; /* base: "https://host:port" */
    uint16_t port;
    bool secure;
    struct text authorization, app_id; /* empty: none */
    pthread_mutex_t lock;
    size_t holders; /* its owner, and streams */
};

void client_drop(struct weir_client *client);

/* --- frames ------------------------------------------------------------------------------- */

/* One frame, in one block: its bytes, its text and its type, each with a NUL. */
struct frame {
    struct list link;
    unsigned
        holders; /* the queue or the consumer, and `newest`; guarded by the stream's lock */
    struct reader_frame facts; /* its text is not used */
    struct str bytes, text, type, id;
};

/* --- streams ------------------------------------------------------------------------------ */

enum reading_state {
    READING_OPENING, /* the loop has not taken it over yet */
    READING_RUNNING,
    READING_ENDED, /* the outcome is known; frames may still wait in the queue */
    READING_STATE_COUNT,
};

extern const struct state reading_states[READING_STATE_COUNT];

/* How the call is made: transport_grpc.c, transport_http.c. On the loop's thread. */
struct stream_transport {
    MUST_CHECK bool (*start)(struct weir_stream *stream, struct err *e);
    void (*pause)(struct weir_stream *stream);
    void (*resume)(struct weir_stream *stream);
    void (*cancel)(struct weir_stream *stream);    /* nothing more is reported */
    void (*turn_over)(struct weir_stream *stream); /* may be NULL */
};
extern const struct stream_transport transport_grpc, transport_http;

/* What the loop and the consumer both use. */
struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum reading_state state;
    struct err refused; /* if it ended while opening */
    struct list queue;
    size_t queued;                     /* cost of what is in the queue */
    bool paused, resuming, cancelling; /* the last two: a mail is under way */
    struct frame *newest;              /* mode TERMINAL */
};

struct weir_stream {
    /* Not changed after it was opened. */
    struct weir_client *client;
    const struct stream_transport *transport;
    const struct reader_method *method;
    struct reader_method own; /* of a method without a row */
    struct text path;
    struct buf messages; /* of a gRPC call, each with its prefix; or the body */
    size_t message_count;
    struct http_header headers[GRPC_CALL_METADATA_MAX];
    size_t header_count;
    struct buf header_text;
    uint64_t deadline_ms;
    size_t queue_bytes, message_bytes;
    bool resumed;

    /* The loop's. */
    struct reader reader;
    struct grpc_call *grpc; /* NULL: over, or another transport */
    struct http_call *http;
    struct sse *sse;
    size_t sent;          /* bytes of `messages` */
    struct buf refusal;   /* the body of an answer that is no stream; details of a status */
    unsigned http_status; /* of such an answer */
    struct timer linger;
    struct mail open, resume, cancel, leave;

    struct shared shared;

    /* The loop's until READING_ENDED, then the consumer's. */
    struct weir_outcome outcome;
    struct buf outcome_text; /* reason and message, each with a NUL */

    /* The consumer's. */
    struct frame *current, *shown; /* shown: by weir_stream_snapshot() */
    struct buf json;
};

/* On the loop. A frame has arrived. */
void reading_take_message(struct weir_stream *stream, struct str message);
void reading_take_event(struct weir_stream *stream, const struct sse_event *event);

/* On the loop. The call is over, or was cancelled just before this. The texts are borrowed. */
void reading_end(struct weir_stream *stream, const struct reader_end *end, struct str message);

/* request.c: fill what is fixed from the options.
 * errors  ERR_INVALID_ARGUMENT what is wrong with them */
MUST_CHECK bool reading_take_options(struct weir_stream *stream,
                                     const struct weir_stream_options *options, struct err *e);

#endif
