/* reply_event: one event in the reply of a model or a media provider.
 *
 * Every provider reports only these events, to one callback. The layers between a provider and
 * its reader (gate, chain, recording) keep them, pass them on or write them to disk.
 *
 *     text | thinking | tool call | approval | opaque | note |      a model
 *     own call | own result                                         an agent, besides
 *     text | artifact | vector                                      a media provider
 *         ... ─▶ usage ─▶ done | failed
 *
 * Memory   an event and everything it points to are valid only during the callback.
 *          reply_event_copy() keeps one.
 * Threads  none; values only.
 */
#ifndef WEIR_WIRE_REPLY_EVENT_H
#define WEIR_WIRE_REPLY_EVENT_H

#include "base/list.h"
#include "wire/event.h"

enum reply_kind {
    REPLY_TEXT,      /* text: a piece of the answer; of a transcript, all of it */
    REPLY_THINKING,  /* text: a piece of the reasoning */
    REPLY_TOOL_CALL, /* call_id, tool, args. An empty id or tool: the reply named none */
    REPLY_USAGE,     /* usage */
    /* dialect, text: the reply as its provider sent it, for a MESSAGE_OPAQUE (provider.h). Once
     * at most. */
    REPLY_OPAQUE,
    REPLY_NOTE, /* text: information for the reader. provider.h names two of them. args: JSON
                   that goes with it, or empty */
    /* call_id, text, tool, args: a question to a human that this reply ends with; tool may be
     * empty. */
    REPLY_APPROVAL,
    REPLY_ARTIFACT, /* artifact: audio or an image; of a live model, a piece of what it says */
    REPLY_VECTOR,   /* vector */
    /* Of an agent that makes its calls itself, to be shown and recorded: call_id (its own name
     * for the call, or empty), tool, args. */
    REPLY_OWN_CALL,
    /* call_id (empty: of the oldest such call without a result), text: the result; reason:
     * empty, or why the call failed. */
    REPLY_OWN_RESULT,

    /* The endings: exactly one of them, and nothing after it. */
    REPLY_DONE, /* model: the one that answered; may be empty */
    /* code; reason: stable, for programs; text: one sentence for the caller. As EVENT_FAILED.
     */
    REPLY_FAILED,
    REPLY_RESULT, /* text: what a tool answered (only in a recording, tape/call.h) */
    REPLY_KIND_COUNT,
};

/* A complete audio clip or image. Unknown values are 0 or empty. */
struct media_artifact {
    struct str content_type; /* "audio/wav", "audio/pcm", "image/png" */
    struct str bytes, uri;   /* one of them, or both */
    int64_t sample_rate_hz, channels, duration_ms, width, height;
};

struct reply_vector {
    size_t input; /* which input of the request, counted from 0 */
    const double *values;
    size_t count;
};

/* Where a text is cut that came in several pieces at once. */
struct reply_pieces {
    const uint32_t *lens; /* of each piece; together they are the text */
    size_t count;
    bool ascii; /* all of the text is, and no piece is empty; false: it was not checked */
};

/* Text need not be valid UTF-8, nor cut between characters. */
struct reply_event {
    enum reply_kind kind;
    enum err_code code;
    struct str text, call_id, args;
    union {
        struct str name; /* any of these */
        struct str tool, dialect, model, reason;
    };
    union {
        const struct event_usage *usage;
        const struct media_artifact *artifact;
        const struct reply_vector *vector;
        /* Of REPLY_TEXT: where `text` is cut. NULL: it is one piece, as always where the request
         * did not say takes_pieces. */
        const struct reply_pieces *pieces;
    };
};

typedef void reply_event_fn(const struct reply_event *event, void *ctx);

static inline bool reply_event_ends(const struct reply_event *event) {
    return event->kind >= REPLY_DONE;
}

/* The ending of a reply that failed; borrows both. */
static inline struct reply_event reply_event_failed(const struct err *why, struct str reason) {
    return (struct reply_event){
        .kind = REPLY_FAILED, .code = why->code, .text = err_text(why), .reason = reason};
}

/* Call the handler for the event's kind; a kind without a handler is ignored. */
static inline void reply_event_handle(reply_event_fn *const handlers[REPLY_KIND_COUNT],
                                      const struct reply_event *event, void *ctx) {
    if (handlers[event->kind]) handlers[event->kind](event, ctx);
}

/* Call `fn` for `event`; for a text of several pieces once for each, as a text of its own. */
void reply_event_each(const struct reply_event *event, reply_event_fn *fn, void *ctx);

/* An event together with everything it points to. */
struct reply_copy {
    struct list link; /* for a queue of them; in none at first */
    struct reply_event event;
    struct event_usage usage; /* of REPLY_USAGE */
};

/* Not for artifacts and vectors: they are reported whole and are never held back. The copy of a
 * text is one piece. */
struct reply_copy *reply_event_copy(const struct reply_event *event);

/* Remove it from its queue and free it. Accepts NULL. */
void reply_copy_free(struct reply_copy *copy);

#endif
