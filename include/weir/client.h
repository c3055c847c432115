/* weir/client.h: read the streams of an agent runtime from a program. cc app.c -lweir-client
 *
 *     struct weir_client *client = weir_client_new(&(struct weir_client_options){
 *         .size = sizeof(struct weir_client_options), .address = "127.0.0.1:50051"}, NULL, 0);
 *     struct weir_stream *stream = weir_stream_open(client, &(struct weir_stream_options){
 *         .size = sizeof(struct weir_stream_options), .method = "StreamScenario",
 *         .json = request}, NULL, 0);
 *     while (weir_stream_next(stream, &frame, -1) == WEIR_NEXT_FRAME) ...
 *     weir_stream_outcome(stream, &outcome);
 *
 * Frames come in order, each once, and none is lost: when the queue of a stream holds
 * `queue_bytes`, the library reads no further, and flow control holds the server back. After the
 * last frame there is one outcome. It is `completed` only if the completing frame of the stream
 * has arrived; docs/client.md has the table. The library opens nothing again by itself: the
 * outcome says whether repeating is safe, and what to wait for.
 *
 * It reads the streams of nimi.runtime.v1, AgentRuntime.Converse, POST /stream of the Runtime
 * Contract and a run's events. A client is one server's address; its streams share a
 * connection.
 *
 * Memory   a client and a stream are yours until their _free. A frame, its texts and its JSON
 *          are the library's, until the next call of weir_stream_next or _free for that stream.
 *          A stream holds `queue_bytes`, plus at most one message and what HTTP/2 had on its way
 *          (64 KiB). When the machine's memory is exhausted, the process ends.
 * Threads  a client has one thread, with all signals blocked. Each function may be called from
 *          any thread; one stream's weir_stream_next, _json, _snapshot, _outcome and _free from
 *          one thread at a time. weir_stream_cancel may be called beside them. After fork() the
 *          child may use neither client nor streams of its parent.
 *
 * The ABI is stable. Structs only grow at their ends; set `size` to sizeof the struct, also in
 * those that are filled for you. Numbers of enums are never reused.
 *
 * Texts are UTF-8 and end with NUL. NULL and 0 in an options struct mean the default.
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_CLIENT_ABI 1

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

struct weir_client; /* one server */
struct weir_stream; /* one call */

struct weir_client_options {
    size_t size;
    const char *address;     /* "host:port", "http://host:port", "https://host" */
    const char *token;       /* sent as "authorization: Bearer TOKEN" */
    const char *authorities; /* a file or folder of PEM, instead of the system's */
    const char *app_id;      /* who asks, in the envelope of nimi.runtime.v1 */
};

/* NULL: it cannot be made, and `error` says why (cut to its room). Nothing is dialled yet. */
WEIR_API struct weir_client *weir_client_new(const struct weir_client_options *options,
                                             char *error, size_t error_room);

/* Streams that are still there keep what they need. */
WEIR_API void weir_client_free(struct weir_client *client); /* accepts NULL */

/* How a method closes its streams. */
enum weir_mode {
    WEIR_MODE_KNOWN = 0, /* that of the method, which the library knows */
    WEIR_MODE_DONE = 1,  /* A: a last frame says done */
    WEIR_MODE_TERMINAL = 2,
    WEIR_MODE_EOF = 3,
    WEIR_MODE_SUBSCRIPTION = 4, /* D: never by itself */
};

struct weir_stream_options {
    size_t size;
    /* "/package.Service/Method", "StreamScenario", "/stream", "runs/ID/events". A gRPC method
     * that the library does not know needs `request`, and `mode` WEIR_MODE_SUBSCRIPTION: of an
     * unknown message it cannot tell which frame completes a stream. */
    const char *method;
    const char *json;    /* the request; for Converse also an array: one turn after the other */
    const void *request; /* or its bytes, instead of `json` */
    size_t request_len;
    int mode;             /* enum weir_mode */
    uint64_t deadline_ms; /* of the whole call; sent to the server */
    size_t queue_bytes;   /* 1 MiB */
    size_t message_bytes; /* the longest message that is accepted; 4 MiB */
    /* More headers: name, value, name, value ... NULL. */
    const char *const *headers;
    int resumed; /* the request asks for what follows a number: any may come first */
};

/* NULL: the request cannot be sent as it is, and `error` says why. A server that cannot be
 * reached is an outcome, not an error. */
WEIR_API struct weir_stream *weir_stream_open(struct weir_client *client,
                                              const struct weir_stream_options *options,
                                              char *error, size_t error_room);

struct weir_frame {
    size_t size;
    const void *bytes; /* a protobuf message, or the data of a server-sent event */
    size_t len;
    const char *type; /* the message's name, or the event's */
    uint64_t number;  /* in the stream, where it has one; else 0 */
    uint64_t missing; /* numbers left out right before this one */
    const char *text; /* the piece of answer in it, or "" */
    size_t text_len;
    int last;      /* it completes the stream */
    int turn_over; /* Converse: it ends a turn */
};

enum weir_next {
    WEIR_NEXT_FRAME = 1,
    WEIR_NEXT_END = 0,      /* nothing more comes; ask for the outcome */
    WEIR_NEXT_TIMEOUT = -1, /* nothing has come in that time */
};

/* The next frame, after at most timeout_ms; below 0: as long as it takes. */
WEIR_API int weir_stream_next(struct weir_stream *stream, struct weir_frame *frame,
                              int timeout_ms);

/* The frame that weir_stream_next() has given last, as JSON: a protobuf message in the JSON of
 * protobuf; an event as {"event", "id", "data"}; bytes of an unknown message as {"base64"}. NULL:
 * there is no frame, or it nests too deeply. */
WEIR_API const char *weir_stream_json(struct weir_stream *stream);

/* The newest frame that has arrived of a stream that closes with a terminal event: the state,
 * even if the stream broke. It may be ahead of weir_stream_next(). 0: none has arrived. */
WEIR_API int weir_stream_snapshot(struct weir_stream *stream, struct weir_frame *frame);

/* Stop reading. What has arrived is still handed out; then comes the end. */
WEIR_API void weir_stream_cancel(struct weir_stream *stream);

enum weir_outcome_code {
    WEIR_COMPLETED = 0,
    WEIR_FAILED = 1,
    WEIR_WORK_CANCELLED = 2,
    WEIR_REFUSED = 3,
    WEIR_UNKNOWN = 4,
    WEIR_TRUNCATED = 5,
    WEIR_PREEMPTED = 6,
    WEIR_SLOW_CONSUMER = 7,
    WEIR_TIMED_OUT = 8,
    WEIR_BROKEN = 9,
    WEIR_INCOMPLETE = 10,
    WEIR_DISCONNECTED = 11,
    WEIR_CANCELLED = 12,
};

/* Whether the same request may be sent again. */
enum weir_repeat {
    WEIR_REPEAT_NO = 0,      /* nothing to repeat, or it would be refused again */
    WEIR_REPEAT_YES = 1,     /* nothing can happen twice */
    WEIR_REPEAT_UNKNOWN = 2, /* it may have been executed: you decide */
};

/* What to do before that. */
enum weir_wait {
    WEIR_WAIT_NONE = 0,
    WEIR_WAIT_BACKOFF = 1, /* weir_backoff_ms() */
    WEIR_WAIT_READY = 2,   /* ask the server's health with that back-off, until it is ready */
};

/* What the server did against the contract: bits. */
enum weir_fault {
    WEIR_FAULT_MALFORMED = 1,
    WEIR_FAULT_AFTER_END = 2,
    WEIR_FAULT_FIRST_NUMBER = 4,
    WEIR_FAULT_GAP = 8,
    WEIR_FAULT_NUMBER_ORDER = 16,
    WEIR_FAULT_DISAGREES = 32,
    WEIR_FAULT_NO_END = 64,
    WEIR_FAULT_ERROR_AFTER_END = 128,
    WEIR_FAULT_NOT_CLOSED = 256,
    WEIR_FAULT_OK_ON_SUBSCRIPTION = 512,
    WEIR_FAULT_VERSION = 1024,
};

struct weir_outcome {
    size_t size;
    int code;             /* enum weir_outcome_code */
    const char *name;     /* "completed" */
    const char *meaning;  /* a sentence */
    int repeat;           /* enum weir_repeat */
    int wait;             /* enum weir_wait */
    const char *snapshot; /* fetch the state with this method first; NULL: no need */
    int status;           /* the gRPC status that counts; 14 where none came */
    const char *status_name;
    int reason_code;     /* the number of a ReasonCode, or 0 */
    const char *reason;  /* its name, or the contract's error code, or "" */
    const char *message; /* the server's or the transport's text, or "" */
    const char *event;   /* "runtime.disconnected" when a subscription was closed, else "" */
    unsigned faults;     /* bits of enum weir_fault */
    uint64_t frames;     /* that were handed out, or wait to be */
    uint64_t missing;    /* numbers that were left out */
};

/* After WEIR_NEXT_END. 0: the stream has not ended yet, or frames still wait to be taken. Texts live
 * as long as the stream. */
WEIR_API int weir_stream_outcome(struct weir_stream *stream, struct weir_outcome *outcome);

/* Cancels the call if it is not over. */
WEIR_API void weir_stream_free(struct weir_stream *stream); /* accepts NULL */

/* How long to wait before repetition `attempt`, from 1: 200 ms doubling to 3 s, each shortened by
 * chance by less than half. */
WEIR_API uint64_t weir_backoff_ms(unsigned attempt);

WEIR_API const char *weir_fault_name(unsigned fault);    /* one bit; "" for any other number */
WEIR_API const char *weir_fault_meaning(unsigned fault); /* the same, a sentence */
WEIR_API const char *weir_client_version(void);

#ifdef __cplusplus
}
#endif

#endif
