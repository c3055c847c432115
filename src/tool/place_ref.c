/* How many use a place. */
#include "tool/place.h"

#include <stdlib.h>

struct file_place *place_ref(struct file_place *place) {
    atomic_fetch_add_explicit(&place->refs, 1, memory_order_relaxed);
    return place;
}

void place_unref(struct file_place *place) {
    if (!place || atomic_fetch_sub_explicit(&place->refs, 1, memory_order_acq_rel) != 1) return;
    root_free(place->root);
    free(place);
}
