/* sse: cut a byte stream into server-sent events, and write them.
 *
 * Feed it bytes as they arrive, in pieces of any size; whole events come out of on_event in
 * order. There is no socket and no clock in here, so a test drives it with a string and the
 * fuzzer with noise. An event without its blank line is not reported; at the end of a stream
 * sse_midway() says whether one was cut off.
 *
 * Memory   owns its line and field buffers, each at most limit_bytes; small ones are kept
 *          between events, large ones are given back.
 * Lends    each event to on_event; copy what must outlive the callback.
 * Threads  none; one parser belongs to one loop.
 * Source   WHATWG HTML, "Server-sent events", Parsing and Interpreting an event stream. */
#ifndef WEIR_WIRE_SSE_H
#define WEIR_WIRE_SSE_H

#include "base/buf.h"
#include "base/err.h"

struct sse;          /* opaque: it has rules to keep */
struct sse_event {   /* open: a plain value; all text is valid UTF-8 */
    struct str type; /* "message" when the stream names none */
    struct str data; /* data lines joined by '\n' */
    struct str id;   /* the last id in the stream so far */
};

/* Runs before sse_feed() returns. It may call sse_stop(), but not sse_feed() or sse_free(). */
typedef void sse_event_fn(const struct sse_event *event, void *ctx);

/* The caller owns the result and ends it with sse_free(), which accepts NULL. */
struct sse *sse_new(size_t limit_bytes, sse_event_fn *on_event, void *ctx);
void sse_free(struct sse *sse);

/* Parse `bytes` (borrowed). on_event runs before this returns, zero or more times.
 * ERR_TOO_LARGE: a line or an event grew past limit_bytes; the parser is spent, free it. */
MUST_CHECK bool sse_feed(struct sse *sse, struct str bytes, struct err *e);

/* Report no further events; later input is dropped. */
void sse_stop(struct sse *sse);

/* Whether an event has begun and its blank line has not arrived yet. */
bool sse_midway(const struct sse *sse);

/* The last id, for Last-Event-ID on reconnect; empty when there was none. */
struct str sse_last_id(const struct sse *sse);

/* The reconnection delay that the stream requested; false when it requested none. */
bool sse_retry_ms(const struct sse *sse, uint64_t *ret);

/* Append one event: LF only, `id:` and `event:` (each left out when empty) before `data: `.
 * Line breaks of any kind in data start further data lines; type and id must not contain any.
 * False at the limit of the buffer. */
bool sse_append(struct buf *out, struct str type, struct str id, struct str data);

/* Whether `data` has no line break, so that "data: ", it and two line feeds are an event. */
bool sse_is_line(struct str data);

/* Append a comment that readers skip, ": text" and a blank line: the heartbeat. */
bool sse_append_comment(struct buf *out, struct str text);

#endif
