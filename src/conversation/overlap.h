/* overlap: how much of a list's beginning is the end of another list.
 *
 *     held     a b c d          the longest beginning of `brought` that `held` ends with: 2
 *     brought      c d e
 *
 * Some elements of `held` may be missing in `brought`, and an element of `held` may match
 * several different ones of `brought`. The comparisons grow with the sum of both lengths (times
 * a logarithm), not with their product: this is the algorithm of Knuth, Morris and Pratt, whose
 * table is of `brought`, with several places in it followed at once.
 *
 * Memory   a table of `brought`, during the call.
 * Threads  none.
 * Source   Knuth, Morris, Pratt: "Fast pattern matching in strings", 1977, with its table for
 *          a bounded delay.
 */
#ifndef WEIR_CONVERSATION_OVERLAP_H
#define WEIR_CONVERSATION_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>

struct overlap {
    size_t held_count, brought_count;
    /* Whether two elements of `brought` are equal: whatever matches one matches the other. */
    bool (*equals)(size_t brought, size_t other, void *ctx);
    bool (*matches)(size_t held, size_t brought, void *ctx);
    bool (*may_miss)(size_t held, void *ctx); /* `brought` may lack this element of `held` */
    void *ctx;
};

/* How many elements. With elements that may be missing it can be fewer than the most possible,
 * in lists made so that more than OVERLAP_PLACES beginnings of different kinds go on at once. */
size_t overlap_find(const struct overlap *overlap);

#define OVERLAP_PLACES 16

#endif
