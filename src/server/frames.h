/* frames: walk over the frame headers in a peer's HTTP/2 bytes.
 *
 *     ┌────────────┬────────┬─────────┬────────────┬─────────────────────┐
 *     │ length 3   │ type 1 │ flags 1 │ stream 4   │ length bytes        │
 *     └────────────┴────────┴─────────┴────────────┴─────────────────────┘
 *
 * nghttp2 parses the frames, but silently drops some that are errors. This walk looks only at
 * the frame headers, ahead of nghttp2, so that those errors can be detected.
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
    uint32_t first4; /* first 4 payload bytes, if it has them and is a PRIORITY frame */
};

struct frames {
    uint8_t head[FRAMES_HEAD_BYTES + 4];
    uint8_t have;
    uint32_t left; /* bytes to skip */
};

/* Start at the beginning of a client's bytes, before the preface. */
void frames_init(struct frames *frames);

/* Consume *bytes up to and including the next frame header. False: all bytes were consumed
 * first. */
bool frames_next(struct frames *frames, struct str *bytes, struct frame_head *ret);

/* If `frame` is a SETTINGS frame that contains `setting`, replace its value. */
void frames_set(char *frame, size_t len, uint16_t setting, uint32_t value);

#endif
