#include "turn/await_tools.h"

#include "base/log.h"
#include "turn/turn.h"

static void await_tools_go_on(struct run *run) {
    struct await_tools *await = &run->await_tools;
    await->waits = false;
    await->over = true;
    timer_stop(&await->late);
    if (run->state == RUN_QUEUED) {
        run_begin(run);
    } else {
        run_work_answered(run);
    }
}

/* The servers did not come in time: the turn goes on without them. */
static void await_tools_on_late(void *ctx) {
    struct run *run = ctx;
    log_often(LOG_WARNING,
              "a turn of the agent '" STR_FMT "' goes on without all its tools: in %d s an MCP "
              "server of it has neither listed any nor failed",
              STR_ARG(run->agent->slug), AWAIT_TOOLS_MS / 1000);
    await_tools_go_on(run);
}

void run_stop_await_tools(struct run *run) {
    run->await_tools.waits = false;
    timer_stop(&run->await_tools.late);
}

void await_tools_done(struct await_tools *await) {
    engine_unref(await->before);
}

/* The engine before is kept: the request may borrow from it. False: the agent is gone. */
static bool take_engine(struct run *run, struct engine *engine) {
    const struct agent *agent = engine_agent(engine, run->agent->slug);
    if (!agent) return false;
    if (run->await_tools.before) {
        engine_unref(run->record.engine);
    } else {
        run->await_tools.before = run->record.engine;
    }
    run->record.engine = engine_ref(engine);
    run->agent = agent;
    return true;
}

/* A newer engine may have come while the turn waited for its session: it gets no notice. */
bool run_await_tools(struct run *run) {
    struct await_tools *await = &run->await_tools;
    struct run_host *host = run->record.host;
    if (await->over || !run->agent->awaits_tools || run->record.engine->derived) return false;
    if (run->record.engine != host->engine && !take_engine(run, host->engine)) return false;
    if (!run->agent->awaits_tools) return false;
    await->waits = true;
    timer_init(&await->late, host->loop, await_tools_on_late, run);
    timer_start(&await->late, AWAIT_TOOLS_MS);
    return true;
}

void await_tools_use(struct run_host *host) {
    LIST_EACH(&host->runs, link) {
        struct run *run = CONTAINER_OF(link, struct run, link);
        if (!run->await_tools.waits) continue;
        bool taken = take_engine(run, host->engine);
        if (!taken || !run->agent->awaits_tools) await_tools_go_on(run);
    }
}
