#include "daemon/orders.h"

#include "base/mem.h"

#include <stdlib.h>

struct order {
    struct mail mail;
    struct worker *worker;
    order_fn *fn;                     /* NULL: use the snapshot */
    struct config_snapshot *snapshot; /* the newest when it was given; a reference */
};

static void obey(void *ctx) {
    struct order *order = ctx;
    if (order->fn) {
        order->fn(order->worker);
    } else {
        worker_use(order->worker, order->snapshot);
    }
    config_snapshot_unref(order->snapshot);
    free(order);
}

void order_workers(struct worker *workers, size_t count, order_fn *fn,
                   struct config_snapshot *newest) {
    for (size_t i = 0; i < count; i++) {
        struct order *order = MEM_NEW(struct order);
        *order = (struct order){
            .worker = &workers[i], .fn = fn, .snapshot = config_snapshot_ref(newest)};
        loop_post(workers[i].loop, &order->mail, obey, order);
    }
}
