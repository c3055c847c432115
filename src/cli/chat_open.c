/* Where the agent is, and which session is gone on with. */
#include "cli/chat.h"
#include "toolserver/sessions.h"

#include <time.h>
#include <unistd.h>

#define ANSWER_MAX_BYTES (64 * MIB)
#define NAME_MAX_BYTES 1024

/* --- the daemon --------------------------------------------------------------------------- */

static bool chat_open_answers(const struct chat *chat) {
    struct buf answer;
    struct err e;
    buf_init(&answer, 64 * KIB);
    bool there =
        ask_target_whole(&chat->target, STR("GET"), STR("/health"), STR_EMPTY, &answer, &e);
    buf_done(&answer);
    return there;
}

/* With the settings of this command, its store among them. */
static bool start_own(struct chat *chat, struct err *e) {
    const struct chat_options *options = chat->options;
    const struct own_daemon_options own = {
        .config = options->config,
        .arg_count = options->arg_count,
        .args = options->args,
        .more = {"--log-level", "error", "--mcp-server=true"}, /* a weir mcp may come */
        .alone = options->alone};
    if (!own_daemon_start(&chat->own, &own, &chat->target, e)) return false;
    chat->alone = chat->own.process > 0;
    return true;
}

static bool find_daemon(struct chat *chat, struct err *e) {
    const struct chat_options *options = chat->options;
    struct err none;
    bool named = !options->alone && daemon_url(options->url);
    bool found =
        daemon_target_find(options->config, options->url, options->token, &chat->target, &none);
    if (named && !found) *e = none;
    if (named) return found; /* its refusals say more than ours */
    if (!options->alone && found && chat_open_answers(chat)) return true;
    return start_own(chat, e);
}

/* --- the session -------------------------------------------------------------------------- */

/* "chat-20261126-0215-3f9a": to be read, and not met twice. */
void chat_new_session(struct chat *chat) {
    char id[TOOLSERVER_SESSION_BYTES] = "", when[32] = "";
    struct tm tm;
    struct err e;
    time_t now = time(NULL);
    if (localtime_r(&now, &tm)) (void)strftime(when, sizeof(when), "%Y%m%d-%H%M", &tm);
    if (!toolserver_random_id(id, &e)) id[0] = '\0';
    buf_clear(&chat->session);
    buf_printf(&chat->session, "chat-%s-%.4s", when, id);
}

bool chat_take_session(struct chat *chat, struct str name, struct err *e) {
    if (name.len > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the name of the session is longer than %d bytes", NAME_MAX_BYTES);
    buf_clear(&chat->session);
    return buf_append(&chat->session, name);
}

static bool newest_session(struct chat *chat, struct err *e) {
    const char *user = chat->options->user;
    struct buf path, body;
    struct json answer, session;
    struct arena *arena = arena_new(64 * KIB);
    struct str name = STR_EMPTY;
    buf_init(&path, 16 * KIB);
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_append(&path, STR("/weir/v1/sessions?limit=1"));
    daemon_path_add(&path, "user", user ? str_from(user) : STR("anonymous"));
    bool ok =
        ask_target_whole(&chat->target, STR("GET"), buf_str(&path), STR_EMPTY, &body, e) &&
        json_read(buf_str(&body), &answer, e);
    struct json_reader reader =
        json_enter(ok ? json_find(answer, STR("sessions")) : (struct json){0});
    if (ok && (!json_next_item(&reader, &session) ||
               !json_str(json_find(session, STR("session_id")), arena, &name)))
        ok = err_set(e, ERR_NOT_FOUND,
                     "there is no session to go on with; leave --continue out to begin one");
    ok = ok && chat_take_session(chat, name, e);
    buf_done(&body);
    buf_done(&path);
    arena_free(arena);
    return ok;
}

static bool choose_session(struct chat *chat, struct err *e) {
    const struct chat_options *options = chat->options;
    if (options->resumes) return newest_session(chat, e);
    if (options->session) return chat_take_session(chat, str_from(options->session), e);
    chat_new_session(chat);
    return true;
}

/* --- opening and closing ------------------------------------------------------------------ */

static bool choose_thinking(struct chat *chat, bool colors, struct err *e) {
    enum thinking_shown thinking = isatty(STDERR_FILENO) ? THINKING_SHOWN : THINKING_FOLDED;
    const char *asked = chat->options->thinking;
    if (asked && !thinking_shown_parse(asked, &thinking))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "--thinking must be shown, folded or hidden, not '%s'", asked);
    event_show_init(&chat->show, stdout, stderr, colors, thinking);
    return true;
}

static void open_client(struct chat *chat) {
    chat->pool = daemon_target_pool(&chat->target);
    chat->loop = loop_new();
    http_pool_add(chat->pool, chat->loop);
}

bool chat_open(struct chat *chat, const struct chat_options *options, struct err *e) {
    *chat = (struct chat){.options = options, .code = EXIT_DONE};
    own_daemon_init(&chat->own);
    daemon_target_init(&chat->target, options->config);
    buf_init(&chat->session, NAME_MAX_BYTES);
    buf_init(&chat->agent, NAME_MAX_BYTES);
    chat_input_init(&chat->input, options->json);
    if (!choose_thinking(chat, show_colors(stderr, options->color), e)) return false;
    if (!find_daemon(chat, e)) return false;
    open_client(chat);
    if (!http_pool_need(chat->pool, e) || !choose_session(chat, e)) return false;
    if (!options->agent) return true;
    return chat_agent_is_known(chat, str_from(options->agent), e) &&
           (buf_append(&chat->agent, str_from(options->agent)) ||
            err_set(e, ERR_INVALID_ARGUMENT, "the name of the agent is longer than %d bytes",
                    NAME_MAX_BYTES));
}

void chat_close(struct chat *chat) {
    if (chat->pool) {
        http_pool_leave(chat->pool, chat->loop);
        loop_free(chat->loop);
        http_pool_free(chat->pool);
    }
    own_daemon_stop(&chat->own);
    daemon_target_done(&chat->target);
    chat_input_done(&chat->input);
    event_show_done(&chat->show);
    buf_done(&chat->session);
    buf_done(&chat->agent);
}
