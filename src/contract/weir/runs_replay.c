/* POST /weir/v1/runs/{id}/replay: begin a run that is asked what an earlier one was asked, and is
 * answered from the recordings of that run's calls. No model is asked and no tool is called.
 *
 *     looking ─▶ reading ─▶ recalling ─▶ begun     the run's events; its recordings; what its
 *                                                  session said before it
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "conversation/import.h"
#include "daemon/team.h"
#include "engine/replay_engine.h"
#include "loop/job.h"
#include "session/session_load.h"
#include "tape/tape.h"
#include "turn/run.h"

#include <stdio.h>
#include <stdlib.h>

#define BROUGHT_MAX_BYTES (16 * MIB)
#define OPTIONS_MAX_BYTES (64 * KIB)
#define MESSAGES_MAX_BYTES (32 * MIB)
#define REPLY_MAX_BYTES (64 * KIB)

struct replay {
    struct route_call *call; /* NULL: gone; what is open then frees this */
    struct api_instance *instance;
    struct api_caller caller;
    struct run_summary summary; /* of the run that is replayed */
    struct run_scan *scan;
    struct late late;   /* the refusal: no such run */
    struct buf brought; /* the messages that its caller sent along, or empty */
    bool brought_all;   /* they were the whole conversation */
    struct buf options; /* of its caller, as JSON, or empty */
    enum tape_pace pace;
    struct tape *recorded; /* a reference: the daemon's */
    struct tape *tape;     /* of this run, once it was read */
    struct err why;        /* why it could not be */
    struct job job;
    struct slot slot; /* to read the recordings' folder */
    bool open;        /* the slot, the job, or the history is on its way */
};

static void replay_free(struct replay *replay) {
    late_stop(&replay->late);
    run_scan_cancel(replay->scan);
    run_summary_done(&replay->summary);
    buf_done(&replay->brought);
    buf_done(&replay->options);
    tape_unref(replay->recorded);
    tape_unref(replay->tape);
    free(replay);
}

static void replay_over(void *ctx) {
    struct replay *replay = ctx;
    replay->call = NULL;
    if (slots_withdraw(&replay->slot)) replay->open = false;
    if (!replay->open) replay_free(replay);
}

static const struct route_watch replay_watch = {.left = replay_over, .closed = replay_over};

/* True: the caller has left, and `replay` is freed. */
static bool is_left(struct replay *replay) {
    replay->open = false;
    if (replay->call) return false;
    replay_free(replay);
    return true;
}

/* --- the run that begins ------------------------------------------------------------------ */

/* What the model was shown when the run began: its session before it, and what was asked. */
static bool list_messages(const struct replay *replay, const struct history *before,
                          struct arena *arena, struct run_request *ret, struct err *e) {
    struct message asked = {.role = MESSAGE_USER, .text = replay->summary.text};
    struct import brought = {&asked, 1};
    size_t known = replay->brought_all ? 0 : before->message_count;
    if (replay->brought.len && !import_decode(buf_str(&replay->brought), arena, &brought, e))
        return false;
    struct message *messages = arena_alloc(arena, (known + brought.count) * sizeof(*messages));
    if (!messages)
        return err_set(e, ERR_RESOURCE_EXHAUSTED,
                       "the conversation is too long to be replayed");
    if (known) history_messages(before, messages);
    memcpy(messages + known, brought.messages, brought.count * sizeof(*messages));
    ret->messages = messages;
    ret->message_count = known + brought.count;
    return true;
}

/* The caller's options are a part of what was asked, and so of the recordings' names. */
static bool read_options(const struct replay *replay, struct arena *arena,
                         struct model_options *room, struct run_request *ret, struct err *e) {
    if (!replay->options.len) return true;
    ret->options = room;
    return model_options_read(json_of(buf_str(&replay->options)), arena, room, e);
}

/* The first agent takes turns that name none. */
static struct str agent_named(const struct replay *replay, const struct engine *engine) {
    bool usual = str_equal(replay->summary.agent, engine->agents[0].slug);
    return usual ? STR_EMPTY : replay->summary.agent;
}

static void report_begun(const struct replay *replay, const struct run_request *asked,
                         const struct run *run) {
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, REPLY_MAX_BYTES);
    event_json_id(json, "id", run_id(run));
    event_json_id(json, "replay_of", replay->summary.run);
    json_member_str(json, "workspace", asked->name.workspace);
    json_member_str(json, "user", asked->name.user);
    json_member_str(json, "session_id", asked->name.session);
    route_json_reply(&reply, replay->call, 202);
}

static bool begin(struct replay *replay, const struct history *before, struct run **ret,
                  struct run_request *asked, struct arena *arena, struct err *e) {
    char session[64];
    struct run_host *host = replay->instance->host;
    struct model_options options;
    int len =
        snprintf(session, sizeof(session), "replay-%llu-%llx",
                 (unsigned long long)replay->summary.run, (unsigned long long)clock_unix_ms());
    *asked = (struct run_request){
        .engine = replay_engine_new(host->engine, replay->tape),
        .promised = true,
        .name = {replay->summary.workspace, replay->summary.user, STR_EMPTY},
        .text = replay->summary.text,
        .contract = STR(REPLAY_CONTRACT),
        .brought = BROUGHT_WHOLE};
    asked->agent = agent_named(replay, asked->engine);
    bool named = arena_str(arena, str_of(session, (size_t)len), &asked->name.session);
    bool begun = named && read_options(replay, arena, &options, asked, e) &&
                 list_messages(replay, before, arena, asked, e) &&
                 run_start(host, asked, ret, e);
    asked->options = NULL; /* they were copied */
    engine_unref(asked->engine);
    return begun;
}

static void begin_replay(struct replay *replay, struct history *history) {
    struct history *before = history_before(history, replay->summary.run);
    struct arena *arena = arena_new(MESSAGES_MAX_BYTES);
    struct run_request asked;
    struct run *run = NULL;
    struct err e = {0};
    if (begin(replay, before, &run, &asked, arena, &e)) {
        report_begun(replay, &asked, run);
        run_leave(run, (struct leaving){.how = LEAVING_DETACHES}, STR_EMPTY);
        run_unref(run);
    } else {
        route_refuse(replay->call, err_kinds[e.code].http_status, err_name(e.code), "%s",
                     e.text);
    }
    history_unref(before);
    arena_free(arena);
}

static void on_history(struct history *history, const struct err *why, void *ctx) {
    struct replay *replay = ctx;
    if (is_left(replay)) {
        history_unref(history);
        return;
    }
    if (history) {
        begin_replay(replay, history);
    } else {
        route_refuse(replay->call, 503, STR("STORE_UNAVAILABLE"), "%s", why->text);
    }
    history_unref(history);
}

/* --- its recordings ----------------------------------------------------------------------- */

static void read_tape(void *ctx) {
    struct replay *replay = ctx;
    if (!tape_play_run(replay->recorded, replay->summary.run, replay->pace, &replay->tape,
                       &replay->why))
        replay->tape = NULL;
}

/* The reason may name a folder, so it is for the log. */
static void refuse_tape(struct replay *replay) {
    if (replay->why.code == ERR_NOT_FOUND) {
        route_refuse(replay->call, 409, STR("NOT_RECORDED"),
                     "no call of this run was recorded: it ran before 'record' was set, was "
                     "itself a replay, or its recordings were removed");
        return;
    }
    log_warning("run %llu cannot be replayed: %s", (unsigned long long)replay->summary.run,
                replay->why.text);
    route_refuse(replay->call, 500, STR("RECORDING_UNREADABLE"),
                 "the recordings cannot be read; the log says why");
}

static void on_tape(void *ctx) {
    struct replay *replay = ctx;
    const struct run_summary *summary = &replay->summary;
    slots_leave(&replay->slot);
    if (is_left(replay)) return;
    if (!replay->tape) {
        refuse_tape(replay);
        return;
    }
    const struct session_name name = {summary->workspace, summary->user, summary->session};
    replay->open = true;
    session_load(replay->instance->store, &name, replay->instance->loop, on_history, replay);
}

static void start_reading(struct replay *replay) {
    job_start(&replay->job, replay->instance->loop, read_tape, on_tape, replay);
}

static void on_slot(void *ctx) {
    struct replay *replay = ctx;
    if (replay->call) {
        start_reading(replay);
        return;
    }
    slots_leave(&replay->slot);
    replay_free(replay);
}

static void replay_read(struct replay *replay) {
    replay->open = true;
    replay->slot =
        (struct slot){.loop = replay->instance->loop, .granted = on_slot, .ctx = replay};
    if (slots_enter(tape_readers(replay->recorded), STR_EMPTY, SLOTS_NO_LIMIT, &replay->slot) ==
        SLOTS_TAKEN)
        start_reading(replay);
}

/* --- the run that is replayed ------------------------------------------------------------- */

/* The messages that its caller sent along are among its first events. */
static void note_brought(const struct event *event, uint64_t seq, void *ctx) {
    struct replay *replay = ctx;
    (void)seq;
    if (event->kind == EVENT_STARTED) buf_append(&replay->options, event->started.options);
    if (event->kind != EVENT_ITEM || replay->brought.len) return;
    if (!str_starts(event->item.type, STR(BROUGHT_ITEM))) return;
    buf_append(&replay->brought, event->item.bytes);
    replay->brought_all = event->item.type.len > strlen(BROUGHT_ITEM);
}

static void on_scanned(const struct err *failed, void *ctx) {
    struct replay *replay = ctx;
    const struct run_summary *summary = &replay->summary;
    replay->scan = NULL;
    if (failed) {
        route_refuse(replay->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
    } else if (!summary->known ||
               !api_may_see(&replay->caller, summary->workspace, summary->user)) {
        late_refuse(&replay->late, replay->instance->loop, replay->call,
                    api_refuse_unknown_run_late, NULL);
    } else if (!summary->ended_ms) {
        route_refuse(replay->call, 409, STR("RUN_NOT_ENDED"),
                     "this run goes on; it can be replayed when it has ended");
    } else if (summary->parent) {
        route_refuse(replay->call, 409, STR("NOT_REPLAYABLE"),
                     "this run began while another turn of its session waited for a tool; what "
                     "its model was shown of that turn is not kept");
    } else {
        replay_read(replay);
    }
}

/* A run that goes on may not be in the store yet. */
static void replay_look(struct replay *replay) {
    struct api_instance *instance = replay->instance;
    if (run_summary_read_live(&replay->summary, instance->directory, instance->loop)) {
        on_scanned(NULL, replay);
    } else {
        replay->scan = run_scan_start(instance->loop, instance->store, &replay->summary,
                                      on_scanned, replay);
    }
}

/* --- the route ---------------------------------------------------------------------------- */

static bool take_pace(struct api_request *request, enum tape_pace *ret) {
    struct str pace;
    if (!api_request_value(request, STR("pace"), &pace)) return false;
    *ret = str_equal(pace, STR("real")) ? TAPE_REAL : TAPE_AT_ONCE;
    return *ret == TAPE_REAL || !pace.len || str_equal(pace, STR("once")) ||
           api_request_refuse(request, 422, "pace must be once or real");
}

/* Recordings are the operator's: prompts and results stand in them, and a miss quotes them. */
static bool may_replay(struct api_request *request, const struct tape *recorded) {
    if (!request->caller.all_users) {
        route_refuse(
            request->call, 403, STR("FORBIDDEN"),
            "recordings are for the operators of this weir, not for the token of one user");
    } else if (!recorded) {
        route_refuse(
            request->call, 409, STR("NO_RECORDINGS"),
            "this weir records nothing: start it with --record FOLDER, and what runs from "
            "then on can be replayed");
    } else {
        return true;
    }
    return false;
}

void api_replay_run(struct route_call *call, void *ctx) {
    static const char *const names[] = {"pace", NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    enum tape_pace pace;
    uint64_t run;
    if (!api_request_begin(&request, call, instance, names)) return;
    struct tape *recorded = instance->settings->team->tape;
    bool taken =
        api_run_id(call, &run) && take_pace(&request, &pace) && may_replay(&request, recorded);
    arena_free(request.arena);
    if (!taken) return;
    struct replay *replay = MEM_NEW(struct replay);
    late_begin(&replay->late);
    replay->call = call;
    replay->instance = instance;
    replay->caller = request.caller;
    replay->pace = pace;
    replay->recorded = tape_ref(recorded);
    buf_init(&replay->brought, BROUGHT_MAX_BYTES);
    buf_init(&replay->options, OPTIONS_MAX_BYTES);
    run_summary_init(&replay->summary, run);
    replay->summary.each = note_brought;
    replay->summary.each_ctx = replay;
    route_watch(call, &replay_watch, replay);
    replay_look(replay);
}
