/* two_replicas: two replicas of one schema, for what they take from each other. */
#ifndef WEIR_TEST_STORE_TWO_REPLICAS_H
#define WEIR_TEST_STORE_TWO_REPLICAS_H

#include "store/replicas.h"

#include "store/changes.h"
#include "store/core_replica.h"

struct scene {
    struct fixture *f;
    struct replica a, b;
    size_t unanswered; /* of what was asked at once; see scene_answered() */
};

static void open_scene(struct scene *scene, struct fixture *f) {
    *scene = (struct scene){.f = f};
    replica_open(f, &scene->a, "a");
    replica_open(f, &scene->b, "b");
}

/* Both may be answered within one turn of the loop, where the second loop_stop() would say nothing:
 * so the last answer stops it. A failure stays, whatever comes after it. */
__attribute__((unused)) static void scene_answered(struct scene *scene,
                                                   const struct err *failed) {
    if (failed) scene->f->failed = *failed;
    if (--scene->unanswered == 0) loop_stop(scene->f->loop);
}

/* Wait for so many answers, none of which may fail. */
__attribute__((unused)) static void await_answers(struct scene *scene, size_t count) {
    scene->unanswered = count;
    scene->f->failed.code = ERR_NONE;
    loop_run(scene->f->loop);
    if (scene->f->failed.code) fail_msg("%s", scene->f->failed.text);
}

static void close_scene(struct scene *scene) {
    replica_close(&scene->a);
    replica_close(&scene->b);
}

static void replica_told(void *ctx) {
    loop_stop(ctx);
}

/* A replica is told that anything may have changed when it has connected to hear of the others, which
 * may be after it was opened. Wait until that is over: from now on it is told of what is
 * committed, and of nothing else. */
__attribute__((unused)) static void replica_listens(struct replica *replica) {
    struct fixture *f = replica->f;
    char sql[128];
    struct changes_watcher *watcher = changes_watch(
        store_changes(replica->store), CHANGE_EVENTS, f->loop, replica_told, f->loop);
    snprintf(sql, sizeof(sql), "SELECT pg_notify(" REPLICA_CHANNEL ", '%d')", CHANGE_EVENTS);
    server_run(f, sql);
    loop_run(f->loop);
    changes_leave(watcher);
}

#endif
