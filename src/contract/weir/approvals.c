#include "contract/weir/approvals.h"

#include "base/mem.h"
#include "contract/event_id.h"
#include "session/decision.h"
#include "session/posted_answer.h"

#include <stdlib.h>

#define LOOK_AGAIN_MS 50 /* while a decision is on its way to its run */
#define LOOKS_MAX 100

/* --- as JSON ------------------------------------------------------------------------------ */

void api_write_approval(struct json_writer *json, const struct pending_view *view,
                        const char *state, struct str answer) {
    const struct pending_question *asked = &view->asked;
    json_open_object(json);
    event_id_write(json, "id", view->run, view->seq);
    event_json_id(json, "run_id", view->run);
    json_member_str(json, "state", str_from(state));
    json_member_str(json, "kind", asked->guards.len ? STR("tool") : STR("question"));
    json_member_str(json, "workspace", view->name.workspace);
    json_member_str(json, "user", view->name.user);
    json_member_str(json, "session_id", view->name.session);
    json_member_str(json, "agent", asked->agent);
    json_member_str(json, "question", asked->question);
    json_member_str(json, "tool", asked->tool);
    json_member_raw(json, "args", asked->args.len ? asked->args : STR("{}"));
    if (asked->guards.len) json_member_str(json, "call_id", asked->guards);
    json_member_i64(json, "asked_unix_ms", asked->asked_unix_ms);
    if (asked->deadline_unix_ms)
        json_member_i64(json, "deadline_unix_ms", asked->deadline_unix_ms);
    if (answer.len) json_member_raw(json, "answer", answer);
    json_close(json);
}

bool api_waiting(struct api_instance *instance, uint64_t run, struct arena *arena,
                 struct pending_view *ret) {
    const struct pending_approvals_filter this_one = {.run = run};
    bool more;
    return pending_approvals_list(session_table_approvals(instance->sessions), &this_one, 1,
                                  arena, ret, &more) == 1;
}

static void refuse_unknown(struct route_call *call) {
    route_refuse(call, 404, STR("APPROVAL_NOT_FOUND"), "there is no such approval");
}

static void refuse_unknown_late(struct route_call *call, void *ctx) {
    (void)ctx;
    refuse_unknown(call);
}

/* --- one approval, wherever it stands ----------------------------------------------------- */

/* The run is read from its journal or the store until the approval's outcome is known. */
struct look {
    struct route_call *call;
    struct api_caller caller;
    struct arena *arena;
    struct pending_view view;
    bool seen;  /* the run has such an approval */
    bool waits; /* no question and no answer has followed it */
    struct str call_id, answer;
    bool answers;                 /* the request is an answer */
    struct approval_words said;   /* the answer, if so */
    struct posted_answer *posted; /* to the replica that has the run */
    struct api_instance *instance;
    struct timer again;  /* for the next look */
    unsigned looks_left; /* before giving up on the decision */
    struct run_summary summary;
    struct run_scan *scan;
    struct late late; /* the refusal: no such approval */
};

static void look_free(void *ctx) {
    struct look *look = ctx;
    late_stop(&look->late);
    timer_stop(&look->again);
    posted_answer_cancel(look->posted);
    run_scan_cancel(look->scan);
    run_summary_done(&look->summary);
    arena_free(look->arena);
    free(look);
}

static const struct route_watch look_watch = {.left = look_free, .closed = look_free};

/* A text that does not fit is left out; the arena holds more than any run. */
static struct str look_keep(struct look *look, struct str text) {
    struct str kept;
    return arena_str(look->arena, text, &kept) ? kept : STR_EMPTY;
}

static void look_at(const struct event *event, uint64_t seq, void *ctx) {
    struct look *look = ctx;
    if (event->kind != EVENT_ITEM) /* as restore_run_waits() */
        look->waits = event->kind == EVENT_APPROVAL && seq == look->view.seq;
    if (event->kind == EVENT_APPROVAL && seq == look->view.seq) {
        look->seen = true;
        look->call_id = look_keep(look, event->approval.call_id);
        look->view.asked = (struct pending_question){
            .agent = look_keep(look, event->agent),
            .question = look_keep(look, event->approval.question),
            .tool = look_keep(look, event->approval.tool),
            .args = look_keep(look, event->approval.args),
            .guards = look_keep(look, event->approval.guards),
            .asked_unix_ms = look->summary.started_ms + event->at_ms,
        };
    }
    if (event->kind == EVENT_TOOL_RESULT && look->seen && look->answer.len == 0 &&
        str_equal(event->tool_result.call_id, look->call_id))
        look->answer = look_keep(look, event->tool_result.result);
}

static void look_report(struct look *look, const char *state) {
    const struct run_summary *summary = &look->summary;
    struct route_json reply;
    look->view.name =
        (struct session_name){summary->workspace, summary->user, summary->session};
    struct json_writer *json = route_json_begin(&reply, APPROVAL_BODY_MAX_BYTES);
    api_write_approval(json, &look->view, state, look->answer);
    route_json_reply(&reply, look->call, 200);
}

void approval_report_taken(struct route_call *call, uint64_t run, uint64_t seq,
                           struct str state) {
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, KIB);
    event_id_write(json, "id", run, seq);
    event_json_id(json, "run_id", run);
    json_member_str(json, "state", state);
    route_json_reply(&reply, call, 200);
}

/* It has been answered: the same decision gets the same reply again. */
static void report_answered(struct look *look) {
    const struct run_summary *summary = &look->summary;
    const struct yes_no_words *more = &look->instance->settings->decision_words;
    struct str said = look->view.asked.guards.len ? look->said.decision : look->said.words;
    if (look->answer.len && decision_repeats(look->answer, said, more)) {
        approval_report_taken(look->call, look->view.run, look->view.seq,
                              run_summary_state(summary));
        return;
    }
    route_refuse(look->call, 409, STR("ALREADY_ANSWERED"), "%s",
                 look->answer.len    ? "it was answered before, with another decision"
                 : summary->ended_ms ? "its run is over"
                                     : "another decision came first");
}

/* Another decision came first and has not reached the run yet. Look again soon to learn what it
 * was. */
static bool look_again(struct look *look) {
    bool coming = look->answers && look->answer.len == 0 && !look->summary.ended_ms;
    if (!coming || look->looks_left == 0) return false;
    look->looks_left--;
    timer_start(&look->again, LOOK_AGAIN_MS);
    return true;
}

static bool report_waiting(struct route_call *call, struct api_instance *instance,
                           const struct api_caller *caller, uint64_t run, uint64_t seq);

/* The run waits, and not here. */
static bool is_elsewhere(const struct look *look) {
    return look->waits && store_is_shared(look->instance->store);
}

static void look_once(void *ctx);

static void on_posted(const struct err *refused, void *ctx) {
    struct look *look = ctx;
    look->posted = NULL;
    if (!refused) {
        look_once(look); /* another answer may have been first */
    } else if (refused->code == ERR_INVALID_ARGUMENT ||
               refused->code == ERR_FAILED_PRECONDITION) {
        route_refuse(look->call, 422, STR("INVALID_INPUT"), "%s", refused->text);
    } else {
        route_field(look->call, STR("retry-after"), STR("1"));
        route_refuse(look->call, 503, STR("UNAVAILABLE"), "%s", refused->text);
    }
}

static void post(struct look *look) {
    bool guards = look->view.asked.guards.len > 0;
    look->posted = posted_answer_start(&(struct posted_answer_options){
        .loop = look->instance->loop,
        .sessions = look->instance->sessions,
        .words = {.run = look->view.run,
                  .seq = look->view.seq,
                  .text = guards ? look->said.decision : look->said.words},
        .on_end = on_posted,
        .ctx = look});
}

/* True: the replica that has the run gets the answer, and the log will say what came of it. */
static bool answer_elsewhere(struct look *look) {
    if (!look->answers || !is_elsewhere(look)) return false;
    if (run_is_live(look->instance->directory, look->view.run)) return false;
    if (look->said.edits && !look->view.asked.guards.len) {
        route_refuse(look->call, 422, STR("INVALID_INPUT"), APPROVAL_NO_CALL);
        return true;
    }
    post(look);
    return true;
}

/* The deadline is in the list of dormant runs. A run that was woken meanwhile is in memory. */
static void report_state(struct look *look) {
    struct dormant_runs *dormant = directory_dormant(look->instance->directory);
    struct dormant_run sleeper;
    if (!look->waits) {
        bool ended = look->summary.ended_ms && look->answer.len == 0;
        look_report(look, ended ? "over" : "answered");
    } else if (dormant_runs_find(dormant, look->view.run, &sleeper)) {
        look->view.asked.deadline_unix_ms = sleeper.deadline_unix_ms;
        look_report(look, "waiting");
    } else if (!report_waiting(look->call, look->instance, &look->caller, look->view.run,
                               look->view.seq)) {
        look_report(look, is_elsewhere(look) ? "waiting" : "answered" /* just now */);
    }
}

static void looked(const struct err *failed, void *ctx) {
    struct look *look = ctx;
    const struct run_summary *summary = &look->summary;
    look->scan = NULL;
    if (failed) {
        route_refuse(look->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
    } else if (!summary->known || !look->seen ||
               !api_may_see(&look->caller, summary->workspace, summary->user)) {
        late_refuse(&look->late, look->instance->loop, look->call, refuse_unknown_late, NULL);
    } else if (answer_elsewhere(look) || look_again(look)) {
        return;
    } else if (look->answers) {
        report_answered(look);
    } else {
        report_state(look);
    }
}

static void look_once(void *ctx) {
    struct look *look = ctx;
    run_summary_done(&look->summary);
    run_summary_init(&look->summary, look->view.run);
    look->summary.each = look_at;
    look->summary.each_ctx = look;
    look->seen = look->waits = false;
    if (run_summary_read_live(&look->summary, look->instance->directory,
                              look->instance->loop)) {
        looked(NULL, look);
    } else {
        look->scan = run_scan_start(look->instance->loop, look->instance->store, &look->summary,
                                    looked, look);
    }
}

void approval_look_up(struct route_call *call, struct api_instance *instance,
                      const struct api_caller *caller, const struct late *late, uint64_t run,
                      uint64_t seq, const struct approval_words *said) {
    struct look *look = MEM_NEW(struct look);
    *look = (struct look){.call = call,
                          .instance = instance,
                          .caller = *caller,
                          .answers = said != NULL,
                          .late = *late,
                          .looks_left = LOOKS_MAX};
    look->arena = arena_new(2 * APPROVAL_TEXT_MAX_BYTES);
    if (said)
        look->said = (struct approval_words){look_keep(look, said->decision),
                                             look_keep(look, said->words), said->edits};
    look->view = (struct pending_view){.run = run, .seq = seq};
    timer_init(&look->again, instance->loop, look_once, look);
    run_summary_init(&look->summary, run);
    route_watch(call, &look_watch, look);
    look_once(look);
}

bool approval_take_id(struct route_call *call, uint64_t *ret_run, uint64_t *ret_seq) {
    if (event_id_read(lent_read(route_parameter(call, STR("id"))), ret_run, ret_seq))
        return true;
    refuse_unknown(call);
    return false;
}

/* --- GET /weir/v1/approvals/{id} ---------------------------------------------------------- */

/* False: it does not wait, or belongs to another caller. */
static bool report_waiting(struct route_call *call, struct api_instance *instance,
                           const struct api_caller *caller, uint64_t run, uint64_t seq) {
    struct pending_view view;
    struct arena *arena = arena_new(APPROVAL_TEXT_MAX_BYTES);
    bool waits = api_waiting(instance, run, arena, &view) && view.seq == seq &&
                 api_may_see(caller, view.name.workspace, view.name.user);
    if (waits) {
        struct route_json reply;
        struct json_writer *json = route_json_begin(&reply, APPROVAL_BODY_MAX_BYTES);
        api_write_approval(json, &view, "waiting", STR_EMPTY);
        route_json_reply(&reply, call, 200);
    }
    arena_free(arena);
    return waits;
}

void api_get_approval(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_caller caller;
    uint64_t run, seq;
    struct late late;
    if (!api_identify(call, instance, &caller) || !approval_take_id(call, &run, &seq)) return;
    late_begin(&late);
    if (!report_waiting(call, instance, &caller, run, seq))
        approval_look_up(call, instance, &caller, &late, run, seq, NULL);
}
