#include "contract/nimi/account/hold.h"

#include "base/mem.h"
#include "contract/nimi/account/caller.h"

#include <stdlib.h>

static void held_drop(struct account_wait *wait) {
    free(wait);
}

static void held_left(struct account_wait *wait) {
    account_wait_end(wait);
}

static void on_held_read(const struct kept_record *records, size_t count,
                         const struct err *failed, void *ctx) {
    struct account_held *held = ctx, copy = *held;
    held->wait.ask = NULL;
    account_take_records(held->wait.instance, records, count, failed);
    account_arm(held->wait.instance);
    struct nimi_call *call = account_wait_end(&held->wait);
    if (call) copy.go_on(call, &copy);
}

static bool hold_is_known(struct nimi_call *call) {
    struct nimi_account *account = call->instance->runtime->account;
    account_lock(account);
    bool known = account_topic(account) != NULL;
    account_unlock(account);
    return known;
}

void account_hold(struct nimi_call *call, const struct account_held *held) {
    if (!hold_is_known(call)) {
        struct account_held *kept = MEM_NEW(struct account_held);
        *kept = *held;
        kept->app = nimi_keep(call, held->app);
        kept->app_instance = nimi_keep(call, held->app_instance);
        kept->origin = nimi_keep(call, held->origin);
        account_wait_begin(&kept->wait, call, held_left, held_drop);
        kept->wait.ask = account_read(call->instance, on_held_read, kept);
        if (kept->wait.ask) return;
        account_wait_end(&kept->wait); /* there is no store */
    }
    held->go_on(call, held);
}
