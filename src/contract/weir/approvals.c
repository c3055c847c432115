/* approvals: what waits for a human, and the human's answer.
 *
 * An approval's id is its run's id and the number of its event there, "<run>-<seq>"; it is the
 * same after a restart. What waits is read from the table of pending approvals. What is not in
 * memory, or was answered, is read from the run. Reading a run does not bring it back into
 * memory; answering it does. */
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "session/decision.h"
#include "session/waiting.h"

#include <stdlib.h>

#define TEXT_MAX_BYTES (32 * MIB) /* of one approval, the most that a run can hold */
#define BODY_MAX_BYTES (64 * MIB)
#define LOOK_AGAIN_MS 50 /* while a decision is on its way to its run */
#define LOOKS_MAX 100

/* --- as JSON ------------------------------------------------------------------------------ */

static void write_approval_id(struct json_writer *json, const char *key, uint64_t run,
                              uint64_t seq) {
    char room[48];
    struct buf id = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append_u64(&id, run);
    buf_append_byte(&id, '-');
    buf_append_u64(&id, seq);
    json_member_str(json, key, buf_str(&id));
}

void api_write_approval(struct json_writer *json, const struct pending_view *view,
                        const char *state, struct str answer) {
    const struct pending_question *asked = &view->asked;
    json_open_object(json);
    write_approval_id(json, "id", view->run, view->seq);
    api_write_id(json, "run_id", view->run);
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

static void reply(struct route_call *call, const struct buf *body) {
    route_reply(call, 200, STR("application/json"), buf_str(body));
}

static void refuse_unknown(struct route_call *call) {
    api_refuse(call, 404, STR("APPROVAL_NOT_FOUND"), "there is no such approval");
}

/* --- one approval, wherever it stands ----------------------------------------------------- */

/* The run is read from its journal or the store until the approval's outcome is known. */
/* The answer in two forms: as a decision about a call, and as the answer to a plain
 * question. */
struct said {
    struct str decision, words;
};

struct look {
    struct route_call *call;
    struct api_caller caller;
    struct arena *arena;
    struct pending_view view;
    bool seen;  /* the run has such an approval */
    bool waits; /* no question and no answer has followed it */
    struct str call_id, answer;
    bool answers;     /* the request is an answer */
    struct said said; /* the answer, if so */
    struct api_instance *instance;
    struct timer again;  /* for the next look */
    unsigned looks_left; /* before giving up on the decision */
    struct run_summary summary;
    struct run_scan *scan;
    struct api_late late; /* the refusal: no such approval */
};

static void look_over(void *ctx) {
    struct look *look = ctx;
    api_late_stop(&look->late);
    timer_stop(&look->again);
    run_scan_cancel(look->scan);
    run_summary_done(&look->summary);
    arena_free(look->arena);
    free(look);
}

static const struct route_watch look_watch = {.left = look_over, .closed = look_over};

/* A text that does not fit is left out; the arena holds more than any run. */
static struct str weir_approvals_keep(struct look *look, struct str text) {
    struct str kept;
    return arena_str(look->arena, text, &kept) ? kept : STR_EMPTY;
}

static void look_at(const struct event *event, uint64_t seq, void *ctx) {
    struct look *look = ctx;
    if (event->kind != EVENT_ITEM) /* as restore_run_waits() */
        look->waits = event->kind == EVENT_APPROVAL && seq == look->view.seq;
    if (event->kind == EVENT_APPROVAL && seq == look->view.seq) {
        look->seen = true;
        look->call_id = weir_approvals_keep(look, event->approval.call_id);
        look->view.asked = (struct pending_question){
            .agent = weir_approvals_keep(look, event->agent),
            .question = weir_approvals_keep(look, event->approval.question),
            .tool = weir_approvals_keep(look, event->approval.tool),
            .args = weir_approvals_keep(look, event->approval.args),
            .guards = weir_approvals_keep(look, event->approval.guards),
            .asked_unix_ms = look->summary.started_ms + event->at_ms,
        };
    }
    if (event->kind == EVENT_TOOL_RESULT && look->seen && look->answer.len == 0 &&
        str_equal(event->tool_result.call_id, look->call_id))
        look->answer = weir_approvals_keep(look, event->tool_result.result);
}

static void weir_approvals_tell(struct look *look, const char *state) {
    const struct run_summary *summary = &look->summary;
    struct buf body;
    look->view.name =
        (struct session_name){summary->workspace, summary->user, summary->session};
    buf_init(&body, BODY_MAX_BYTES);
    struct json_writer json = json_writer(&body);
    api_write_approval(&json, &look->view, state, look->answer);
    reply(look->call, &body);
    buf_done(&body);
}

static void tell_taken(struct route_call *call, uint64_t run, uint64_t seq, struct str state) {
    struct buf body;
    buf_init(&body, KIB);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    write_approval_id(&json, "id", run, seq);
    api_write_id(&json, "run_id", run);
    json_member_str(&json, "state", state);
    json_close(&json);
    reply(call, &body);
    buf_done(&body);
}

/* It has been answered: the same decision gets the same reply again. */
static void tell_answered(struct look *look) {
    const struct run_summary *summary = &look->summary;
    const struct yes_no_words *more = &look->instance->settings->decision_words;
    struct str said = look->view.asked.guards.len ? look->said.decision : look->said.words;
    if (look->answer.len && decision_repeats(look->answer, said, more)) {
        tell_taken(look->call, look->view.run, look->view.seq, run_summary_state(summary));
        return;
    }
    api_refuse(look->call, 409, STR("ALREADY_ANSWERED"), "%s",
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

static bool tell_waiting(struct route_call *call, struct api_instance *instance,
                         const struct api_caller *caller, uint64_t run, uint64_t seq);

/* The run waits, and not here. */
static bool is_elsewhere(const struct look *look) {
    return look->waits && store_is_shared(look->instance->store);
}

/* The deadline is in the list of dormant runs. A run that was woken meanwhile is in memory. */
static void tell_what_it_is(struct look *look) {
    struct dormant_runs *dormant = directory_dormant(look->instance->directory);
    struct dormant_run sleeper;
    if (!look->waits) {
        bool ended = look->summary.ended_ms && look->answer.len == 0;
        weir_approvals_tell(look, ended ? "over" : "answered");
    } else if (dormant_runs_find(dormant, look->view.run, &sleeper)) {
        look->view.asked.deadline_unix_ms = sleeper.deadline_unix_ms;
        weir_approvals_tell(look, "waiting");
    } else if (!tell_waiting(look->call, look->instance, &look->caller, look->view.run,
                             look->view.seq)) {
        weir_approvals_tell(look, is_elsewhere(look) ? "waiting" : "answered" /* just now */);
    }
}

static void looked(const struct err *failed, void *ctx) {
    struct look *look = ctx;
    const struct run_summary *summary = &look->summary;
    look->scan = NULL;
    if (failed) {
        api_refuse(look->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
    } else if (!summary->known || !look->seen ||
               !api_may_see(&look->caller, summary->workspace, summary->user)) {
        api_late_refuse(&look->late, look->instance->loop, look->call, refuse_unknown);
    } else if (look_again(look)) {
        return;
    } else if (look->answers && is_elsewhere(look)) {
        route_field(look->call, STR("retry-after"), STR("1"));
        api_refuse(look->call, 503, STR("UNAVAILABLE"),
                   "the run waits at another replica; send the answer there");
    } else if (look->answers) {
        tell_answered(look);
    } else {
        tell_what_it_is(look);
    }
}

static void look_once(void *ctx) {
    struct look *look = ctx;
    struct live_view view;
    bool whole = false;
    run_summary_done(&look->summary);
    run_summary_init(&look->summary, look->view.run);
    look->summary.each = look_at;
    look->summary.each_ctx = look;
    look->seen = look->waits = false;
    if (directory_find(look->instance->directory, look->view.run, &view)) {
        whole = run_summary_add_live(&look->summary, &view, look->instance->loop);
        live_view_done(&view);
    }
    if (whole) {
        looked(NULL, look);
    } else {
        look->scan = run_scan_start(look->instance, &look->summary, looked, look);
    }
}

/* `said`: the answer in the request; NULL: the request only reads. */
static void look_up(struct route_call *call, struct api_instance *instance,
                    const struct api_caller *caller, const struct api_late *late, uint64_t run,
                    uint64_t seq, const struct said *said) {
    struct look *look = MEM_NEW(struct look);
    *look = (struct look){.call = call,
                          .instance = instance,
                          .caller = *caller,
                          .answers = said != NULL,
                          .late = *late,
                          .looks_left = LOOKS_MAX};
    look->arena = arena_new(2 * TEXT_MAX_BYTES);
    if (said) look->said.decision = weir_approvals_keep(look, said->decision);
    if (said) look->said.words = weir_approvals_keep(look, said->words);
    look->view = (struct pending_view){.run = run, .seq = seq};
    timer_init(&look->again, instance->loop, look_once, look);
    run_summary_init(&look->summary, run);
    route_watch(call, &look_watch, look);
    look_once(look);
}

/* False: the id is invalid, and a refusal has been sent. */
static bool take_id(struct route_call *call, uint64_t *ret_run, uint64_t *ret_seq) {
    struct str seq, run = str_split(lent_read(route_parameter(call, STR("id"))), '-', &seq);
    if (seq.at && str_to_u64(run, ret_run) && str_to_u64(seq, ret_seq) && *ret_run && *ret_seq)
        return true;
    refuse_unknown(call);
    return false;
}

/* --- GET /weir/v1/approvals/{id} ---------------------------------------------------------- */

/* False: it does not wait, or belongs to another caller. */
static bool tell_waiting(struct route_call *call, struct api_instance *instance,
                         const struct api_caller *caller, uint64_t run, uint64_t seq) {
    struct pending_view view;
    struct buf body;
    bool more;
    struct arena *arena = arena_new(TEXT_MAX_BYTES);
    struct pending_approvals_filter filter = {.run = run};
    bool waits = pending_approvals_list(session_table_approvals(instance->sessions), &filter, 1,
                                        arena, &view, &more) == 1 &&
                 view.seq == seq && api_may_see(caller, view.name.workspace, view.name.user);
    if (waits) {
        buf_init(&body, BODY_MAX_BYTES);
        struct json_writer json = json_writer(&body);
        api_write_approval(&json, &view, "waiting", STR_EMPTY);
        reply(call, &body);
        buf_done(&body);
    }
    arena_free(arena);
    return waits;
}

void api_get_approval(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_caller caller;
    uint64_t run, seq;
    struct api_late late;
    if (!api_identify(call, instance, &caller) || !take_id(call, &run, &seq)) return;
    api_late_begin(&late);
    if (!tell_waiting(call, instance, &caller, run, seq))
        look_up(call, instance, &caller, &late, run, seq, NULL);
}

/* --- POST /weir/v1/approvals/{id} --------------------------------------------------------- */

/* The decision in the request; its texts are in the request's arena. */
struct verdict {
    bool decides; /* false: only `answer` is set */
    enum decision_kind kind;
    struct json args; /* of an edit: the new arguments */
    struct str answer, reason;
    struct err why; /* why it does not fit the question */
};

static bool take_string(struct api_request *request, struct json member, const char *name,
                        struct str *ret) {
    *ret = STR_EMPTY;
    if (member.kind == JSON_NONE || member.kind == JSON_NULL) return true;
    if (member.kind != JSON_STRING)
        return api_request_refuse(request, 422, "%s must be a string, not %s", name,
                                  json_kind_name(member.kind));
    return json_str(member, request->arena, ret) ||
           api_request_refuse(request, 422, "%s is too long", name);
}

static bool take_decision(struct api_request *request, struct json body, struct verdict *ret) {
    struct json word = json_find(body, STR("decision"));
    ret->decides = true;
    ret->args = json_find(body, STR("args"));
    for (ret->kind = DECISION_APPROVE; ret->kind <= DECISION_EDIT; ret->kind++) {
        if (json_is(word, decision_name(ret->kind))) break;
    }
    if (ret->kind > DECISION_EDIT)
        return api_request_refuse(request, 422, "decision must be approve, refuse or edit");
    bool given = ret->args.kind == JSON_OBJECT && json_count(ret->args) > 0;
    if (ret->kind == DECISION_APPROVE && given) ret->kind = DECISION_EDIT;
    if (ret->kind == DECISION_EDIT && ret->args.kind != JSON_OBJECT)
        return api_request_refuse(request, 422,
                                  "an edit needs args, the object to call the tool with");
    return take_string(request, json_find(body, STR("reason")), "reason", &ret->reason);
}

static const char *const verdict_keys[] = {"decision", "args", "reason", "answer", NULL};

static bool take_verdict(struct api_request *request, struct lent text, struct verdict *ret) {
    struct json body;
    struct err e;
    *ret = (struct verdict){.decides = false};
    if (!json_read(lent_read(text), &body, &e))
        return api_request_refuse(request, 400, "%s", e.text);
    if (!json_check_once(body, verdict_keys, &e))
        return api_request_refuse(request, 400, "%s", e.text);
    struct json words = json_find(body, STR("answer"));
    if (json_find(body, STR("decision")).kind != JSON_NONE && words.kind == JSON_NONE)
        return take_decision(request, body, ret);
    if (body.kind != JSON_OBJECT || words.kind != JSON_STRING ||
        json_find(body, STR("decision")).kind != JSON_NONE)
        return api_request_refuse(request, 422,
                                  "send {\"decision\":\"approve\"}, refuse or edit, or "
                                  "{\"answer\":\"...\"}");
    return take_string(request, words, "answer", &ret->answer);
}

/* The text for the run: JSON for a decision about a call, plain text for a question. */
static bool write_words(const struct verdict *verdict, bool guards, struct buf *out) {
    if (!verdict->decides) return buf_append(out, verdict->answer);
    bool yes = verdict->kind == DECISION_APPROVE;
    if (!guards && yes) return buf_append(out, STR("yes"));
    if (!guards) return buf_append(out, verdict->reason.len ? verdict->reason : STR("no"));
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "decision", decision_name(verdict->kind));
    if (verdict->kind == DECISION_EDIT) json_member_raw(&json, "args", verdict->args.raw);
    if (verdict->reason.len) json_member_str(&json, "reason", verdict->reason);
    json_close(&json);
    return buf_ok(out);
}

static enum pending_found check_verdict(const struct pending_question *asked, void *ctx) {
    struct verdict *verdict = ctx;
    if (!verdict->decides) return decision_fits(asked, verdict->answer, &verdict->why);
    if (verdict->kind != DECISION_EDIT) return PENDING_TAKEN;
    if (asked->guards.len == 0) {
        err_set(&verdict->why, ERR_INVALID_ARGUMENT,
                "this is a question, not a call that could be edited; send an answer");
        return PENDING_REFUSED;
    }
    return decision_args_fit(asked, verdict->args, &verdict->why) ? PENDING_TAKEN
                                                                  : PENDING_REFUSED;
}

/* Whether the run asks about a call, and not a plain question. */
static bool asks_for_call(struct api_instance *instance, uint64_t run) {
    struct pending_view view;
    bool more;
    struct arena *arena = arena_new(TEXT_MAX_BYTES);
    struct pending_approvals_filter filter = {.run = run};
    size_t count = pending_approvals_list(session_table_approvals(instance->sessions), &filter,
                                          1, arena, &view, &more);
    bool guards = count == 1 && view.asked.guards.len > 0;
    arena_free(arena);
    return guards;
}

static enum pending_found weir_approvals_give(struct api_instance *instance,
                                              const struct live_view *view, uint64_t run,
                                              uint64_t seq, struct verdict *verdict) {
    struct pending_answered answered;
    struct buf words;
    buf_init(&words, BODY_MAX_BYTES);
    enum pending_found found = PENDING_REFUSED;
    err_set(&verdict->why, ERR_TOO_LARGE, "the answer is too long");
    if (write_words(verdict, asks_for_call(instance, run), &words)) {
        const struct pending_answer answer = {
            .name = {view->workspace, view->user, view->session},
            .run = run,
            .seq = seq,
            .text = buf_str(&words),
            .check = check_verdict,
            .check_ctx = verdict};
        found = session_settle(instance->sessions, &answer, &answered, &verdict->why);
    }
    if (found == PENDING_TAKEN) journal_unref(answered.journal);
    buf_done(&words);
    return found;
}

/* It does not wait: look for the earlier answer. */
static void look_back(struct api_request *request, struct api_instance *instance,
                      const struct api_late *late, uint64_t run, uint64_t seq,
                      const struct verdict *verdict) {
    struct buf decision, words;
    buf_init(&decision, BODY_MAX_BYTES);
    buf_init(&words, BODY_MAX_BYTES);
    write_words(verdict, true, &decision);
    write_words(verdict, false, &words);
    look_up(request->call, instance, &request->caller, late, run, seq,
            &(struct said){buf_str(&decision), buf_str(&words)});
    buf_done(&decision);
    buf_done(&words);
}

/* An answer to a run that is not in memory, kept until the run is back. */
struct answering {
    struct api_request request;
    struct api_instance *instance;
    struct api_late late;
    uint64_t run, seq;
    char *body;
    size_t body_len;
    struct dormant_wake *wake;
};

static void answering_over(void *ctx) {
    struct answering *answering = ctx;
    dormant_wake_cancel(answering->wake);
    arena_free(answering->request.arena);
    free(answering->body);
    free(answering);
}

static const struct route_watch answering_watch = {.left = answering_over,
                                                   .closed = answering_over};

static enum pending_found give_if_live(struct api_request *request,
                                       struct api_instance *instance, uint64_t run,
                                       uint64_t seq, struct verdict *verdict) {
    struct live_view view;
    enum pending_found found = PENDING_NONE;
    if (!directory_find(instance->directory, run, &view)) return found;
    if (api_may_see(&request->caller, view.workspace, view.user))
        found = weir_approvals_give(instance, &view, run, seq, verdict);
    live_view_done(&view);
    return found;
}

static void tell_found(enum pending_found found, struct api_request *request,
                       struct api_instance *instance, const struct api_late *late, uint64_t run,
                       uint64_t seq, const struct verdict *verdict) {
    switch (found) {
    case PENDING_TAKEN: tell_taken(request->call, run, seq, STR("running")); break;
    case PENDING_REFUSED:
    case PENDING_UNDECIDED: api_request_refuse(request, 422, "%s", verdict->why.text); break;
    case PENDING_SEVERAL:
    case PENDING_CLAIMED:
    case PENDING_ASLEEP: /* asleep again already; the next request wakes it */
    case PENDING_NONE: look_back(request, instance, late, run, seq, verdict); break;
    }
}

static void on_answering_awake(const struct err *failed, void *ctx) {
    struct answering *answering = ctx;
    struct api_request *request = &answering->request;
    struct verdict verdict;
    answering->wake = NULL;
    if (failed) {
        api_refuse(request->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
        return;
    }
    route_watch(request->call, NULL, NULL);
    struct str body = str_of(answering->body, answering->body_len);
    if (take_verdict(request, lent_of(body), &verdict)) {
        enum pending_found found = give_if_live(request, answering->instance, answering->run,
                                                answering->seq, &verdict);
        tell_found(found, request, answering->instance, &answering->late, answering->run,
                   answering->seq, &verdict);
    }
    answering_over(answering);
}

/* True: the request waits until its run is back in memory. */
static bool answer_awake(struct api_request *request, struct api_instance *instance,
                         const struct api_late *late, uint64_t run, uint64_t seq) {
    const struct dormant_filter sleeper = {.run = run};
    struct answering *answering = MEM_NEW(struct answering);
    struct str body = lent_read(route_body(request->call));
    *answering = (struct answering){
        .request = *request, .instance = instance, .late = *late, .run = run, .seq = seq};
    answering->wake = dormant_wake_start(instance->directory, &sleeper, 1, instance->loop,
                                         on_answering_awake, answering);
    if (!answering->wake) {
        free(answering);
        return false;
    }
    answering->body = str_dup(body);
    answering->body_len = body.len;
    route_watch(request->call, &answering_watch, answering);
    return true;
}

/* True: the request has been handled. */
static bool answer(struct api_request *request, struct api_instance *instance,
                   const struct api_late *late, uint64_t run, uint64_t seq) {
    struct verdict verdict;
    if (!take_verdict(request, route_body(request->call), &verdict)) return true;
    enum pending_found found = give_if_live(request, instance, run, seq, &verdict);
    bool missed = found == PENDING_NONE || found == PENDING_ASLEEP;
    if (missed && answer_awake(request, instance, late, run, seq)) return false;
    if (missed) found = give_if_live(request, instance, run, seq, &verdict);
    tell_found(found, request, instance, late, run, seq, &verdict);
    return true;
}

void api_answer_approval(struct route_call *call, void *ctx) {
    static const char *const names[] = {NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    uint64_t run, seq;
    if (!api_request_begin(&request, call, instance, names)) return;
    struct api_late late;
    api_late_begin(&late);
    bool done = !take_id(call, &run, &seq) || answer(&request, instance, &late, run, seq);
    if (done) arena_free(request.arena);
}
