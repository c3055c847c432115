/* pace: whether a peer takes what waits for it, or only looks as if it did.
 *
 * A peer that takes one byte now and then makes progress for ever. So in each stretch of time
 * in which something waits all the while, all that waited when it began must leave, or as many
 * bytes as the rate wants. Nothing is asked of a peer for which nothing waits.
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
    size_t waited;     /* then */
    size_t left;       /* since */
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
