/* POST /weir/v1/approvals/{id}: a human's answer.
 *
 * Answering brings a run back into memory. An answer to what does not wait any more is compared
 * with the earlier one. */
#include "base/mem.h"
#include "contract/weir/approvals.h"
#include "session/decision.h"
#include "session/waiting.h"

#include <stdlib.h>

/* --- the request -------------------------------------------------------------------------- */

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
    if (json_is_absent(member)) return true;
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
    if (!api_request_members(request, body, verdict_keys)) return false;
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
        err_set(&verdict->why, ERR_INVALID_ARGUMENT, APPROVAL_NO_CALL);
        return PENDING_REFUSED;
    }
    return decision_args_fit(asked, verdict->args, &verdict->why) ? PENDING_TAKEN
                                                                  : PENDING_REFUSED;
}

/* One answer; one to a run that is not in memory is kept until the run is back. */
struct answering {
    struct api_request request;
    struct api_instance *instance;
    struct late late;
    uint64_t run, seq;
    char *body; /* while it is kept */
    size_t body_len;
    struct dormant_wake *wake;
};

/* Whether the run asks about a call, and not a plain question. */
static bool asks_for_call(const struct answering *answering) {
    struct pending_view view;
    struct arena *arena = arena_new(APPROVAL_TEXT_MAX_BYTES);
    bool guards = api_waiting(answering->instance, answering->run, arena, &view) &&
                  view.asked.guards.len > 0;
    arena_free(arena);
    return guards;
}

static enum pending_found give_verdict(const struct answering *answering,
                                       const struct live_view *view, struct verdict *verdict) {
    struct pending_answered answered;
    struct buf words;
    buf_init(&words, APPROVAL_BODY_MAX_BYTES);
    enum pending_found found = PENDING_REFUSED;
    err_set(&verdict->why, ERR_TOO_LARGE, "the answer is too long");
    if (write_words(verdict, asks_for_call(answering), &words)) {
        const struct pending_answer answer = {
            .name = {view->workspace, view->user, view->session},
            .run = answering->run,
            .seq = answering->seq,
            .text = buf_str(&words),
            .check = check_verdict,
            .check_ctx = verdict};
        found =
            session_settle(answering->instance->sessions, &answer, &answered, &verdict->why);
    }
    if (found == PENDING_TAKEN) journal_unref(answered.journal);
    buf_done(&words);
    return found;
}

/* It does not wait: look for the earlier answer. */
static void look_back(struct answering *answering, const struct verdict *verdict) {
    struct buf decision, words;
    buf_init(&decision, APPROVAL_BODY_MAX_BYTES);
    buf_init(&words, APPROVAL_BODY_MAX_BYTES);
    write_words(verdict, true, &decision);
    write_words(verdict, false, &words);
    approval_look_up(
        answering->request.call, answering->instance, &answering->request.caller,
        &answering->late, answering->run, answering->seq,
        &(struct approval_words){buf_str(&decision), buf_str(&words),
                                 verdict->decides && verdict->kind == DECISION_EDIT});
    buf_done(&decision);
    buf_done(&words);
}

static enum pending_found give_if_live(const struct answering *answering,
                                       struct verdict *verdict) {
    struct live_view view;
    enum pending_found found = PENDING_NONE;
    if (!directory_find(answering->instance->directory, answering->run, &view)) return found;
    if (api_may_see(&answering->request.caller, view.workspace, view.user))
        found = give_verdict(answering, &view, verdict);
    live_view_done(&view);
    return found;
}

static void report_found(enum pending_found found, struct answering *answering,
                         const struct verdict *verdict) {
    switch (found) {
    case PENDING_TAKEN:
        approval_report_taken(answering->request.call, answering->run, answering->seq,
                              STR("running"));
        break;
    case PENDING_REFUSED:
    case PENDING_UNDECIDED:
        api_request_refuse(&answering->request, 422, "%s", verdict->why.text);
        break;
    case PENDING_SEVERAL:
    case PENDING_CLAIMED:
    case PENDING_ASLEEP: /* asleep again already; the next request wakes it */
    case PENDING_NONE: look_back(answering, verdict); break;
    }
}

/* --- a run that is not in memory ---------------------------------------------------------- */

static void answering_over(void *ctx) {
    struct answering *answering = ctx;
    dormant_wake_cancel(answering->wake);
    arena_free(answering->request.arena);
    free(answering->body);
    free(answering);
}

static const struct route_watch answering_watch = {.left = answering_over,
                                                   .closed = answering_over};

static void on_answering_awake(const struct err *failed, void *ctx) {
    struct answering *answering = ctx;
    struct route_call *call = answering->request.call;
    struct verdict verdict;
    answering->wake = NULL;
    if (failed) {
        route_refuse(call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
        return;
    }
    route_watch(call, NULL, NULL);
    struct str body = str_of(answering->body, answering->body_len);
    if (take_verdict(&answering->request, lent_of(body), &verdict))
        report_found(give_if_live(answering, &verdict), answering, &verdict);
    answering_over(answering);
}

/* True: the request waits until its run is back in memory. */
static bool answer_awake(const struct answering *from) {
    const struct dormant_filter sleeper = {.run = from->run};
    struct answering *answering = MEM_NEW(struct answering);
    struct str body = lent_read(route_body(from->request.call));
    *answering = *from;
    answering->wake = dormant_wake_start(from->instance->directory, &sleeper, 1,
                                         from->instance->loop, on_answering_awake, answering);
    if (!answering->wake) {
        free(answering);
        return false;
    }
    answering->body = str_dup(body);
    answering->body_len = body.len;
    route_watch(from->request.call, &answering_watch, answering);
    return true;
}

/* --- the route ---------------------------------------------------------------------------- */

/* True: the request has been handled. */
static bool answer(struct answering *answering) {
    struct verdict verdict;
    if (!take_verdict(&answering->request, route_body(answering->request.call), &verdict))
        return true;
    enum pending_found found = give_if_live(answering, &verdict);
    bool missed = found == PENDING_NONE || found == PENDING_ASLEEP;
    if (missed && answer_awake(answering)) return false;
    if (missed) found = give_if_live(answering, &verdict);
    report_found(found, answering, &verdict);
    return true;
}

void api_answer_approval(struct route_call *call, void *ctx) {
    struct answering answering = {.instance = ctx};
    if (!api_request_begin(&answering.request, call, ctx, NULL)) return;
    late_begin(&answering.late);
    bool done = !approval_take_id(call, &answering.run, &answering.seq) || answer(&answering);
    if (done) arena_free(answering.request.arena);
}
