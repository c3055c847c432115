#include "turn/host.h"

#include "turn/await_tools.h"
#include "turn/dormant_wake.h"
#include "turn/late_ends.h"

void run_host_init(struct run_host *host, struct engine *engine, struct loop *loop,
                   struct keeper *keeper) {
    *host = (struct run_host){.engine = engine_ref(engine), .loop = loop, .keeper = keeper};
    list_init(&host->runs);
    list_init(&host->bringings);
    list_init(&host->replies);
    timer_init(&host->doze, loop, dormant_wake_look, host);
}

void run_host_done(struct run_host *host) {
    dormant_wake_forget(host);
    late_ends_done(host);
    engine_unref(host->engine);
    host->engine = NULL; /* it may have been NULL already */
}

void run_host_use(struct run_host *host, struct engine *engine) {
    struct engine *before = host->engine;
    host->engine = engine_ref(engine);
    engine_unref(before);
    await_tools_use(host);
}
