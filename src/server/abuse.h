/* abuse: counters that detect abuse of one HTTP/2 connection.
 *
 * Each of these frames is legal once and an attack by the thousand. The protocol reports them;
 * this module only counts them over time and says when a limit is exceeded.
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
struct abuse_budget {
    uint64_t left, most, per_s, since_ms;
};

#define ABUSE_RESETS_KEPT 32

/* What happened in each of the last seconds. */
#define ABUSE_WINDOW_S 10

struct abuse {
    struct abuse_budget refusals, chores;
    uint64_t fault_s; /* the newest second of `faults` */
    uint16_t faults[ABUSE_WINDOW_S];
    uint64_t ping_ms; /* of the peer's last ping without traffic since, or never */
    int ping_strikes;
    size_t section_bytes; /* of the current header section */
    /* The streams that we reset last; `lost` is the highest that fell out. */
    int32_t resets[ABUSE_RESETS_KEPT], lost;
    uint32_t resets_at;
};

void abuse_init(struct abuse *abuse);

/* Set the limits that nghttp2 enforces itself: the peer's own resets, CONTINUATION frames,
 * settings in one frame, unread acknowledgements. */
void abuse_limit(struct nghttp2_option *options);

/* Each of these counts one occurrence and returns whether it is within the limit. */

/* A stream that we reset because of an error of the peer. Each may have started a turn, and 200
 * of them in ten seconds are no accident. */
MUST_CHECK bool abuse_fault(struct abuse *abuse, uint64_t now_ms);

/* A stream beyond the limit, which started no work. */
MUST_CHECK bool abuse_refusal(struct abuse *abuse, uint64_t now_ms);

/* A frame that carries no request: SETTINGS, PRIORITY, empty DATA. */
MUST_CHECK bool abuse_chore(struct abuse *abuse, uint64_t now_ms);

/* A ping. Pings closer than `apart_ms`, with no traffic between them, are useless load. */
MUST_CHECK bool abuse_ping(struct abuse *abuse, uint64_t now_ms, uint64_t apart_ms);
void abuse_heard(struct abuse *abuse); /* traffic from the peer: the next ping is legitimate */
void abuse_said(struct abuse *abuse);  /* traffic to the peer: clears the strikes as well */

/* A field of `bytes` in a header section limited to `max_bytes`. False: so far past the limit
 * that it is an attack on the decoder and not a mistake. */
void abuse_section(struct abuse *abuse); /* one begins */
MUST_CHECK bool abuse_field(struct abuse *abuse, size_t bytes, size_t max_bytes);

/* A stream that we reset. The peer may keep sending on it until it learns of the reset. */
void abuse_reset(struct abuse *abuse, int32_t stream_id);
bool abuse_was_reset(const struct abuse *abuse, int32_t stream_id);

#endif
