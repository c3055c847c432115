/* The processes of each loop, and the calls that wait for one. */
#include "agent/process_inner.h"
#include "agent/process_turn.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* A process that waits for the results of its calls may lose its turn after this time. */
#define HELD_MIN_MS 250

struct process_pool {
    struct process_place **places; /* complete before the loops run */
    size_t count;
};

struct process_pool *process_pool_new(void) {
    return MEM_NEW(struct process_pool);
}

/* --- finding a process -------------------------------------------------------------------- */

static bool process_pool_is_of(const struct process *process,
                               const struct provider_call *call) {
    return process->child && str_equal(process->key, call->provider->key);
}

/* Whether the process waits for the results of this turn's calls, and knows the turn up to
 * there. */
static bool waits_for(const struct process *process, const struct provider_call *call) {
    return process->state == PROCESS_HELD && process->run == call->request->run &&
           process->calls == process_turn_calls(call->request);
}

static struct process *process_pool_find(struct process_place *place,
                                         const struct provider_call *call) {
    struct process *idle = NULL;
    LIST_EACH(&place->processes, link) {
        struct process *process = CONTAINER_OF(link, struct process, link);
        if (!process_pool_is_of(process, call)) continue;
        if (waits_for(process, call)) return process;
        if (process->state == PROCESS_IDLE && !idle) idle = process;
    }
    return idle;
}

static size_t process_pool_count_of(const struct process_place *place,
                                    const struct provider_call *call) {
    size_t count = 0;
    LIST_EACH(&place->processes, link) {
        count += process_pool_is_of(CONTAINER_OF(link, struct process, link), call);
    }
    return count;
}

/* All processes are busy. The one that has waited longest for results loses its turn, which
 * then starts again on a process. */
static void take_back(struct process_place *place, const struct provider_call *call) {
    struct process *oldest = NULL;
    LIST_EACH(&place->processes, link) {
        struct process *process = CONTAINER_OF(link, struct process, link);
        if (!process_pool_is_of(process, call) || process->state != PROCESS_HELD) continue;
        if (!oldest || process->held_ms < oldest->held_ms) oldest = process;
    }
    if (!oldest) return;
    uint64_t held_ms = loop_now_ms(place->loop) - oldest->held_ms;
    if (held_ms >= HELD_MIN_MS) {
        process_drop(oldest);
    } else if (!timer_waits(&place->again)) {
        timer_start(&place->again, HELD_MIN_MS - held_ms);
    }
}

/* False: the call keeps waiting. */
static bool serve_call(struct process_place *place, struct provider_call *call) {
    struct process *process = process_pool_find(place, call);
    struct err e;
    if (!process && process_pool_count_of(place, call) >= call->provider->processes_max) {
        take_back(place, call);
        return false;
    }
    if (!process && !process_start(place, call->provider, &process, &e)) {
        struct reply_event failed = reply_event_failed(&e, STR(AGENT_START));
        list_remove(&call->link);
        process_call_end(call, &failed);
        return true;
    }
    list_remove(&call->link);
    process_take(process, call);
    return true;
}

/* A reported end may start or cancel calls, so start over after each. */
static void process_pool_serve(void *ctx) {
    struct process_place *place = ctx;
    bool served = true;
    while (served) {
        served = false;
        LIST_EACH(&place->waiting, link) {
            served = serve_call(place, CONTAINER_OF(link, struct provider_call, link));
            if (served) break;
        }
    }
}

static void process_pool_on_again(void *ctx) {
    process_place_serve(ctx);
}

void process_place_serve(struct process_place *place) {
    if (!list_empty(&place->waiting)) loop_defer(place->loop, &place->serve);
}

/* --- the pool ----------------------------------------------------------------------------- */

void process_pool_add(struct process_pool *pool, struct loop *loop) {
    struct process_place *place = MEM_NEW(struct process_place);
    place->loop = loop;
    list_init(&place->processes);
    list_init(&place->waiting);
    task_init(&place->serve, process_pool_serve, place);
    timer_init(&place->again, loop, process_pool_on_again, place);
    pool->places = mem_resize(pool->places, (pool->count + 1) * sizeof(struct process_place *));
    pool->places[pool->count++] = place;
}

struct process_place *process_place_of(struct process_pool *pool, struct loop *loop) {
    size_t at = 0;
    while (at < pool->count && pool->places[at]->loop != loop) at++;
    assert(at < pool->count); /* added by process_pool_add() */
    return pool->places[at];
}

void process_pool_leave(struct process_pool *pool, struct loop *loop) {
    struct process_place *place = process_place_of(pool, loop);
    assert(list_empty(&place->waiting));
    while (!list_empty(&place->processes))
        process_kill(CONTAINER_OF(place->processes.next, struct process, link));
    task_cancel(&place->serve);
    timer_stop(&place->again);
}

void process_pool_free(struct process_pool *pool) {
    if (!pool) return;
    for (size_t i = 0; i < pool->count; i++) {
        assert(list_empty(&pool->places[i]->processes)); /* emptied by process_pool_leave() */
        free(pool->places[i]);
    }
    free(pool->places);
    free(pool);
}
