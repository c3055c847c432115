#include "conversation/overlap.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NO_PLACE SIZE_MAX

/* Where to go on if brought[k] does not match: the longest beginning that the first k elements
 * end with, and after which another element comes. Ends with NO_PLACE. free() it. */
static size_t *table_of(const struct overlap *overlap) {
    size_t count = overlap->brought_count, end = 0;
    size_t *table = mem_zero(count + 1, sizeof(size_t));
    table[0] = NO_PLACE;
    for (size_t k = 1; k < count; k++, end++) {
        bool equal = overlap->equals(k, end, overlap->ctx);
        table[k] = equal ? table[end] : end;
        while (!equal && end != NO_PLACE) {
            end = table[end];
            equal = end != NO_PLACE && overlap->equals(k, end, overlap->ctx);
        }
    }
    table[count] = end;
    return table;
}

/* Beginnings of `brought` that `held` ends with, up to here. Each stands for all the shorter
 * ones that it ends with in turn, so one is enough if every element matches one kind only. */
struct places {
    size_t at[OVERLAP_PLACES]; /* the longest first */
    size_t count;
};

/* When there are too many, the shortest is dropped. */
static void places_add(struct places *places, size_t place) {
    size_t i = 0;
    while (i < places->count && places->at[i] > place) i++;
    if (i == OVERLAP_PLACES || (i < places->count && places->at[i] == place)) return;
    if (places->count < OVERLAP_PLACES) places->count++;
    memmove(&places->at[i + 1], &places->at[i], (places->count - 1 - i) * sizeof(size_t));
    places->at[i] = place;
}

/* Add what each place becomes with this element. */
static void step(const struct overlap *overlap, const size_t *table, size_t held,
                 const struct places *from, struct places *to) {
    for (size_t i = 0; i < from->count; i++) {
        for (size_t k = from->at[i]; k != NO_PLACE; k = table[k]) {
            if (k < overlap->brought_count && overlap->matches(held, k, overlap->ctx))
                places_add(to, k + 1);
        }
    }
    if (!to->count) places_add(to, 0);
}

size_t overlap_find(const struct overlap *overlap) {
    struct places places = {.count = 0};
    if (overlap->brought_count == 0) return 0;
    size_t *table = table_of(overlap);
    places_add(&places, 0);
    for (size_t i = 0; i < overlap->held_count; i++) {
        struct places next = {.count = 0};
        if (overlap->may_miss(i, overlap->ctx)) next = places;
        step(overlap, table, i, &places, &next);
        places = next;
    }
    free(table);
    return places.at[0];
}
