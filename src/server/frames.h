/* frames: walk over the HTTP/2 frames of a peer, one head after the other.
 *
 *     ┌────────────┬────────┬─────────┬────────────┬─────────────────────┐
 *     │ length 3   │ type 1 │ flags 1 │ stream 4   │ length bytes        │
 *     └────────────┴────────┴─────────┴────────────┴─────────────────────┘
 *
 * nghttp2 reads frames for us, and drops some in silence that are mistakes all the same. This
 * looks at the heads only, ahead of it, so that those can be told.
 *
 * Memory   none beyond the struct.
 * Threads  none.
 * Source   RFC 9113 4.1, 6.3.
 */
#ifndef WEIR_SERVER_FRAMES_H
#define WEIR_SERVER_FRAMES_H

#include "base/str.h"

#define FRAMES_HEAD_BYTES 9
#define FRAMES_PREFACE_BYTES 24
#define FRAMES_SETTINGS 4 /* the type */

struct frame_head {
    uint8_t type;
    int32_t stream;  /* 31 bits */
    uint32_t first4; /* of the payload, where it has that much and is a PRIORITY frame */
};

struct frames {
    uint8_t head[FRAMES_HEAD_BYTES + 4];
    uint8_t have;
    uint32_t left; /* bytes to pass over */
};

/* At the beginning of a client's bytes, the preface. */
void frames_init(struct frames *frames);

/* Take from the front of *bytes up to the next head. False when all was taken before that. */
bool frames_next(struct frames *frames, struct str *bytes, struct frame_head *ret);

/* Where `frame` is a SETTINGS frame that names `setting`, give it another value. */
void frames_set(char *frame, size_t len, uint16_t setting, uint32_t value);

#endif
