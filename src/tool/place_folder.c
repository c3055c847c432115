/* Files in a folder: a worker reads and writes them. */
#include "tool/place.h"

static void place_folder_work(void *ctx) {
    struct place_move *move = ctx;
    struct root *root = move->place->root;
    move->failed = move->writes
                       ? !root_write(root, move->path, move->content, &move->stop, &move->why)
                       : !root_read(root, move->path, &move->bytes, &move->size, &move->why);
}

static void worked(void *ctx) {
    struct place_move *move = ctx;
    move->done(move, move->failed ? &move->why : NULL);
}

static void place_folder_start(struct place_move *move) {
    atomic_init(&move->stop, false);
    job_start(&move->job, move->loop, place_folder_work, worked, move);
}

static bool place_folder_cancel(struct place_move *move) {
    atomic_store_explicit(&move->stop, true, memory_order_relaxed);
    return job_cancel(&move->job);
}

const struct place_kind place_folder = {place_folder_start, place_folder_cancel};
