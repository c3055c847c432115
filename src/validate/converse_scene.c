#include "base/clock.h"
#include "base/mem.h"
#include "validate/converse.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define CONVERSE "/crawbl.agentruntime.v1.AgentRuntime/Converse"
#define OLD_S 3600 /* far outside of any window */
#define SILENT_MAX 2
#define NOT_PLAYED "two streams before it did not end in time, so this one was not tried"

enum scene_auth {
    TOKEN_RIGHT,
    TOKEN_NONE,
    TOKEN_GARBAGE,
    TOKEN_OTHER_KEY,
    TOKEN_OLD,
    TOKEN_NEW,
    TOKEN_BASIC,
    TOKEN_LOWER,
    TOKEN_TWICE,
};

/* What differs from a good request. */
enum wrong { FINE, FAILING, NO_MESSAGE, NO_SESSION, NO_AGENT, NO_IDS, OTHER_WORKSPACE };

static const struct scene_row {
    enum scene_auth auth;
    size_t requests;
    enum wrong first;
    bool together; /* all requests are sent before the first answer */
    bool finish;   /* ... and no more are announced at once */
    bool leave;    /* at the first event */
} rows[SCENE_COUNT] = {
    [SCENE_TURNS] = {.requests = 2},
    [SCENE_HALF_CLOSED] = {.requests = 1, .together = true, .finish = true},
    [SCENE_AT_ONCE] = {.requests = 2, .together = true, .finish = true},
    [SCENE_LEFT] = {.requests = 1, .leave = true},
    [SCENE_AFTER_LEFT] = {.requests = 1},
    [SCENE_FAILS] = {.requests = 2, .first = FAILING},
    [SCENE_NO_MESSAGE] = {.requests = 2, .first = NO_MESSAGE},
    [SCENE_NO_SESSION] = {.requests = 2, .first = NO_SESSION},
    [SCENE_NO_AGENT] = {.requests = 2, .first = NO_AGENT},
    [SCENE_NO_IDS] = {.requests = 2, .first = NO_IDS},
    [SCENE_OTHER_WORKSPACE] = {.requests = 2, .first = OTHER_WORKSPACE},
    [SCENE_NO_TOKEN] = {.requests = 1, .auth = TOKEN_NONE},
    [SCENE_GARBAGE] = {.requests = 1, .auth = TOKEN_GARBAGE},
    [SCENE_FORGED] = {.requests = 1, .auth = TOKEN_OTHER_KEY},
    [SCENE_EXPIRED] = {.requests = 1, .auth = TOKEN_OLD},
    [SCENE_FUTURE] = {.requests = 1, .auth = TOKEN_NEW},
    [SCENE_OTHER_SCHEME] = {.requests = 1, .auth = TOKEN_BASIC},
    [SCENE_LOWER_CASE] = {.requests = 1, .auth = TOKEN_LOWER},
    [SCENE_TWO_TOKENS] = {.requests = 1, .auth = TOKEN_TWICE},
};

/* --- tokens ---------------------------------------------------------------------------------------- */

static void mint(const struct converse *converse, const struct token_keys *keys,
                 int64_t shift_s, struct buf *out) {
    struct err e;
    bool minted = token_mint(keys, converse->options->user, converse->options->workspace,
                             clock_unix_ms() / 1000 + shift_s, out, &e);
    (void)minted; /* the command line was checked for it */
}

static bool has_token(const struct converse *converse) {
    return converse->keys || converse->options->token.len;
}

static void put_token(const struct converse *converse, struct buf *out) {
    if (converse->keys)
        mint(converse, converse->keys, 0, out);
    else
        buf_append(out, converse->options->token);
}

void converse_put_bearer(const struct converse *converse, struct buf *out) {
    if (!has_token(converse)) return;
    buf_append(out, STR("Bearer "));
    put_token(converse, out);
}

static void put_authorization(const struct converse *converse, enum scene_auth auth,
                              struct buf *out) {
    switch (auth) {
    case TOKEN_RIGHT:
    case TOKEN_TWICE: converse_put_bearer(converse, out); return;
    case TOKEN_NONE: return;
    case TOKEN_GARBAGE: buf_append(out, STR("Bearer weir-validate-wrong-token")); return;
    case TOKEN_BASIC: buf_append(out, STR("Basic dTpw")); return;
    case TOKEN_LOWER:
        buf_append(out, STR("bearer "));
        put_token(converse, out);
        return;
    case TOKEN_OTHER_KEY:
    case TOKEN_OLD:
    case TOKEN_NEW: break;
    }
    buf_append(out, STR("Bearer "));
    mint(converse, auth == TOKEN_OTHER_KEY ? converse->other_keys : converse->keys,
         auth == TOKEN_OLD   ? -OLD_S
         : auth == TOKEN_NEW ? OLD_S
                             : 0,
         out);
}

/* --- requests -------------------------------------------------------------------------------------- */

static void converse_scene_say(struct converse *converse, struct scene *scene,
                               enum wrong wrong) {
    struct str user = converse->options->user, workspace = converse->options->workspace;
    struct crawbl_converse_request request = {.session_id = str_from(converse->session),
                                              .message = buf_str(&converse->message),
                                              .workspace_id = workspace,
                                              .user_id = user};
    static const char *const notes[] = {
        [FINE] = "",
        [FAILING] = " (the error input)",
        [NO_MESSAGE] = " without a message",
        [NO_SESSION] = " without a session_id",
        [NO_AGENT] = " for the agent weir-validate-nobody",
        [NO_IDS] = " without workspace_id and user_id",
        [OTHER_WORKSPACE] = " for another workspace than the token's",
    };
    struct buf bytes;
    if (wrong == FAILING) request.message = buf_str(&converse->error_message);
    if (wrong == NO_MESSAGE) request.message = STR_EMPTY;
    if (wrong == NO_SESSION) request.session_id = STR_EMPTY;
    if (wrong == NO_AGENT) request.agent_id = STR("weir-validate-nobody");
    if (wrong == NO_IDS) request.workspace_id = request.user_id = STR_EMPTY;
    if (wrong == OTHER_WORKSPACE) request.workspace_id = STR("weir-validate-other");
    buf_init(&bytes, 2 * TALK_TEXT_MAX_BYTES);
    pb_encode(&crawbl_converse_request_table, &request, &bytes);
    talk_say(&scene->talk, buf_str(&bytes));
    scene->began[scene->requests++] = scene->talk.count;
    buf_printf(&scene->talk.sent_text, "%sConverseRequest%s", scene->requests > 1 ? "\n" : "",
               notes[wrong]);
    buf_done(&bytes);
}

/* --- playing a scene ------------------------------------------------------------------------------- */

static bool is_done(struct str bytes) {
    struct arena *arena = arena_new(TALK_DECODED_MAX_BYTES);
    struct crawbl_converse_event event;
    struct err e;
    bool done = pb_decode_view(&crawbl_converse_event_table, bytes, arena, &event, &e) &&
                event.which_event == CRAWBL_CONVERSE_EVENT_DONE;
    arena_free(arena);
    return done;
}

static bool has_done(const struct talk *talk, void *ctx) {
    const size_t *from = ctx;
    return talk->count > *from && is_done(talk->messages[talk->count - 1]);
}

static bool has_event(const struct talk *talk, void *ctx) {
    (void)ctx;
    return talk->count > 0;
}

static void converse_scene_play(struct converse *converse, struct scene *scene,
                                const struct scene_row *row) {
    uint64_t timeout_ms = converse->options->timeout_ms;
    bool in_time = true;
    for (size_t i = 0; i < row->requests && in_time && !scene->talk.ended; i++) {
        converse_scene_say(converse, scene, i ? FINE : row->first);
        if (row->together) continue;
        size_t from = scene->began[i];
        in_time = talk_wait(&scene->talk, row->leave ? has_event : has_done, &from, timeout_ms);
    }
    if (row->leave) {
        talk_leave(&scene->talk);
        return;
    }
    talk_finish(&scene->talk);
    if (in_time) in_time = talk_wait(&scene->talk, NULL, NULL, timeout_ms * row->requests);
    talk_leave(&scene->talk);
    if (!in_time) converse->silent++;
}

/* --- what people are shown --------------------------------------------------------------------------- */

static void describe_event(const struct crawbl_converse_event *event, struct buf *out) {
    size_t most = 200;
    switch (event->which_event) {
    case CRAWBL_CONVERSE_EVENT_CHUNK:
        buf_printf(out, "chunk " STR_FMT " '" STR_FMT "'\n", STR_ARG(event->chunk->agent_id),
                   STR_ARG(str_head(event->chunk->text, most)));
        return;
    case CRAWBL_CONVERSE_EVENT_THINKING:
        buf_printf(out, "thinking " STR_FMT "\n", STR_ARG(event->thinking->agent_id));
        return;
    case CRAWBL_CONVERSE_EVENT_TOOL_CALL:
        buf_printf(out, "tool_call " STR_FMT " " STR_FMT " id '" STR_FMT "' " STR_FMT "\n",
                   STR_ARG(event->tool_call->agent_id), STR_ARG(event->tool_call->tool),
                   STR_ARG(event->tool_call->call_id),
                   STR_ARG(str_head(event->tool_call->args_json, most)));
        return;
    case CRAWBL_CONVERSE_EVENT_TOOL_RESULT:
        buf_printf(out, "tool_result id '" STR_FMT "' " STR_FMT "\n",
                   STR_ARG(event->tool_result->call_id),
                   STR_ARG(str_head(event->tool_result->result_json, most)));
        return;
    case CRAWBL_CONVERSE_EVENT_USAGE:
        buf_printf(out, "usage " STR_FMT " '" STR_FMT "' sequence %d\n",
                   STR_ARG(event->usage->agent_id), STR_ARG(event->usage->model),
                   event->usage->call_sequence);
        return;
    case CRAWBL_CONVERSE_EVENT_DONE:
        buf_printf(out, "done '" STR_FMT "' with %zu turns\n",
                   STR_ARG(str_head(event->done->model, most)), event->done->turns_count);
        return;
    default: buf_append(out, STR("an event without content\n"));
    }
}

static void converse_scene_describe(struct scene *scene) {
    struct buf text;
    buf_init(&text, 2 * FINDING_SEEN_MAX_BYTES);
    for (size_t i = 0; i < scene->count; i++) describe_event(&scene->events[i], &text);
    if (scene->undecodable) buf_append(&text, STR("a message that is no ConverseEvent\n"));
    buf_append(&text, STR("end: "));
    talk_describe_end(&scene->talk, &text);
    talk_show(&scene->talk, buf_str(&text));
    buf_done(&text);
}

/* --- scenes ------------------------------------------------------------------------------------------ */

static void open_scene(struct converse *converse, struct scene *scene, enum scene_auth auth) {
    struct buf value, second;
    struct grpc_metadata metadata[2];
    size_t count = 0;
    buf_init(&value, 64 * KIB);
    buf_init(&second, 64 * KIB);
    put_authorization(converse, auth, &value);
    if (value.len)
        metadata[count++] = (struct grpc_metadata){STR("authorization"), buf_str(&value)};
    if (auth == TOKEN_TWICE) {
        put_authorization(converse, TOKEN_GARBAGE, &second);
        metadata[count++] = (struct grpc_metadata){STR("authorization"), buf_str(&second)};
    }
    talk_open(converse->target->asker,
              &(struct talk_options){.url = buf_str(&converse->target->url),
                                     .path = STR(CONVERSE),
                                     .metadata = metadata,
                                     .metadata_count = count},
              &scene->talk);
    buf_done(&value);
    buf_done(&second);
}

const struct scene *converse_scene(struct judge *judge, enum scene_id id) {
    struct converse *converse = converse_of(judge);
    struct scene *scene = &converse->scenes[id];
    if (scene->not_played) judge_skip(judge, NOT_PLAYED);
    if (converse->played[id]) return scene;
    if (converse->silent < SILENT_MAX) {
        open_scene(converse, scene, rows[id].auth);
        converse_scene_play(converse, scene, &rows[id]);
    } else {
        talk_none(converse->target->asker, &scene->talk);
        scene->not_played = true;
        judge_skip(judge, NOT_PLAYED);
    }
    const void *events;
    scene->count = talk_decode(&scene->talk, &crawbl_converse_event_table, &events);
    scene->events = events;
    scene->undecodable = scene->count < scene->talk.count;
    converse_scene_describe(scene);
    converse->played[id] = true;
    return scene;
}

struct turn_events scene_turn(const struct scene *scene, size_t index) {
    struct turn_events turn = {.count = 0};
    size_t from = index < scene->requests ? scene->began[index] : scene->count;
    if (from > scene->count) from = scene->count;
    turn.at = scene->events + from;
    while (from + turn.count < scene->count && !turn.done) {
        const struct crawbl_converse_event *event = &turn.at[turn.count++];
        if (event->which_event == CRAWBL_CONVERSE_EVENT_DONE) turn.done = event->done;
    }
    return turn;
}

void converse_call(const struct converse *converse, const char *path, struct str authorization,
                   struct str message, struct talk *ret) {
    const struct grpc_metadata metadata = {STR("authorization"), authorization};
    talk_once(converse->target->asker,
              &(struct talk_options){.url = buf_str(&converse->target->url),
                                     .path = str_from(path),
                                     .metadata = &metadata,
                                     .metadata_count = authorization.len ? 1 : 0},
              message, converse->options->timeout_ms, ret);
}

/* --- the world ----------------------------------------------------------------------------------------- */

struct converse *converse_of(const struct judge *judge) {
    return judge->world;
}

static struct token_keys *keys_of(struct str key) {
    struct token_keys *keys = token_keys_new(TOKEN_STRICT, TOKEN_WINDOW_S);
    struct err e;
    bool trimmed;
    if (token_keys_add(keys, key, &trimmed, &e)) return keys;
    token_keys_free(keys);
    return NULL;
}

void *converse_open(struct target *target, const struct validate_options *options) {
    struct converse *converse = MEM_NEW(struct converse);
    uint32_t random = 0;
    ssize_t got = getrandom(&random, sizeof(random), 0);
    assert(got == sizeof(random));
    (void)got;
    converse->target = target;
    converse->options = options;
    if (options->signing_key.len) converse->keys = keys_of(options->signing_key);
    converse->other_keys = keys_of(STR("weir-validate-is-not-the-key"));
    talk_put_message(options->input, &converse->message);
    talk_put_message(options->error_input, &converse->error_message);
    snprintf(converse->session, sizeof(converse->session), "validate-%08x", random);
    if (target->kind != TARGET_URL)
        talk_until_available(
            target->asker,
            &(struct talk_options){.url = buf_str(&target->url), .path = STR(CONVERSE)},
            options->boot_timeout_ms);
    return converse;
}

void converse_close(void *world) {
    struct converse *converse = world;
    for (size_t i = 0; i < SCENE_COUNT; i++) {
        if (converse->played[i]) talk_done(&converse->scenes[i].talk);
    }
    token_keys_free(converse->keys);
    token_keys_free(converse->other_keys);
    buf_done(&converse->message);
    buf_done(&converse->error_message);
    free(converse);
}

bool converse_speaks(struct target *target, const struct validate_options *options) {
    return talk_serves(
        target->asker,
        &(struct talk_options){.url = buf_str(&target->url), .path = STR(CONVERSE)},
        options->timeout_ms < 5000 ? options->timeout_ms : 5000);
}
