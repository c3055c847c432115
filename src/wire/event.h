/* event: what can happen in a run, and its encoding.
 *
 * One vocabulary for the whole program: runs append events, every contract projects them, and
 * the store keeps the bytes of the journal. An encoded event is
 *
 *     ┌────────┬───────────┬──────────────────────────────────────────┐
 *     │ kind 1 │ len varint│ fields in the order of struct event       │
 *     └────────┴───────────┴──────────────────────────────────────────┘
 *     text: varint length, bytes · number: zigzag varint · flag: one byte
 *
 * Fields may only be added at the end of a kind. A missing one reads as empty, zero or (tokens)
 * unknown, and bytes after the last known field are skipped. Sequence numbers are not encoded:
 * they follow from the position.
 *
 * Memory   decoded text borrows the encoded bytes.
 * Threads  none; values only. */
#ifndef WEIR_WIRE_EVENT_H
#define WEIR_WIRE_EVENT_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/usage.h"

#include <assert.h>

enum event_kind {
    /* The numbers are on disk: never change one. */
    EVENT_STARTED = 1,
    EVENT_TEXT = 2,
    EVENT_THINKING = 3,
    EVENT_TOOL_CALL = 4,
    EVENT_TOOL_RESULT = 5,
    EVENT_USAGE = 6,
    EVENT_STEP = 7,
    EVENT_AUDIO = 8,
    EVENT_APPROVAL = 9,
    EVENT_ITEM = 10,
    EVENT_DONE = 11,
    EVENT_FAILED = 12,
    EVENT_CANCELLED = 13,
    EVENT_KIND_COUNT,
};

/* The id of the question about a call: this, then the call's id. */
#define EVENT_APPROVAL_ID "approve-"

struct event {
    uint64_t seq; /* 1, 2, 3 ... in its journal */
    enum event_kind kind;
    int64_t at_ms;    /* since the run started; 0 in EVENT_STARTED itself */
    struct str agent; /* slug of the acting agent; the addressed agent in EVENT_STARTED */
    union {
        struct {
            struct str workspace, user, session;
            struct str text;     /* what the caller said */
            struct str contract; /* the contract it came by: "crawbl", "agentbreeder", "cli" */
            uint64_t parent;     /* run that lent its session, or 0 */
            int64_t unix_ms;     /* when */
            struct str key;      /* the caller's idempotency key, or empty */
            struct str print;    /* with a key: the request's fingerprint */
            struct str extras;   /* a JSON object that the caller sent, or empty */
            struct str trace;    /* as trace_context_put() writes it, or empty */
            struct str options; /* of its model, that the caller set: a JSON object, or empty */
        } started;
        struct {
            struct str text; /* never empty, valid UTF-8, no character cut */
        } text, thinking;
        struct {
            /* args: one JSON object; of a call that the caller makes perhaps any text */
            struct str call_id, tool, args;
            bool held;       /* waits for a human's approval */
            bool idempotent; /* making it twice does no harm */
            struct str said; /* of a reply's first call: the reply's text as it streamed */
            bool callers;    /* the caller makes it, after the turn: no result follows here */
        } tool_call;
        struct {
            struct str call_id, result; /* result: one JSON object */
            bool error;
            struct str message; /* for an error: the text to show */
        } tool_result;
        struct event_usage usage;
        struct {
            struct str description, result; /* result: JSON, or empty */
        } step;
        struct {
            struct str type, bytes; /* type: a media type, or a contract's message name */
        } audio, item;
        struct {
            struct str call_id, question, tool, args; /* tool may be empty: a plain question */
            struct str
                guards;      /* id of the tool call that waits for it; empty: the model asks */
            struct str said; /* when the model asks: the text before it, as it streamed */
        } approval;
        struct {
            struct str model;
            struct str turns; /* encoded; read with event_turn_next() */
        } done;
        struct {
            enum err_code code;
            struct str reason;  /* stable, for programs: "PROVIDER_TIMEOUT" */
            struct str message; /* for people; holds no secret */
            bool acted;      /* a call that is not idempotent was made: a retry may repeat it */
            struct str said; /* the text of the interrupted reply, as it streamed */
        } failed;
        struct {
            struct str message;
            bool left;  /* because its caller left, not by request */
            bool acted; /* as above */
            struct str said;
        } cancelled;
    };
};

/* One final reply of a run, as EVENT_DONE lists them. */
struct event_turn {
    struct str agent, text;
};

/* "text", "tool_call": the names used in design.md. */
struct str event_kind_name(enum event_kind kind);

/* The properties of each kind. */
struct event_kind_row {
    const char *name;
    bool terminal, needs_disk;
};
extern const struct event_kind_row event_kinds[EVENT_KIND_COUNT];

/* done, failed and cancelled: the last event of a journal. */
static inline bool event_is_terminal(enum event_kind kind) {
    assert(kind < EVENT_KIND_COUNT);
    return event_kinds[kind].terminal;
}

/* Whether it must be on disk before it is shown: a tool call, an approval, a terminal event. */
static inline bool event_needs_disk(enum event_kind kind) {
    assert(kind < EVENT_KIND_COUNT);
    return event_kinds[kind].needs_disk;
}

/* Append the encoding of `event`. False at the buffer's limit. */
bool event_encode(const struct event *event, struct buf *out);

/* Exactly the number of bytes that event_encode() appends. *ret_body is for event_put(). */
size_t event_encoded_len(const struct event *event, size_t *ret_body);

/* Write the encoding at `at`, which has room for event_encoded_len() bytes. */
void event_put(const struct event *event, size_t body, char *at);

/* Texts of one agent at one moment, one after another in `text`. */
struct event_texts {
    struct str agent, text;
    int64_t at_ms;
    const uint32_t *lens; /* of each text */
    size_t count;
};

/* Encode the first of *texts at `at`, as many as fit in `room` bytes, and take them out of *texts.
 * Returns the number of bytes written; 0: not even one fits, or none is left. */
size_t event_put_texts(struct event_texts *texts, char *at, size_t room);

/* Move *bytes past the text events at its front, at most `max`, reading only their lengths. Stops
 * at a truncated one. Returns the number of events skipped. */
size_t event_skip_texts(struct str *bytes, size_t max);

/* If the first event is a text without unknown fields, move *bytes past it and set both;
 * *ret_text is the end of the event. False, and nothing moved, for any other event. */
bool event_take_text(struct str *bytes, struct str *ret_agent, struct str *ret_text);

/* The same, for a loop over many: nearly all are short, so that each length is one byte. Only
 * copies go to the slow way, so that a loop has its variables in registers. */
static inline __attribute__((always_inline)) bool
event_next_text(struct str *bytes, struct str *ret_agent, struct str *ret_text) {
    const char *at = bytes->at, *end = at + bytes->len, *next, *agent, *text;
    if (end - at < 4 || at[0] != EVENT_TEXT || (unsigned char)at[1] > 0x7F ||
        at[1] > end - at - 2)
        goto slow;
    next = at + 2 + at[1];
    agent = at + 3;
    if ((unsigned char)at[2] > 0x7F || at[2] >= next - agent) goto slow;
    text = agent + at[2];
    if ((unsigned char)*text > 0x7F) text++; /* the moment: one byte, or two */
    if (next - text < 2 || (unsigned char)*text > 0x7F ||
        next - text - 2 != (unsigned char)text[1])
        goto slow;
    *ret_agent = (struct str){agent, (size_t)at[2]};
    *ret_text = (struct str){text + 2, (size_t)(next - text - 2)};
    *bytes = (struct str){next, (size_t)(end - next)};
    return true;

slow:;
    struct str rest = *bytes, by, said;
    if (!event_take_text(&rest, &by, &said)) return false;
    *bytes = rest;
    *ret_agent = by;
    *ret_text = said;
    return true;
}

/* Skip one event of any kind by its length. False, without skipping, at the end or if it is cut
 * short. */
bool event_skip(struct str *bytes);

/* Read the first event of *bytes and move *bytes past it. seq is left unchanged.
 * errors  ERR_DATA_LOSS truncated, or of an unknown kind */
MUST_CHECK bool event_decode(struct str *bytes, struct event *ret, struct err *e);

/* Append one turn to the bytes for done.turns. */
bool event_turn_append(struct buf *turns, struct str agent, struct str text);

/* Read the next turn of done.turns. False at the end. */
bool event_turn_next(struct str *turns, struct event_turn *ret);

#endif
