/* approvals: what waits for a human, and his answer.
 *
 * An approval's id is its run's id and the number of its event there, "<run>-<seq>": the same
 * after a restart. What waits is read from the table of pending approvals; what was answered,
 * from the run.
 */
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "session/decision.h"

#include <stdlib.h>

#define LIST_USUAL 100
#define LIST_MOST 1000
#define LIST_MAX_BYTES (4 * MIB)
#define TEXT_MAX_BYTES (32 * MIB) /* of one approval: a run holds no more */
#define BODY_MAX_BYTES (64 * MIB)
#define LOOK_AGAIN_MS 50 /* for a decision that is on its way to its run */
#define LOOKS_MAX 100
#define LIST_LOOKS_MAX 10 /* while runs fall asleep all the time */

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

static void write_view(struct json_writer *json, const struct pending_view *view,
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

/* --- GET /weir/v1/approvals --------------------------------------------------------------- */

/* A list, which may need some of those back that are not in memory. The filter shows what lies
 * in the request. */
struct listing {
    struct api_request request;
    struct api_instance *instance;
    struct pending_approvals_filter filter;
    size_t limit;
    struct dormant_wake *wake;
    uint64_t added; /* to the dormant runs, before they were woken */
    unsigned looks;
};

static void listing_over(void *ctx) {
    struct listing *listing = ctx;
    dormant_wake_cancel(listing->wake);
    arena_free(listing->request.arena);
    free(listing);
}

static const struct route_watch listing_watch = {.left = listing_over, .closed = listing_over};

/* False: a run may have fallen asleep after the dormant ones were woken, and before this. */
static bool list_approvals(struct listing *listing) {
    size_t limit = listing->limit;
    struct pending_view *views = mem_zero(limit, sizeof(*views));
    struct arena *arena = arena_new(LIST_MAX_BYTES);
    struct buf body;
    bool more;
    size_t count = pending_approvals_list(session_table_approvals(listing->instance->sessions),
                                          &listing->filter, limit, arena, views, &more);
    if (dormant_runs_added(directory_dormant(listing->instance->directory)) != listing->added &&
        listing->looks < LIST_LOOKS_MAX) {
        arena_free(arena);
        free(views);
        return false;
    }
    buf_init(&body, BODY_MAX_BYTES);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    json_member_array(&json, "approvals");
    for (size_t i = 0; i < count; i++) write_view(&json, &views[i], "waiting", STR_EMPTY);
    json_close(&json);
    json_member_bool(&json, "more", more);
    json_close(&json);
    reply(listing->request.call, &body);
    buf_done(&body);
    arena_free(arena);
    free(views);
    return true;
}

static void look_and_list(struct listing *listing);

static void on_listing_awake(const struct err *failed, void *ctx) {
    struct listing *listing = ctx;
    listing->wake = NULL;
    if (failed) {
        api_refuse(listing->request.call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
    } else if (!list_approvals(listing)) {
        look_and_list(listing);
    }
}

static bool read_listing(struct listing *listing) {
    struct pending_approvals_filter *filter = &listing->filter;
    struct api_request *request = &listing->request;
    bool read = api_request_whose(request, &filter->workspace, &filter->user) &&
                api_request_value(request, STR("session_id"), &filter->session) &&
                api_request_limit(request, LIST_USUAL, LIST_MOST, &listing->limit);
    if (filter->session.len == 0) filter->session = (struct str){NULL, 0};
    return read;
}

/* One more than is listed, so that it is known whether there is more. */
static void wake_listed(struct listing *listing) {
    const struct pending_approvals_filter *filter = &listing->filter;
    const struct dormant_filter sleepers = {filter->workspace, filter->user, filter->session,
                                            filter->run};
    struct api_instance *instance = listing->instance;
    listing->looks++;
    listing->added = dormant_runs_added(directory_dormant(instance->directory));
    listing->wake = dormant_wake_start(instance->directory, &sleepers, listing->limit + 1,
                                       instance->loop, on_listing_awake, listing);
}

static void look_and_list(struct listing *listing) {
    do {
        wake_listed(listing);
    } while (!listing->wake && !list_approvals(listing));
}

void api_list_approvals(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "user", "session_id", "limit", NULL};
    struct listing *listing = MEM_NEW(struct listing);
    listing->instance = ctx;
    if (!api_request_begin(&listing->request, call, ctx, names)) {
        free(listing);
        return;
    }
    if (!read_listing(listing)) {
        listing_over(listing);
        return;
    }
    route_watch(call, &listing_watch, listing);
    look_and_list(listing);
}

/* --- one approval, wherever it stands ----------------------------------------------------- */

/* Its run is read from the journal or the store until it is known what became of it. */
/* An answer as a call would be decided with it, and a plain question answered. */
struct said {
    struct str decision, words;
};

struct look {
    struct route_call *call;
    struct api_caller caller;
    struct arena *arena;
    struct pending_view view;
    bool seen; /* the run has such an approval */
    struct str call_id, answer;
    bool answers;     /* it was to be answered */
    struct said said; /* then: with this */
    struct api_instance *instance;
    struct timer again;  /* a decision is on its way to the run */
    unsigned looks_left; /* until it must have come */
    struct run_summary summary;
    struct run_scan *scan;
    struct dormant_wake *wake; /* the run waits, and is not in memory */
    struct api_late late;      /* says that there is no such approval */
};

static void look_over(void *ctx) {
    struct look *look = ctx;
    api_late_stop(&look->late);
    timer_stop(&look->again);
    run_scan_cancel(look->scan);
    dormant_wake_cancel(look->wake);
    run_summary_done(&look->summary);
    arena_free(look->arena);
    free(look);
}

static const struct route_watch look_watch = {.left = look_over, .closed = look_over};

/* A text that does not fit is left out: the arena holds more than a run may. */
static struct str weir_approvals_keep(struct look *look, struct str text) {
    struct str kept;
    return arena_str(look->arena, text, &kept) ? kept : STR_EMPTY;
}

static void look_at(const struct event *event, uint64_t seq, void *ctx) {
    struct look *look = ctx;
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

static void weir_approvals_tell(struct look *look) {
    const struct run_summary *summary = &look->summary;
    struct buf body;
    bool ended = summary->ended_ms && look->answer.len == 0;
    look->view.name =
        (struct session_name){summary->workspace, summary->user, summary->session};
    buf_init(&body, BODY_MAX_BYTES);
    struct json_writer json = json_writer(&body);
    write_view(&json, &look->view, ended ? "over" : "answered", look->answer);
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

/* It was answered before: the same decision gets the same answer again. */
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
                                   : "somebody was faster");
}

/* Another decision was faster and has not reached the run yet. Look again soon to learn what it
 * was. */
static bool look_again(struct look *look) {
    bool coming = look->answers && look->answer.len == 0 && !look->summary.ended_ms;
    if (!coming || look->looks_left == 0) return false;
    look->looks_left--;
    timer_start(&look->again, LOOK_AGAIN_MS);
    return true;
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
    } else if (look->answers) {
        tell_answered(look);
    } else {
        weir_approvals_tell(look);
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
    look->seen = false;
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

static bool tell_waiting(struct route_call *call, struct api_instance *instance,
                         const struct api_caller *caller, uint64_t run, uint64_t seq);

static void on_look_awake(const struct err *failed, void *ctx) {
    struct look *look = ctx;
    look->wake = NULL;
    if (failed) {
        looked(failed, look);
    } else if (!tell_waiting(look->call, look->instance, &look->caller, look->view.run,
                             look->view.seq)) {
        look_once(look);
    }
}

/* `said`: what it was to be answered with; NULL: it is only looked at. */
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
    const struct dormant_filter sleeper = {.run = run};
    if (!said)
        look->wake = dormant_wake_start(instance->directory, &sleeper, 1, instance->loop,
                                        on_look_awake, look);
    if (!look->wake) look_once(look);
}

/* False: it is none, and the refusal has been sent. */
static bool take_id(struct route_call *call, uint64_t *ret_run, uint64_t *ret_seq) {
    struct str seq, run = str_split(lent_read(route_parameter(call, STR("id"))), '-', &seq);
    if (seq.at && str_to_u64(run, ret_run) && str_to_u64(seq, ret_seq) && *ret_run && *ret_seq)
        return true;
    refuse_unknown(call);
    return false;
}

/* --- GET /weir/v1/approvals/{id} ---------------------------------------------------------- */

/* False: it does not wait, or is not this caller's. */
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
        write_view(&json, &view, "waiting", STR_EMPTY);
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

/* The human's decision as the request states it, in the request's arena. */
struct verdict {
    bool decides; /* false: `answer` are his words */
    enum decision_kind kind;
    struct json args; /* of an edit */
    struct str answer, reason;
    struct err why; /* it does not fit what is asked */
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

/* The words that the run is given: a call is decided exactly, a question gets an answer. */
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

/* Whether the run waits with a call or a question is known from what it asks. */
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

/* It does not wait: what was said of it before? */
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

/* An answer to a run that is not in memory: what the request says, until it is. */
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
    enum pending_found found = PENDING_NOBODY;
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
    case PENDING_ASLEEP: /* again, and so soon: the next request finds it */
    case PENDING_NOBODY: look_back(request, instance, late, run, seq, verdict); break;
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

/* True: the request is kept until its run is back. */
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

/* True: it is done with. */
static bool answer(struct api_request *request, struct api_instance *instance,
                   const struct api_late *late, uint64_t run, uint64_t seq) {
    struct verdict verdict;
    if (!take_verdict(request, route_body(request->call), &verdict)) return true;
    enum pending_found found = give_if_live(request, instance, run, seq, &verdict);
    bool missed = found == PENDING_NOBODY || found == PENDING_ASLEEP;
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
