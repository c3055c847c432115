/* cursor: the id of an event that a client of the tool server got: where its call goes on.
 *
 *     <run>.<seq>.<request id>[.<progress token>]        12.40.Nw.InQi
 *
 * A call is a run, and a run is a journal. So the id says which run, after which of its events,
 * which request is answered, and with which token its progress is reported. The server needs no
 * memory of the client: it can continue on any loop, and after a restart. The two JSON values are
 * base64url of their source text.
 *
 * Memory   decoded values live in the caller's arena.
 * Threads  none; values only.
 * Source   Model Context Protocol 2025-11-25, "Resumability and Redelivery".
 */
#ifndef WEIR_TOOLSERVER_CURSOR_H
#define WEIR_TOOLSERVER_CURSOR_H

#include "wire/json.h"

#define TOOLSERVER_ID_MAX_BYTES 256 /* of a request's id, and of a token */
#define TOOLSERVER_CURSOR_MAX_BYTES 1024

struct toolserver_cursor {
    uint64_t run, seq;
    struct json id;    /* a string or an integer */
    struct json token; /* the same; JSON_NONE: no progress is wanted */
};

/* Append it. False at the limit of the buffer. */
bool toolserver_cursor_write(const struct toolserver_cursor *cursor, struct buf *out);

/* False: no event of ours has this id. */
MUST_CHECK bool toolserver_cursor_read(struct str text, struct arena *arena,
                                       struct toolserver_cursor *ret);

#endif
