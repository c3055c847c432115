/* decisions: requests that carry a human's decision: /resume, and an /invoke or /stream in a
 * session where a run waits.
 *
 *     a run waits ─▶ the answer fits ─▶ it is taken, and its sender reads the run
 *          │               ├─▶ decides nothing ─▶ the question again (/resume), or 409
 *          │               └─▶ does not fit ─▶ 422
 *          ├─▶ several ─▶ 409
 *          └─▶ none ─▶ it was decided before: the same decision gets the same answer,
 *                      another one 409; an /invoke is a turn */
#include "base/id.h"
#include "contract/agentbreeder/inner.h"
#include "contract/event_id.h"
#include "session/decision.h"
#include "session/directory.h"
#include "wire/digest.h"

#define QUESTIONS_MAX 20 /* named in one refusal */
#define REPLY_MAX_BYTES (64 * MIB)

const struct yes_no_words *decide_words_of(const struct turn *turn) {
    return &turn->http.site->host->engine->limits.decision_words;
}

/* --- the body of /resume ------------------------------------------------------------------ */

static bool take_user(struct turn *turn, struct json body, struct err *e) {
    struct json config = json_find(body, STR("config"));
    struct json user = json_find(json_find(config, STR("configurable")), STR("user_id"));
    turn->request.user = STR("anonymous");
    if (json_is_absent(user) || json_is(user, STR(""))) return true;
    turn->names_user = true;
    if (user.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "config.configurable.user_id must be a string, not %s",
                       json_kind_name(user.kind));
    if (!json_str(user, turn->http.arena, &turn->request.user))
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a turn may hold");
    return id_check("config.configurable.user_id", turn->request.user, e);
}

/* Read "<run>-<seq>", the form of metadata.approval. Any other text names a question that does
 * not exist. */
static bool decisions_take_approval(struct turn *turn, struct json body, struct err *e) {
    struct json id = json_find(body, STR("approval_id"));
    struct str text;
    if (json_is_absent(id)) return true;
    if (!json_str(id, turn->http.arena, &text))
        return err_set(e, ERR_INVALID_ARGUMENT, "approval_id must be a string, not %s",
                       json_kind_name(id.kind));
    if (text.len == 0) return true;
    if (!event_id_read(text, &turn->approval_run, &turn->approval_seq))
        turn->approval_run = turn->approval_seq = UINT64_MAX;
    return true;
}

static bool decisions_take_print(struct turn *turn, struct err *e) {
    uint64_t approval[] = {turn->approval_run, turn->approval_seq};
    const struct str parts[] = {STR("/resume"), turn->resume.thread, turn->resume.text,
                                str_of(approval, sizeof(approval))};
    uint8_t digest[DIGEST_BYTES];
    digest_parts(parts, ARRAY_LEN(parts), digest);
    return arena_str(turn->http.arena, str_of(digest, sizeof(digest)), &turn->request.print) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a turn may hold");
}

bool decide_read(struct turn *turn, struct err *e) {
    struct json body;
    struct str text;
    return http_turn_keep(&turn->http, route_body(turn->http.call), &text, e) &&
           resume_request_parse(text, turn->http.arena, &turn->resume, e) &&
           json_read(text, &body, e) && take_user(turn, body, e) &&
           decisions_take_approval(turn, body, e) && decisions_take_print(turn, e);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void decisions_write_entry(struct str entry, void *ctx) {
    json_write_str(ctx, entry);
}

static void write_words(struct json_writer *json, const char *key, enum yes_no which,
                        const struct yes_no_words *more) {
    json_member_array(json, key);
    yes_no_each(which, more, decisions_write_entry, json);
    json_close(json);
}

static void decisions_write_question(struct json_writer *json,
                                     const struct pending_view *view) {
    json_open_object(json);
    event_id_write(json, "approval_id", view->run, view->seq);
    json_member_str(json, "user", view->name.user);
    json_member_str(json, "question", view->asked.question);
    if (view->asked.tool.len) json_member_str(json, "tool", view->asked.tool);
    if (view->asked.args.len) json_member_raw(json, "args", view->asked.args);
    json_close(json);
}

/* 409: say which questions are open and how to answer one. */
static void refuse_with(struct turn *turn, struct str code, struct str message,
                        const struct pending_view *views, size_t count) {
    struct buf details;
    buf_init(&details, REPLY_MAX_BYTES);
    struct json_writer json = json_writer(&details);
    json_open_object(&json);
    json_member_array(&json, "questions");
    for (size_t i = 0; i < count; i++) decisions_write_question(&json, &views[i]);
    json_close(&json);
    write_words(&json, "yes", YES_NO_YES, decide_words_of(turn));
    write_words(&json, "no", YES_NO_NO, decide_words_of(turn));
    json_close(&json);
    turn_fail(turn, 409, code, message, buf_str(&details));
    buf_done(&details);
}

static void refuse_several(struct turn *turn, const struct pending_answer *answer,
                           struct str code, struct str message) {
    struct pending_view views[QUESTIONS_MAX];
    struct pending_approvals_filter filter = {.workspace = answer->name.workspace,
                                              .user = answer->name.user,
                                              .session = answer->name.session};
    struct arena *arena = arena_new(REPLY_MAX_BYTES);
    bool more;
    size_t count =
        pending_approvals_list(session_table_approvals(http_turn_sessions(&turn->http)),
                               &filter, QUESTIONS_MAX, arena, views, &more);
    refuse_with(turn, code, message, views, count);
    arena_free(arena);
}

static void refuse_ambiguous(struct turn *turn, const struct pending_answer *answer) {
    refuse_several(turn, answer, STR("AMBIGUOUS_THREAD"),
                   STR("several users have a thread of this id; say whose it is in "
                       "config.configurable.user_id, or which question in approval_id"));
}

/* The edit does not fit the call; nothing was decided. */
void decide_refuse_misfit(struct turn *turn, struct err *e) {
    err_add(e, "the question stays open");
    http_turn_give_up(&turn->http, e);
}

/* --- /invoke and /stream ------------------------------------------------------------------ */

static void refuse_words(struct turn *turn, const struct pending_view *view) {
    struct buf message;
    buf_init(&message, REPLY_MAX_BYTES);
    buf_append(&message, STR("this session waits for a human's answer to: "));
    buf_append(&message, view->asked.question);
    buf_append(&message, STR(" Answer yes (or ok, approve, ...), no (or refuse, stop, ...), or "
                             "send anything else to /resume"));
    refuse_with(turn, STR("SESSION_WAITING"), buf_str(&message), view, 1);
    buf_done(&message);
}

bool decide_by_turn(struct turn *turn, uint64_t key_mark) {
    const struct runtime_request *request = &turn->request;
    struct err e = {.code = ERR_NONE};
    struct http_turn_words words = {request->text, &e};
    struct pending_answer answer = {
        .name = {turn->http.workspace, request->user, request->session},
        .text = request->text,
        .rule = PENDING_ONLY_ONE,
        .check = http_turn_check_words,
        .check_ctx = &words};
    struct pending_answered answered;
    enum pending_found found;
    if (!session_has_pending(http_turn_sessions(&turn->http), &answer.name)) return false;
    outcome_address(&turn->outcome, request->session, request->wants_text,
                    request->used_thread_id);
    if (http_turn_settle(&turn->http, &answer, key_mark, &found, &answered, &e)) return true;
    if (found == PENDING_REFUSED) {
        decide_refuse_misfit(turn, &e);
    } else if (found == PENDING_UNDECIDED) {
        refuse_words(turn, &answered.stays);
    } else if (found == PENDING_SEVERAL) {
        refuse_several(turn, &answer, STR("SESSION_WAITING"),
                       STR("several runs of this session wait for a human's answer; send it "
                           "to /resume with the approval_id of one"));
    }
    return found != PENDING_NONE;
}

/* --- /resume ------------------------------------------------------------------------------ */

/* The answer decided nothing: repeat the question as the run asked it. */
static void decisions_ask_again(struct turn *turn, const struct pending_view *view) {
    struct event event;
    struct buf body;
    if (!decision_ask_again(view, turn->http.arena, &event)) {
        turn_fail(turn, 422, STR("INVALID_INPUT"),
                  STR("the question is too long to be returned"), STR_EMPTY);
        return;
    }
    turn_report_run(turn, view->run);
    buf_init(&body, REPLY_MAX_BYTES);
    outcome_write(&turn->outcome, &event, &body);
    turn_reply(turn, buf_str(&body));
    buf_done(&body);
}

static void decisions_refuse_unknown(struct turn *turn) {
    struct err e;
    if (turn->approval_run)
        err_set(&e, ERR_NOT_FOUND,
                "no question of this thread has this approval_id; send the one in "
                "metadata.approval of the answer that asked, and that answer's thread_id");
    else
        err_set(&e, ERR_NOT_FOUND,
                "no run of this thread waits for a human: no turn of it is known here; check "
                "thread_id, and whose thread it is (config.configurable.user_id)");
    http_turn_give_up(&turn->http, &e);
}

/* Turns came after the question, if there was one, so it was settled: a session does not go on
 * while a run of it waits. */
static void decisions_refuse_settled(struct turn *turn) {
    struct err e;
    err_set(
        &e, ERR_NOT_FOUND,
        "no run of this thread waits for a human: its newest turn asked nothing, and what an "
        "earlier turn asked was answered already or ended with that turn; to get what came "
        "of it, name the question in approval_id, or repeat the request with its "
        "idempotency key");
    http_turn_give_up(&turn->http, &e);
}

static struct pending_answer resume_of(struct turn *turn) {
    return (struct pending_answer){.name = {turn->http.workspace,
                                            turn->names_user ? turn->request.user : ANY_USER,
                                            turn->resume.thread},
                                   .text = turn->resume.text,
                                   .rule = PENDING_OF_ONE_USER,
                                   .run = turn->approval_run,
                                   .seq = turn->approval_seq,
                                   .asks_again = true};
}

/* Find the question in the run that was named, or the last one of the thread's newest run. */
static void find_question(struct turn *turn, const struct asked_result *result) {
    bool meant = !turn->approval_run ||
                 (turn->approval_run == result->run && turn->approval_seq == result->seq);
    if (meant && result->waits && decide_post(turn, result->run, result->seq)) return;
    if (!turn->approval_run) {
        decide_again(turn, result->run, result->seq);
    } else if (turn->approval_run == result->run && turn->approval_seq <= result->seq) {
        decide_again(turn, result->run, turn->approval_seq);
    } else {
        decisions_refuse_unknown(turn);
    }
}

static void decisions_on_asked(const struct asked_result *result, const struct err *failed,
                               void *ctx) {
    struct turn *turn = ctx;
    struct pending_answer answer = resume_of(turn);
    turn->asked = NULL;
    switch (result->answer) {
    case ASKED_QUESTION: find_question(turn, result); break;
    case ASKED_SEVERAL: refuse_ambiguous(turn, &answer); break;
    case ASKED_UNKNOWN: decisions_refuse_unknown(turn); break;
    case ASKED_NOTHING:
        if (turn->approval_run)
            decisions_refuse_unknown(turn);
        else
            decisions_refuse_settled(turn);
        break;
    case ASKED_FAILED: http_turn_give_up(&turn->http, failed); break;
    }
}

/* No run waits. This may repeat an earlier decision whose sender never got the answer. */
static void look_back(struct turn *turn, const struct pending_answer *answer) {
    if (turn->resume.thread.len == 0) {
        decisions_refuse_unknown(turn);
        return;
    }
    http_turn_watch(&turn->http);
    turn->asked =
        asked_look(&(struct asked_options){.loop = route_loop(turn->http.call),
                                           .sessions = http_turn_sessions(&turn->http),
                                           .name = answer->name,
                                           .run = answer->run,
                                           .on_answer = decisions_on_asked,
                                           .ctx = turn});
}

void decide_by_resume(struct turn *turn, uint64_t key_mark) {
    struct pending_answer answer = resume_of(turn);
    struct pending_answered answered;
    enum pending_found found;
    struct err e = {.code = ERR_NONE};
    outcome_address(&turn->outcome, turn->resume.thread, turn->resume.wants_text, true);
    if (http_turn_settle(&turn->http, &answer, key_mark, &found, &answered, &e)) return;
    if (found == PENDING_REFUSED) {
        decide_refuse_misfit(turn, &e);
    } else if (found == PENDING_UNDECIDED) {
        decisions_ask_again(turn, &answered.stays);
    } else if (found == PENDING_SEVERAL) {
        refuse_ambiguous(turn, &answer);
    } else {
        look_back(turn, &answer);
    }
}

/* --- repeated decisions ------------------------------------------------------------------- */

static struct str words_said(const struct turn *turn) {
    return turn->resumes ? turn->resume.text : turn->request.text;
}

/* Read the question, then the decision on it, which must be the same. */
void decide_compare_from(struct turn *turn, uint64_t run, uint64_t seq, struct str session) {
    struct repeat *repeat = &turn->repeat;
    struct str words = words_said(turn);
    buf_init(&repeat->words, words.len + 1);
    buf_init(&repeat->call_id, 64 * KIB);
    buf_append(&repeat->words, words);
    repeat->seq = seq;
    bool wants_text = turn->resumes ? turn->resume.wants_text : turn->request.wants_text;
    outcome_address(&turn->outcome, turn->resumes ? turn->resume.thread : session, wants_text,
                    turn->resumes || turn->request.used_thread_id);
    http_turn_attach(&turn->http, run, seq - 1);
}

/* If a process died after the key was stored but before the decision was, the question is open
 * again. True: it has been answered now. */
static bool answer_after_all(struct turn *turn, uint64_t run, uint64_t seq) {
    struct live_view view;
    struct err e;
    if (!turn->http.key.len ||
        !directory_find(session_table_directory(http_turn_sessions(&turn->http)), run, &view))
        return false;
    struct http_turn_words words = {words_said(turn), &e};
    const struct pending_answer answer = {.name = {view.workspace, view.user, view.session},
                                          .run = run,
                                          .seq = seq,
                                          .text = words.text,
                                          .check = http_turn_check_words,
                                          .check_ctx = &words};
    struct pending_answered answered;
    bool taken = session_settle(http_turn_sessions(&turn->http), &answer, &answered, &e) ==
                 PENDING_TAKEN;
    if (taken)
        outcome_address(&turn->outcome, view.session,
                        turn->resumes ? turn->resume.wants_text : turn->request.wants_text,
                        turn->resumes || turn->request.used_thread_id);
    live_view_done(&view);
    if (taken) http_turn_read_on(&turn->http, answered.journal, answered.seq);
    return taken;
}

void decide_again(struct turn *turn, uint64_t run, uint64_t seq) {
    if (!answer_after_all(turn, run, seq))
        decide_compare_from(turn, run, seq, turn->request.session);
}

bool decide_compare(struct turn *turn, const struct event *event) {
    struct repeat *repeat = &turn->repeat;
    if (!repeat->seq) return false;
    if (event->kind == EVENT_APPROVAL && event->seq == repeat->seq)
        buf_append(&repeat->call_id, event->approval.call_id);
    repeat->over = event_is_terminal(event->kind);
    bool decided = event->kind == EVENT_TOOL_RESULT &&
                   str_equal(event->tool_result.call_id, buf_str(&repeat->call_id));
    if (!decided) return true;
    repeat->differs = !decision_repeats(event->tool_result.result, buf_str(&repeat->words),
                                        decide_words_of(turn));
    if (!repeat->differs) repeat->seq = 0; /* from now on it is read like any other answer */
    return repeat->differs;
}

struct route_failure decide_difference(const struct turn *turn) {
    if (turn->repeat.differs)
        return (struct route_failure){409, STR("ALREADY_DECIDED"),
                                      STR("this question was answered before, with another "
                                          "decision; the first one counts"),
                                      STR_EMPTY};
    return (struct route_failure){
        404, STR("THREAD_NOT_FOUND"),
        STR("the run of this question was over before anybody answered it"), STR_EMPTY};
}
