/* pace: whether a peer reads its output fast enough.
 *
 * A peer that reads one byte now and then would make progress for ever. So a minimum applies to
 * each stretch of time during which output is always waiting: either everything that waited at
 * its start must leave, or as many bytes as the minimum rate requires. Without waiting output
 * there is no minimum.
 *
 * Private to server/.
 *
 * Memory   a plain value.
 * Threads  none.
 */
#ifndef WEIR_SERVER_PACE_H
#define WEIR_SERVER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pace {
    uint64_t since_ms; /* when the stretch began */
    size_t waited;     /* bytes waiting at that time */
    size_t left;       /* bytes sent since */
};

static inline void pace_begin(struct pace *pace, uint64_t now_ms, size_t waiting) {
    *pace = (struct pace){.since_ms = now_ms, .waited = waiting};
}

static inline void pace_left(struct pace *pace, size_t len) {
    pace->left += len;
}

static inline bool pace_is_enough(const struct pace *pace, size_t wanted) {
    return pace->left >= (pace->waited < wanted ? pace->waited : wanted);
}

#endif
