/* A provider that replays recordings. */
#include "provider/tape.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/job.h"

#include <assert.h>
#include <stdlib.h>

/* Events per turn; then other work on the loop runs first. */
#define EVENTS_AT_ONCE 256

struct player {
    struct provider base;
    struct tape *tape;
};

struct provider_call {
    struct tape *tape; /* a reference */
    struct loop *loop;
    reply_event_fn *on_reply;
    void *ctx;
    struct str agent; /* the request's; invalid after the ending */
    struct buf request;
    struct job job; /* finds the recording */
    const struct tape_call *found;
    struct err why; /* why no recording was found */
    size_t next;    /* index of the next event */
    uint64_t began_ms;
    struct task task;
    struct timer timer;
    bool looked, paused, playing, over;
};

static void tape_play_call_free(struct provider_call *call) {
    timer_stop(&call->timer);
    task_cancel(&call->task);
    buf_done(&call->request);
    tape_unref(call->tape);
    free(call);
}

/* --- reporting ---------------------------------------------------------------------------- */

static void player_failed(struct provider_call *call, const struct err *why,
                          struct str reason) {
    struct reply_event event = reply_event_failed(why, reason);
    call->over = true;
    call->on_reply(&event, call->ctx);
}

static void player_report(struct provider_call *call, const struct reply_event *event) {
    struct err why;
    if (event->kind == REPLY_FAILED) { /* its sentence may be longer than an error's */
        err_set(&why, event->code, STR_FMT, STR_ARG(event->text));
        player_failed(call, &why, event->reason);
        return;
    }
    call->over |= reply_event_ends(event);
    call->on_reply(event, call->ctx);
}

/* Whether the event is due; otherwise start the timer. */
static bool is_due(struct provider_call *call, const struct tape_event *event) {
    if (tape_pace(call->tape) == TAPE_AT_ONCE) return true;
    uint64_t passed = loop_now_ms(call->loop) - call->began_ms;
    if (event->at_ms <= passed) return true;
    timer_start(&call->timer, event->at_ms - passed);
    return false;
}

/* A callback may pause or cancel, so this is checked before each event. */
static void play(void *ctx) {
    struct provider_call *call = ctx;
    call->playing = true;
    if (!call->found) player_failed(call, &call->why, STR(REPLAY_MISS));
    for (size_t played = 0; !call->over && !call->paused; played++) {
        const struct tape_event *event = &call->found->events[call->next];
        if (played == EVENTS_AT_ONCE) {
            timer_start(&call->timer, 0);
            break;
        }
        if (!is_due(call, event)) break;
        call->next++;
        player_report(call, &event->reply);
    }
    call->playing = false;
    if (call->over) tape_play_call_free(call);
}

/* --- finding the recording ---------------------------------------------------------------- */

static void tape_play_look(void *ctx) {
    struct provider_call *call = ctx;
    if (!tape_find(call->tape, TAPE_MODEL, buf_str(&call->request), &call->found, &call->why))
        call->found = NULL;
}

static void tape_play_on_looked(void *ctx) {
    struct provider_call *call = ctx;
    if (call->over) {
        tape_play_call_free(call);
        return;
    }
    call->looked = true;
    if (!call->found)
        log_often(LOG_WARNING, "replay: agent '" STR_FMT "': %s", STR_ARG(call->agent),
                  call->why.text);
    if (!call->paused) play(call);
}

/* --- the provider ------------------------------------------------------------------------- */

static struct provider_call *tape_play_start(struct provider *provider, struct loop *loop,
                                             const struct provider_request *request,
                                             reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->tape = tape_ref(CONTAINER_OF(provider, struct player, base)->tape);
    call->loop = loop;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->agent = request->agent;
    call->began_ms = loop_now_ms(loop);
    task_init(&call->task, play, call);
    timer_init(&call->timer, loop, play, call);
    buf_init(&call->request, TAPE_FILE_MAX_BYTES);
    tape_put_request(request, &call->request);
    job_start(&call->job, loop, tape_play_look, tape_play_on_looked, call);
    return call;
}

static void pause(struct provider_call *call) {
    call->paused = true;
    timer_stop(&call->timer);
    task_cancel(&call->task);
}

static void tape_play_resume(struct provider_call *call) {
    if (!call->paused) return;
    call->paused = false;
    if (call->looked && !call->playing) loop_defer(call->loop, &call->task);
}

static void tape_play_cancel(struct provider_call *call) {
    call->over = true;
    if (!call->playing && job_cancel(&call->job)) tape_play_call_free(call);
}

static void free_player(struct provider *provider) {
    struct player *player = CONTAINER_OF(provider, struct player, base);
    tape_unref(player->tape);
    free(player);
}

static const struct provider_kind playing_kind = {
    .name = "playing",
    .start = tape_play_start,
    .pause = pause,
    .resume = tape_play_resume,
    .cancel = tape_play_cancel,
    .free = free_player,
};

struct provider *playing_provider_new(struct tape *tape, struct str name) {
    assert(tape_plays(tape));
    struct player *player = MEM_NEW(struct player);
    player->base = (struct provider){&playing_kind, name};
    player->tape = tape_ref(tape);
    return &player->base;
}
