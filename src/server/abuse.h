/* abuse: what one HTTP/2 connection has cost us, and when it has been too much.
 *
 * Every frame here is allowed once and an attack in thousands. Who counts is the protocol;
 * this only knows numbers and the time, and answers "that was one too many".
 *
 * Private to server/.
 *
 * Memory   a plain value, part of its connection.
 * Threads  none.
 * Source   RFC 9113 10.5; CVE-2023-44487 and its relatives; gRPC's rule for pings (A8).
 */
#ifndef WEIR_SERVER_ABUSE_H
#define WEIR_SERVER_ABUSE_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nghttp2_option;

/* Refills with time. */
struct budget {
    uint64_t left, most, per_s, since_ms;
};

#define ABUSE_RESETS_KEPT 32

/* What happened in each of the last seconds. */
#define ABUSE_WINDOW_S 10

struct abuse {
    struct budget refusals, chores;
    uint64_t fault_s; /* the newest second of `faults` */
    uint16_t faults[ABUSE_WINDOW_S];
    uint64_t ping_ms; /* of the peer's last ping without traffic since, or never */
    int ping_strikes;
    size_t section_bytes; /* of the header section that is coming */
    /* The streams that we reset last; `lost` is the highest that fell out. */
    int32_t resets[ABUSE_RESETS_KEPT], lost;
    uint32_t resets_at;
};

void abuse_init(struct abuse *abuse);

/* What nghttp2 counts better than we could: the peer's own resets, CONTINUATION frames,
 * settings in one frame, acknowledgements that nobody reads. */
void abuse_limit(struct nghttp2_option *options);

/* Each of these counts one and says whether it is still fine. */

/* A stream that we had to reset because of what the peer did on it. Each may have begun a turn,
 * and nobody does this by accident 200 times in ten seconds. */
MUST_CHECK bool abuse_fault(struct abuse *abuse, uint64_t now_ms);

/* A stream beyond the limit, which began nothing. */
MUST_CHECK bool abuse_refusal(struct abuse *abuse, uint64_t now_ms);

/* A frame that asks for nothing: SETTINGS, PRIORITY, empty DATA. */
MUST_CHECK bool abuse_chore(struct abuse *abuse, uint64_t now_ms);

/* A ping. Closer than `apart_ms`, with no traffic between them, they are only heat. */
MUST_CHECK bool abuse_ping(struct abuse *abuse, uint64_t now_ms, uint64_t apart_ms);
void abuse_heard(struct abuse *abuse); /* traffic from the peer: the next ping is no heat */
void abuse_said(struct abuse *abuse);  /* traffic to it: the strikes are forgiven, too */

/* A field of `bytes` in a header section, where `max_bytes` are allowed. So far past the limit
 * as this looks, it is an attack on the decoder, not a mistake. */
void abuse_section(struct abuse *abuse); /* one begins */
MUST_CHECK bool abuse_field(struct abuse *abuse, size_t bytes, size_t max_bytes);

/* A stream that we reset; for a while the peer may not know that and go on. */
void abuse_reset(struct abuse *abuse, int32_t stream_id);
bool abuse_was_reset(const struct abuse *abuse, int32_t stream_id);

#endif
