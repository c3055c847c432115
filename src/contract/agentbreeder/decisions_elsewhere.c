/* decisions_elsewhere: a human's decision for a run that waits at another replica. It is posted
 * there, and read on in the log once the run goes on. */
#include "contract/agentbreeder/inner.h"
#include "contract/run_summary.h"

/* Another request took the key meanwhile: what came of that one is the answer. */
static void enter_again(struct turn *turn) {
    turn->looked_elsewhere = false;
    http_turn_enter(&turn->http);
}

static void refuse_posted(struct turn *turn, const struct err *why) {
    struct err e = *why;
    if (e.code == ERR_FAILED_PRECONDITION)
        turn_fail(turn, 409, STR("SESSION_WAITING"),
                  STR("this session waits for a human's answer; answer yes (or ok, approve, "
                      "...), no (or refuse, stop, ...), or send anything else to /resume"),
                  STR_EMPTY);
    else if (e.code == ERR_ALREADY_EXISTS)
        enter_again(turn);
    else if (e.code == ERR_INVALID_ARGUMENT)
        decide_refuse_misfit(turn, &e);
    else
        http_turn_give_up(&turn->http, &e);
}

static void on_elsewhere(const struct elsewhere_result *result, const struct err *why,
                         void *ctx) {
    struct turn *turn = ctx;
    turn->elsewhere = NULL;
    switch (result->found) {
    case ELSEWHERE_NONE: turn->http.kind->begin(&turn->http, turn->key_mark); break;
    case ELSEWHERE_DECIDED:
        decide_compare_from(turn, result->run, result->seq, turn->request.session);
        break;
    case ELSEWHERE_REFUSED: refuse_posted(turn, why); break;
    case ELSEWHERE_FAILED: http_turn_give_up(&turn->http, why); break;
    }
}

bool decide_elsewhere(struct turn *turn, uint64_t key_mark) {
    const struct runtime_request *request = &turn->request;
    struct http_turn *http = &turn->http;
    if (turn->looked_elsewhere || request->session.len == 0) return false;
    turn->looked_elsewhere = true;
    turn->key_mark = key_mark;
    turn->elsewhere = elsewhere_start(
        &(struct elsewhere_options){.loop = route_loop(http->call),
                                    .sessions = http_turn_sessions(http),
                                    .name = {http->workspace, request->user, request->session},
                                    .text = request->text,
                                    .key = http->key,
                                    .key_user = http->user,
                                    .print = http->print,
                                    .decides = decide_words_of(turn),
                                    .on_end = on_elsewhere,
                                    .ctx = turn});
    if (turn->elsewhere) http_turn_watch(http);
    return turn->elsewhere != NULL;
}

static void on_posted(const struct err *refused, void *ctx) {
    struct turn *turn = ctx;
    turn->posted = NULL;
    struct err e = {0};
    if (refused) e = *refused;
    if (e.code == ERR_FAILED_PRECONDITION)
        decide_refuse_misfit(turn, &e);
    else if (refused)
        refuse_posted(turn, refused);
    else
        decide_compare_from(turn, turn->approval_run, turn->approval_seq, STR_EMPTY);
}

bool decide_post(struct turn *turn, uint64_t run, uint64_t seq) {
    struct http_turn *http = &turn->http;
    struct session_table *sessions = http_turn_sessions(http);
    struct store *store = session_table_store(sessions);
    if (!store || !store_is_shared(store) ||
        run_is_live(session_table_directory(sessions), run))
        return false;
    turn->approval_run = run;
    turn->approval_seq = seq;
    turn->posted =
        posted_answer_start(&(struct posted_answer_options){.loop = route_loop(http->call),
                                                            .sessions = sessions,
                                                            .workspace = http->workspace,
                                                            .words = {.run = run,
                                                                      .seq = seq,
                                                                      .text = turn->resume.text,
                                                                      .key = http->key,
                                                                      .key_user = http->user,
                                                                      .print = http->print},
                                                            .asks_again = true,
                                                            .on_end = on_posted,
                                                            .ctx = turn});
    return true;
}
