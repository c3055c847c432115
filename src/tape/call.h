/* call: the file format of one recorded call to a model or a tool.
 *
 *     {"weir_tape": 1, "kind": "model", "started_us": 1790000000000000,
 *      "request": {...},                       compared when playing; without secrets
 *      "who": {...},                           for people; not compared
 *      "heard": [{"at_ms": 3, "kind": "text", "text": "Hello.", "pieces": [[3, 5], [9, 6]]},
 *                {"at_ms": 9, "kind": "done", "model": "gpt-x"}]}
 *
 * Text that arrived in pieces is written as a whole, with the time and length of each piece. It
 * is readable that way, and a secret that was split between pieces is still hidden. The last
 * event, and only the last, is an ending.
 *
 * Memory   a call borrows its text; one that was read borrows from the arena.
 * Threads  none; values only.
 * Source   docs/internals/tape.md.
 */
#ifndef WEIR_TAPE_CALL_H
#define WEIR_TAPE_CALL_H

#include "tape/mask.h"
#include "wire/reply_event.h"

#define TAPE_VERSION 1

enum tape_kind { TAPE_MODEL, TAPE_TOOL };

/* A model ends with REPLY_DONE or REPLY_FAILED, a tool with REPLY_RESULT or REPLY_FAILED. */
struct tape_event {
    uint64_t at_ms; /* since the call began */
    struct reply_event reply;
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

/* errors  ERR_MALFORMED not a recording, with the position; ERR_FAILED_PRECONDITION a newer
 *         version; ERR_TOO_LARGE for the arena */
MUST_CHECK bool tape_call_decode(struct str text, struct arena *arena, struct tape_call *ret,
                                 struct err *e);

/* Whose call it is: the member "who", which is not compared. */
struct tape_who {
    uint64_t run;       /* 0: unknown */
    struct str call_id; /* of a tool's call; or empty */
    struct str workspace, user, session;
};

/* Append it as a JSON object. */
void tape_put_who(const struct tape_who *who, struct buf *out);

/* Append a member: a JSON object or array as JSON, any other text as a string. */
void tape_put(struct json_writer *writer, const char *key, struct str text);

#endif
