/* Checks of Converse: the events of a turn, failures, and tokens. */
#include "validate/converse.h"

#define ERROR_MARK STR("ERROR:")

static bool is_error(const struct crawbl_done_event *done) {
    return done && str_starts(done->model, ERROR_MARK);
}

static bool converse_checks_is_good(const struct turn_events *turn) {
    return turn->done && !is_error(turn->done);
}

/* Whether a good turn is answered; else the check is skipped, because CONV-01 says so. */
static bool converse_answers(struct judge *judge) {
    struct turn_events turn = scene_turn(converse_scene(judge, SCENE_TURNS), 0);
    return converse_checks_is_good(&turn) ||
           judge_skip(judge, "a turn is not answered (CONV-01)");
}

static void judge_good(struct judge *judge, const struct scene *scene, size_t index,
                       const char *what) {
    struct turn_events turn = scene_turn(scene, index);
    char end[TALK_END_BYTES];
    if (scene->undecodable)
        judge_break(judge, &scene->talk.evidence,
                    "expected ConverseEvents, got another message");
    else if (!turn.done)
        judge_break(judge, &scene->talk.evidence, "expected %s, got no DoneEvent; the end: %s",
                    what, talk_end(&scene->talk, end));
    else if (is_error(turn.done))
        judge_break(judge, &scene->talk.evidence, "expected %s, got the failure '" STR_FMT "'",
                    what, STR_ARG(str_head(turn.done->model, 200)));
}

/* --- the events of a turn -------------------------------------------------------------------------- */

void check_turn_done(struct judge *judge) {
    judge_good(judge, converse_scene(judge, SCENE_TURNS), 0,
               "a turn that ends with a DoneEvent");
}

static size_t count_dones(const struct scene *scene) {
    size_t dones = 0;
    for (size_t i = 0; i < scene->count; i++)
        dones += scene->events[i].which_event == CRAWBL_CONVERSE_EVENT_DONE;
    return dones;
}

void check_turn_one_done(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_HALF_CLOSED);
    if (!converse_answers(judge)) return;
    size_t dones = count_dones(scene);
    if (dones > 1)
        judge_break(judge, &scene->talk.evidence,
                    "expected one DoneEvent for one request, got %zu", dones);
    else if (dones && scene->events[scene->count - 1].which_event != CRAWBL_CONVERSE_EVENT_DONE)
        judge_break(judge, &scene->talk.evidence, "expected nothing after the DoneEvent");
}

void check_turn_kinds(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    if (!converse_answers(judge)) return;
    for (size_t i = 0; i < scene->count; i++) {
        if (!scene->events[i].which_event)
            judge_break(judge, &scene->talk.evidence,
                        "expected one kind in each event, got none");
    }
}

static void judge_usage(struct judge *judge, const struct scene *scene, size_t index) {
    struct turn_events turn = scene_turn(scene, index);
    int32_t next = 0;
    for (size_t i = 0; i < turn.count; i++) {
        if (turn.at[i].which_event != CRAWBL_CONVERSE_EVENT_USAGE) continue;
        if (turn.at[i].usage->call_sequence != next)
            judge_break(judge, &scene->talk.evidence,
                        "expected call_sequence %d in turn %zu, got %d", next, index + 1,
                        turn.at[i].usage->call_sequence);
        next++;
    }
    if (next == 0)
        judge_break(judge, &scene->talk.evidence,
                    "expected a UsageEvent for each model call, got none in turn %zu",
                    index + 1);
}

void check_turn_usage(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    if (!converse_answers(judge)) return;
    judge_usage(judge, scene, 0);
    if (scene_turn(scene, 1).done) judge_usage(judge, scene, 1);
}

/* --- tools --------------------------------------------------------------------------------------------- */

static bool converse_checks_is_call(const struct crawbl_converse_event *event) {
    return event->which_event == CRAWBL_CONVERSE_EVENT_TOOL_CALL;
}

static bool is_result(const struct crawbl_converse_event *event) {
    return event->which_event == CRAWBL_CONVERSE_EVENT_TOOL_RESULT;
}

static size_t count_calls(const struct turn_events *turn, size_t from, size_t to,
                          struct str id) {
    size_t count = 0;
    for (size_t i = from; i < to; i++)
        count += converse_checks_is_call(&turn->at[i]) &&
                 str_equal(turn->at[i].tool_call->call_id, id);
    return count;
}

static size_t count_results(const struct turn_events *turn, size_t from, struct str id) {
    size_t count = 0;
    for (size_t i = from; i < turn->count; i++)
        count += is_result(&turn->at[i]) && str_equal(turn->at[i].tool_result->call_id, id);
    return count;
}

void check_turn_tools(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    struct turn_events turn = scene_turn(scene, 0);
    size_t calls = 0;
    if (!converse_answers(judge)) return;
    for (size_t i = 0; i < turn.count; i++) {
        const struct crawbl_converse_event *event = &turn.at[i];
        if (converse_checks_is_call(event)) {
            struct str id = event->tool_call->call_id;
            calls++;
            if (!id.len || count_calls(&turn, 0, turn.count, id) != 1)
                judge_break(judge, &scene->talk.evidence,
                            "expected a call_id of its own for each call");
            else if (count_results(&turn, i + 1, id) != 1)
                judge_break(judge, &scene->talk.evidence,
                            "expected one result after the call '" STR_FMT "', got %zu",
                            STR_ARG(str_head(id, 100)), count_results(&turn, i + 1, id));
        } else if (is_result(event) && !count_calls(&turn, 0, i, event->tool_result->call_id)) {
            judge_break(judge, &scene->talk.evidence,
                        "expected a call before the result '" STR_FMT "'",
                        STR_ARG(str_head(event->tool_result->call_id, 100)));
        }
    }
    if (!calls)
        judge_skip(judge, "the agent called no tool: give an --input that makes it call one");
}

static void judge_object(struct judge *judge, const struct scene *scene, const char *what,
                         struct str text) {
    struct json value;
    struct err e;
    if (!json_read(text, &value, &e) || value.kind != JSON_OBJECT)
        judge_break(judge, &scene->talk.evidence,
                    "expected a JSON object as %s, got '" STR_FMT "'", what,
                    STR_ARG(str_head(text, 200)));
}

void check_turn_json(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    size_t seen = 0;
    if (!converse_answers(judge)) return;
    for (size_t i = 0; i < scene->count; i++) {
        const struct crawbl_converse_event *event = &scene->events[i];
        seen += converse_checks_is_call(event);
        if (converse_checks_is_call(event))
            judge_object(judge, scene, "args_json", event->tool_call->args_json);
        if (is_result(event))
            judge_object(judge, scene, "result_json", event->tool_result->result_json);
    }
    if (!seen)
        judge_skip(judge, "the agent called no tool: give an --input that makes it call one");
}

/* --- text ------------------------------------------------------------------------------------------------ */

static struct str trimmed_end(struct str text) {
    while (text.len && (unsigned char)text.at[text.len - 1] <= ' ') text.len--;
    return text;
}

/* checks.md K30: chunks end with the reply that ended the turn. */
void check_turn_text(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    struct turn_events turn = scene_turn(scene, 0);
    struct buf text;
    if (!converse_answers(judge)) return;
    buf_init(&text, TALK_MAX_BYTES);
    for (size_t i = 0; i < turn.count; i++) {
        if (turn.at[i].which_event == CRAWBL_CONVERSE_EVENT_CHUNK)
            buf_append(&text, turn.at[i].chunk->text);
    }
    const struct crawbl_done_event *done = turn.done;
    struct str last = done->turns_count ? done->turns[done->turns_count - 1].text : STR_EMPTY;
    if (text.len && !done->turns_count)
        judge_break(judge, &scene->talk.evidence,
                    "expected the text of the chunks in turns too, got no turns");
    else if (!text.len && last.len)
        judge_break(judge, &scene->talk.evidence,
                    "expected the text of turns in chunks too, got none");
    else if (!str_ends(trimmed_end(buf_str(&text)), trimmed_end(last)))
        judge_break(judge, &scene->talk.evidence,
                    "expected the chunks to end with the text of the last turn");
    buf_done(&text);
}

static struct str speaker_of(const struct crawbl_converse_event *event) {
    switch (event->which_event) {
    case CRAWBL_CONVERSE_EVENT_CHUNK: return event->chunk->agent_id;
    case CRAWBL_CONVERSE_EVENT_THINKING: return event->thinking->agent_id;
    case CRAWBL_CONVERSE_EVENT_TOOL_CALL: return event->tool_call->agent_id;
    case CRAWBL_CONVERSE_EVENT_USAGE: return event->usage->agent_id;
    default: return STR("-");
    }
}

void check_turn_speakers(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    if (!converse_answers(judge)) return;
    for (size_t i = 0; i < scene->count; i++) {
        const struct crawbl_converse_event *event = &scene->events[i];
        if (!speaker_of(event).len)
            judge_break(judge, &scene->talk.evidence,
                        "expected an agent_id on each event, got none");
        for (size_t t = 0;
             event->which_event == CRAWBL_CONVERSE_EVENT_DONE && t < event->done->turns_count;
             t++) {
            if (!event->done->turns[t].agent_id.len)
                judge_break(judge, &scene->talk.evidence, "expected an agent_id in each turn");
        }
    }
}

void check_turn_models(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    if (!converse_answers(judge)) return;
    for (size_t i = 0; i < scene->count; i++) {
        const struct crawbl_converse_event *event = &scene->events[i];
        bool unnamed =
            (event->which_event == CRAWBL_CONVERSE_EVENT_USAGE && !event->usage->model.len) ||
            (event->which_event == CRAWBL_CONVERSE_EVENT_DONE && !event->done->model.len);
        if (unnamed)
            judge_break(judge, &scene->talk.evidence,
                        "expected the id of the model, got an empty text");
    }
}

/* --- the life of a stream ---------------------------------------------------------------------------------- */

void check_turn_reuse(struct judge *judge) {
    if (converse_answers(judge))
        judge_good(judge, converse_scene(judge, SCENE_TURNS), 1,
                   "a second turn on the same stream");
}

static void judge_ok(struct judge *judge, const struct scene *scene, const char *when) {
    char end[TALK_END_BYTES];
    if (!talk_ended_with(&scene->talk, ERR_NONE))
        judge_break(judge, &scene->talk.evidence, "expected the status OK %s, got %s", when,
                    talk_end(&scene->talk, end));
}

void check_turn_end(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_TURNS);
    struct turn_events turn = scene_turn(scene, 1);
    if (!converse_answers(judge)) return;
    if (!turn.done)
        judge_skip(judge, "there is no second turn after which to end (CONV-10)");
    else
        judge_ok(judge, scene, "after the client's end between two turns");
}

void check_turn_half_close(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_HALF_CLOSED);
    if (!converse_answers(judge)) return;
    judge_good(judge, scene, 0, "the turn to be finished after the client's end");
    judge_ok(judge, scene, "after the turn");
}

void check_turn_at_once(struct judge *judge) {
    const struct scene *scene = converse_scene(judge, SCENE_AT_ONCE);
    if (!converse_answers(judge)) return;
    size_t dones = count_dones(scene);
    if (dones < 2)
        judge_break(
            judge, &scene->talk.evidence,
            "expected both of two requests sent together to be answered in turn, got %zu "
            "DoneEvents",
            dones);
}

void check_turn_left(struct judge *judge) {
    if (!converse_answers(judge)) return;
    (void)converse_scene(judge, SCENE_LEFT);
    judge_good(judge, converse_scene(judge, SCENE_AFTER_LEFT), 0,
               "a turn of the same session after another one was cancelled");
}

/* --- failures -------------------------------------------------------------------------------------------------- */

/* "ERROR: INVALID_ARGUMENT: why". Upstream's spelling is InvalidArgument. */
static void judge_error_form(struct judge *judge, const struct scene *scene,
                             const struct crawbl_done_event *done) {
    struct str text, rest = str_trim(str_skip(done->model, ERROR_MARK.len));
    struct str name = str_split(rest, ':', &text);
    enum err_code code = err_code_named(name);
    bool known = code != ERR_UNKNOWN || str_equal_nocase(name, STR("UNKNOWN"));
    if (!known || !text.at)
        judge_break(judge, &scene->talk.evidence,
                    "expected 'ERROR: CODE: text' with a code of gRPC, got '" STR_FMT "'",
                    STR_ARG(str_head(done->model, 200)));
    else if (done->turns_count)
        judge_break(judge, &scene->talk.evidence, "expected no turns in a failure, got %zu",
                    done->turns_count);
    else if (!str_equal(name, err_name(code)))
        judge_warn(judge, &scene->talk.evidence, "expected the code as %s, got '" STR_FMT "'",
                   err_kinds[code].name, STR_ARG(name));
}

void check_failure_form(struct judge *judge) {
    static const enum scene_id scenes[] = {SCENE_FAILS, SCENE_NO_MESSAGE, SCENE_NO_SESSION,
                                           SCENE_NO_AGENT, SCENE_NO_IDS};
    size_t seen = 0;
    if (!converse_answers(judge)) return;
    for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
        if (scenes[i] == SCENE_FAILS && !judge->options->error_input.len) continue;
        const struct scene *scene = converse_scene(judge, scenes[i]);
        struct turn_events turn = scene_turn(scene, 0);
        if (!is_error(turn.done)) continue;
        seen++;
        judge_error_form(judge, scene, turn.done);
    }
    if (!seen) judge_skip(judge, "there was no failure to look at");
}

/* A failure with this code, after which the stream goes on. */
static void judge_failure(struct judge *judge, enum scene_id id, enum err_code code,
                          const char *of) {
    const struct scene *scene = converse_scene(judge, id);
    struct turn_events turn = scene_turn(scene, 0);
    char end[TALK_END_BYTES];
    if (!converse_answers(judge)) return;
    if (!turn.done) {
        judge_break(judge, &scene->talk.evidence,
                    "expected a DoneEvent with ERROR: for %s, got %s", of,
                    talk_end(&scene->talk, end));
        return;
    }
    struct str rest = str_trim(str_skip(turn.done->model, ERROR_MARK.len)), text;
    if (!is_error(turn.done))
        judge_break(judge, &scene->talk.evidence, "expected ERROR: %s for %s, got an answer",
                    err_kinds[code].name, of);
    else if (err_code_named(str_split(rest, ':', &text)) != code)
        judge_break(judge, &scene->talk.evidence,
                    "expected ERROR: %s for %s, got '" STR_FMT "'", err_kinds[code].name, of,
                    STR_ARG(str_head(turn.done->model, 200)));
}

void check_failure_message(struct judge *judge) {
    judge_failure(judge, SCENE_NO_MESSAGE, ERR_INVALID_ARGUMENT, "an empty message");
}

void check_failure_session(struct judge *judge) {
    judge_failure(judge, SCENE_NO_SESSION, ERR_INVALID_ARGUMENT, "an empty session_id");
}

void check_failure_agent(struct judge *judge) {
    judge_failure(judge, SCENE_NO_AGENT, ERR_NOT_FOUND, "an agent that is unknown");
}

void check_failure_ids(struct judge *judge) {
    judge_failure(judge, SCENE_NO_IDS, ERR_INVALID_ARGUMENT,
                  "a first request without workspace_id and user_id");
}

void check_failure_workspace(struct judge *judge) {
    struct converse *converse = converse_of(judge);
    if (!converse->keys && !judge->options->token.len)
        judge_skip(judge, "there is no token that names a workspace");
    else
        judge_failure(judge, SCENE_OTHER_WORKSPACE, ERR_PERMISSION_DENIED,
                      "a workspace that is not the token's");
}

/* A failure is no end of the stream. */
void check_failure_stream(struct judge *judge) {
    bool fails = judge->options->error_input.len;
    const struct scene *scene = converse_scene(judge, fails ? SCENE_FAILS : SCENE_NO_MESSAGE);
    struct turn_events turn = scene_turn(scene, 0);
    char end[TALK_END_BYTES];
    if (!converse_answers(judge)) return;
    if (!turn.done)
        judge_break(judge, &scene->talk.evidence,
                    "expected a failed turn to end with a DoneEvent, not the stream, got %s",
                    talk_end(&scene->talk, end));
    else if (fails && !is_error(turn.done))
        judge_break(judge, &scene->talk.evidence,
                    "expected the error input to fail, got an answer");
    else
        judge_good(judge, scene, 1, "a turn on the same stream after one that failed");
}

/* --- tokens ---------------------------------------------------------------------------------------------------- */

static bool has_keys(struct judge *judge) {
    if (judge->options->no_auth_probe) return judge_skip(judge, "--no-auth-probe");
    return converse_of(judge)->keys ||
           judge_skip(judge, "there is no key to sign with: set CRAWBL_MCP_SIGNING_KEY");
}

static bool has_any_token(struct judge *judge) {
    if (judge->options->no_auth_probe) return judge_skip(judge, "--no-auth-probe");
    return converse_of(judge)->keys || judge->options->token.len ||
           judge_skip(judge, "there is no token to compare with: set CRAWBL_MCP_SIGNING_KEY");
}

static void judge_refused(struct judge *judge, enum scene_id id, const char *what) {
    const struct scene *scene = converse_scene(judge, id);
    char end[TALK_END_BYTES];
    if (!talk_ended_with(&scene->talk, ERR_UNAUTHENTICATED))
        judge_break(judge, &scene->talk.evidence, "expected UNAUTHENTICATED for %s, got %s",
                    what, talk_end(&scene->talk, end));
}

void check_token_missing(struct judge *judge) {
    if (has_any_token(judge)) judge_refused(judge, SCENE_NO_TOKEN, "a call without a token");
}

void check_token_garbage(struct judge *judge) {
    if (has_any_token(judge)) judge_refused(judge, SCENE_GARBAGE, "what is no token");
}

void check_token_forged(struct judge *judge) {
    if (has_keys(judge)) judge_refused(judge, SCENE_FORGED, "a token signed with another key");
}

void check_token_expired(struct judge *judge) {
    if (has_keys(judge)) judge_refused(judge, SCENE_EXPIRED, "a token that is an hour old");
}

void check_token_future(struct judge *judge) {
    if (has_keys(judge)) judge_refused(judge, SCENE_FUTURE, "a token of the next hour");
}

void check_token_scheme(struct judge *judge) {
    if (has_any_token(judge))
        judge_refused(judge, SCENE_OTHER_SCHEME, "another scheme than Bearer");
}

void check_token_case(struct judge *judge) {
    if (has_any_token(judge) && converse_answers(judge))
        judge_good(judge, converse_scene(judge, SCENE_LOWER_CASE), 0,
                   "a turn with the scheme in lower case");
}

void check_token_twice(struct judge *judge) {
    if (has_any_token(judge))
        judge_refused(judge, SCENE_TWO_TOKENS, "two tokens, of which the second is wrong");
}

void check_token_health(struct judge *judge) {
    struct talk talk;
    char end[TALK_END_BYTES];
    converse_call(converse_of(judge), "/grpc.health.v1.Health/Check", STR_EMPTY, STR_EMPTY,
                  &talk);
    if (talk_ended_with(&talk, ERR_UNIMPLEMENTED))
        judge_skip(judge, "the health service is not served");
    else if (!talk_ended_with(&talk, ERR_NONE))
        judge_break(judge, NULL, "expected OK from Health/Check without a token, got %s",
                    talk_end(&talk, end));
    talk_done(&talk);
}

void check_token_unknown(struct judge *judge) {
    struct talk talk;
    char end[TALK_END_BYTES];
    converse_call(converse_of(judge), "/crawbl.agentruntime.v1.AgentRuntime/NoSuchMethod",
                  STR_EMPTY, STR_EMPTY, &talk);
    if (!talk_ended_with(&talk, ERR_UNIMPLEMENTED))
        judge_break(judge, NULL, "expected UNIMPLEMENTED for an unknown method, got %s",
                    talk_end(&talk, end));
    talk_done(&talk);
}

void check_token_memory(struct judge *judge) {
    struct talk talk;
    char end[TALK_END_BYTES];
    if (!has_any_token(judge)) return;
    converse_call(converse_of(judge), "/crawbl.agentruntime.v1.Memory/ListMemories", STR_EMPTY,
                  STR_EMPTY, &talk);
    if (talk_ended_with(&talk, ERR_UNIMPLEMENTED))
        judge_skip(judge, "the Memory service is not served (MEMO-01)");
    else if (!talk_ended_with(&talk, ERR_UNAUTHENTICATED))
        judge_break(judge, NULL,
                    "expected UNAUTHENTICATED for ListMemories without a token, got %s",
                    talk_end(&talk, end));
    talk_done(&talk);
}
