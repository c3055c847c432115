#include "tape/queue.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct tape_queue {
    pthread_mutex_t lock;
    struct list waiting; /* the first is next */
    bool is_read;
};

struct tape_queue *tape_queue_new(void) {
    struct tape_queue *queue = MEM_NEW(struct tape_queue);
    pthread_mutex_init(&queue->lock, NULL);
    list_init(&queue->waiting);
    return queue;
}

void tape_queue_free(struct tape_queue *queue) {
    assert(list_empty(&queue->waiting) && !queue->is_read);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

bool tape_queue_enter(struct tape_queue *queue, struct tape_place *place, struct loop *loop,
                      task_fn *granted, void *ctx) {
    *place = (struct tape_place){.loop = loop, .granted = granted, .ctx = ctx};
    list_init(&place->link);
    pthread_mutex_lock(&queue->lock);
    bool free_now = !queue->is_read;
    queue->is_read = true;
    if (!free_now) list_append(&queue->waiting, &place->link);
    pthread_mutex_unlock(&queue->lock);
    return free_now;
}

/* The folder stays taken where there is a next one. */
void tape_queue_leave(struct tape_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    assert(queue->is_read);
    queue->is_read = !list_empty(&queue->waiting);
    if (queue->is_read) {
        struct tape_place *next = CONTAINER_OF(queue->waiting.next, struct tape_place, link);
        list_remove(&next->link);
        loop_post(next->loop, &next->mail, next->granted, next->ctx);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool tape_queue_cancel(struct tape_queue *queue, struct tape_place *place) {
    pthread_mutex_lock(&queue->lock);
    bool waited = list_linked(&place->link);
    list_remove(&place->link);
    pthread_mutex_unlock(&queue->lock);
    return waited;
}
