/* call: one call to a model or a tool as a file keeps it.
 *
 *     {"weir_tape": 1, "kind": "model", "started_us": 1790000000000000,
 *      "request": {...},                       what must be asked again, without secrets
 *      "who": {...},                           for people; not compared
 *      "heard": [{"at_ms": 3, "kind": "text", "text": "Hello.", "pieces": [[3, 5], [9, 6]]},
 *                {"at_ms": 9, "kind": "done", "model": "gpt-x"}]}
 *
 * Text that came in pieces is written as a whole, with the moment and the length of each: a
 * person can read it, and a secret that was cut in two is hidden all the same. The last event,
 * and no other, is an ending.
 *
 * Memory   a call borrows its text; one that was read borrows from the arena.
 * Threads  none; values only.
 * Source   docs/internals/tape.md.
 */
#ifndef WEIR_TAPE_CALL_H
#define WEIR_TAPE_CALL_H

#include "tape/mask.h"
#include "wire/event.h"

#define TAPE_VERSION 1

enum tape_kind { TAPE_MODEL, TAPE_TOOL };

enum tape_heard {
    TAPE_TEXT,
    TAPE_THINKING,
    TAPE_TOOL_CALL,
    TAPE_USAGE,
    TAPE_OPAQUE,
    TAPE_NOTE,
    TAPE_APPROVAL,
    TAPE_DONE,   /* of a model */
    TAPE_FAILED, /* of either */
    TAPE_RESULT, /* of a tool */
};

struct tape_event {
    enum tape_heard heard;
    enum err_code code; /* TAPE_FAILED */
    uint64_t at_ms;     /* since the call began */
    struct str call_id;
    struct str name; /* tool; dialect; model that answered; reason */
    struct str text; /* said; question; message; bytes; result */
    struct str args;
    const struct event_usage *usage; /* TAPE_USAGE */
};

struct tape_call {
    enum tape_kind kind;
    int64_t started_us; /* since 1970 */
    struct str request; /* one JSON object; read: compact and without secrets */
    struct str who;     /* likewise, or empty */
    const struct tape_event *events;
    size_t event_count;
};

/* "model", "tool". */
struct str tape_kind_name(enum tape_kind kind);

/* Append the file's bytes, indented, without secrets. False at the buffer's limit. */
bool tape_call_encode(const struct tape_call *call, const struct mask *mask, struct buf *out);

/* errors  ERR_MALFORMED it is none, with the place; ERR_FAILED_PRECONDITION a newer version;
 *         ERR_TOO_LARGE for the arena */
MUST_CHECK bool tape_call_decode(struct str text, struct arena *arena, struct tape_call *ret,
                                 struct err *e);

/* Append a member: JSON that is an object or an array as such, any other text as a string. */
void tape_put(struct json_writer *writer, const char *key, struct str text);

#endif
