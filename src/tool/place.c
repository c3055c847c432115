#include "tool/place.h"

#include "base/mem.h"

#include <stdlib.h>

static struct file_place *place_new(const struct place_kind *kind) {
    struct file_place *place = MEM_NEW(struct file_place);
    place->kind = kind;
    atomic_init(&place->refs, 1);
    return place;
}

bool place_new_folder(struct str folder, struct file_place **ret, struct err *e) {
    struct root *root;
    if (!root_open(folder, &root, e)) return false;
    *ret = place_new(&place_folder);
    (*ret)->root = root;
    return true;
}

struct file_place *place_new_bucket(struct bucket *bucket) {
    struct file_place *place = place_new(&place_bucket);
    place->bucket = bucket;
    return place;
}

struct file_place *place_ref(struct file_place *place) {
    atomic_fetch_add_explicit(&place->refs, 1, memory_order_relaxed);
    return place;
}

void place_unref(struct file_place *place) {
    if (!place || atomic_fetch_sub_explicit(&place->refs, 1, memory_order_acq_rel) != 1) return;
    root_free(place->root);
    free(place);
}

void place_start(struct file_place *place, struct place_move *move) {
    move->place = place;
    place->kind->start(move);
}

bool place_cancel(struct place_move *move) {
    return move->place->kind->cancel(move);
}
