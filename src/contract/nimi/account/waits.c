#include "contract/nimi/account/waits.h"

static void waits_on_closed(void *ctx) {
    struct account_wait *wait = ctx;
    wait->call = NULL;
    wait->left(wait);
}

static const struct nimi_work work = {.closed = waits_on_closed};

void account_wait_begin(struct account_wait *wait, struct nimi_call *call,
                        void (*left)(struct account_wait *wait),
                        void (*drop)(struct account_wait *wait)) {
    wait->instance = call->instance;
    wait->call = call;
    wait->left = left;
    wait->drop = drop;
    list_append(&call->instance->account.waits, &wait->link);
    nimi_work(call, &work, wait);
}

struct nimi_call *account_wait_end(struct account_wait *wait) {
    struct nimi_call *call = wait->call;
    list_remove(&wait->link);
    kept_forget(wait->ask);
    key_wait_cancel(wait->keys);
    if (call) nimi_work(call, NULL, NULL);
    wait->drop(wait);
    return call && !call->over ? call : NULL;
}

void account_waits_leave(struct list *waits) {
    LIST_EACH(waits, link) account_wait_end(CONTAINER_OF(link, struct account_wait, link));
}
