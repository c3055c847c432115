/* two_replicas: two replicas of one schema, for what they take from each other. */
#ifndef WEIR_TEST_STORE_TWO_REPLICAS_H
#define WEIR_TEST_STORE_TWO_REPLICAS_H

#include "store/replicas.h"

struct scene {
    struct fixture *f;
    struct replica a, b;
};

static void open_scene(struct scene *scene, struct fixture *f) {
    *scene = (struct scene){.f = f};
    replica_open(f, &scene->a, "a");
    replica_open(f, &scene->b, "b");
}

static void close_scene(struct scene *scene) {
    replica_close(&scene->a);
    replica_close(&scene->b);
}

#endif
