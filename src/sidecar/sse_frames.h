/* sse_frames: cut a byte stream into the frames of server-sent events, as they were written.
 *
 * wire/sse.h reports what events mean. A proxy also needs their bytes, because what it does not
 * change must leave as it came. A frame is all lines up to an empty one. Its lines end in LF,
 * whatever the stream used, because readers of this contract know only LF.
 *
 *     : ping        event: result        data: [DONE]
 *                   data: {...}
 *
 * Memory   owns the frame that is being collected, at most limit_bytes.
 * Lends    each frame to on_frame.
 * Threads  none; values only.
 * Source   WHATWG HTML, "Server-sent events", Parsing an event stream.
 */
#ifndef WEIR_SIDECAR_SSE_FRAMES_H
#define WEIR_SIDECAR_SSE_FRAMES_H

#include "base/buf.h"
#include "base/err.h"

struct sse_frame {
    struct str bytes; /* its lines, each with its LF; without the empty line */
    struct str event; /* empty: the frame has no name */
    struct str data;  /* lines joined by LF; at == NULL: the frame has no data line */
};

/* False: no further frames. */
typedef bool sse_frame_fn(const struct sse_frame *frame, void *ctx);

struct sse_frames {
    size_t limit_bytes;
    struct buf lines; /* of the frame so far; the last one may be incomplete */
    size_t line;      /* where that one begins */
    struct buf data;  /* of a frame with several data lines */
    bool skips_lf;    /* the last byte was a CR that ended a line */
    bool began;       /* a byte came */
    bool stopped;
};

void sse_frames_init(struct sse_frames *frames, size_t limit_bytes);
void sse_frames_done(struct sse_frames *frames);

/* on_frame runs before this returns, zero or more times.
 * errors  ERR_TOO_LARGE a frame grew past the limit */
MUST_CHECK bool sse_frames_feed(struct sse_frames *frames, struct str bytes,
                                sse_frame_fn *on_frame, void *ctx, struct err *e);

/* Whether a frame has begun and its empty line has not come. */
bool sse_frames_midway(const struct sse_frames *frames);

#endif
