/* weir runs: which runs there were, newest first. */
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"

#include <time.h>

static const char usage[] =
    "weir runs [--session ID] [--user U] [--workspace W] [--agent A] [--state S]\n"
    "          [--limit N] [--json] [--url URL] [--token TOKEN]\n\n"
    "The runs that a running daemon has, live and stored, newest session first: id, state,\n"
    "agent, session, start, duration, tokens and what was asked. A state is queued, running,\n"
    "waiting, done, failed or cancelled. 20 runs are shown unless --limit says otherwise, and\n"
    "all that the token may see unless a filter says less. --json writes each run as a line\n"
    "of JSON. weir logs ID shows what happened in one. Exit code 0: done; 1: refused, or no\n"
    "daemon answers; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)
#define PATH_MAX_BYTES (16 * KIB)
#define LIMIT_USUAL 20
#define SESSIONS_AT_ONCE 50
#define SESSION_RUNS_MAX_SHOWN 128 /* the daemon answers with 100 at most */
#define TEXT_CHARACTERS 60

struct runs_arguments {
    struct arguments all;
    const char *url, *token, *session, *user, *workspace, *agent, *state, *limit;
    bool json;
};

struct runs_list {
    const struct runs_arguments *arguments;
    const struct daemon_target *target;
    uint64_t left; /* to be shown */
};

/* --- questions ---------------------------------------------------------------------------- */

static void runs_parameter(struct buf *path, const char *name, struct str value) {
    if (!value.len) return;
    buf_append_byte(path, str_find_byte(buf_str(path), '?') == path->len ? '?' : '&');
    buf_append(path, str_from(name));
    buf_append_byte(path, '=');
    buf_append_percent(path, value, "-._~");
}

static struct str given(const char *text) {
    return text ? str_from(text) : STR_EMPTY;
}

static bool runs_ask(const struct runs_list *list, struct buf *path, struct buf *body,
                     struct json *ret, struct err *e) {
    if (!buf_ok(path)) return err_set(e, ERR_INVALID_ARGUMENT, "that is too long");
    return ask_target_whole(list->target, STR("GET"), buf_str(path), STR_EMPTY, body, e) &&
           json_read(buf_str(body), ret, e);
}

/* --- one run ------------------------------------------------------------------------------ */

static bool is_wanted(const struct runs_arguments *arguments, struct json run) {
    return (!arguments->agent ||
            json_is(json_find(run, STR("agent")), str_from(arguments->agent))) &&
           (!arguments->state ||
            json_is(json_find(run, STR("state")), str_from(arguments->state)));
}

static void append_start(struct json run, struct buf *out) {
    int64_t began_ms, ended_ms;
    char text[32];
    struct tm tm;
    if (!json_i64(json_find(run, STR("started_unix_ms")), &began_ms)) return;
    time_t began_s = (time_t)(began_ms / 1000);
    if (localtime_r(&began_s, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
        buf_printf(out, "  %s", text);
    if (json_i64(json_find(run, STR("ended_unix_ms")), &ended_ms))
        buf_printf(out, "  %.1f s", (double)(ended_ms - began_ms) / 1000);
}

static void append_tokens(struct json run, struct buf *out) {
    int64_t total;
    struct json usage_of = json_find(run, STR("usage"));
    if (json_i64(json_find(usage_of, STR("total_tokens")), &total) && total > 0)
        buf_printf(out, "  %lld tokens", (long long)total);
}

static void append_text(struct json run, struct buf *out) {
    struct buf text;
    buf_init(&text, ANSWER_MAX_BYTES);
    show_member(run, "text", &text);
    struct str all = buf_str(&text);
    size_t len = utf8_head(all, TEXT_CHARACTERS);
    buf_printf(out, "\n    " STR_FMT "%s", STR_ARG(str_head(all, len)),
               len < all.len ? "…" : "");
    buf_done(&text);
}

static void show_run(struct json run) {
    struct buf line;
    buf_init(&line, ANSWER_MAX_BYTES);
    show_member(run, "id", &line);
    buf_append(&line, STR("  "));
    show_member(run, "state", &line);
    buf_append(&line, STR("  "));
    show_member(run, "agent", &line);
    buf_append(&line, STR("  session "));
    show_member(run, "session_id", &line);
    append_start(run, &line);
    append_tokens(run, &line);
    append_text(run, &line);
    printf(STR_FMT "\n", STR_ARG(buf_str(&line)));
    buf_done(&line);
}

/* --- the runs of one session -------------------------------------------------------------- */

/* They come oldest first. */
static void show_newest_first(struct runs_list *list, struct json runs) {
    struct json at[SESSION_RUNS_MAX_SHOWN], run;
    size_t count = 0;
    struct json_reader reader = json_enter(runs);
    while (count < ARRAY_LEN(at) && json_next_item(&reader, &run)) at[count++] = run;
    while (count > 0 && list->left > 0) {
        run = at[--count];
        if (!is_wanted(list->arguments, run)) continue;
        list->left--;
        if (list->arguments->json) {
            show_json(stdout, run.raw);
        } else {
            show_run(run);
        }
    }
}

static bool runs_of(struct runs_list *list, struct str session, struct str workspace,
                    struct str user, struct err *e) {
    struct buf path, body;
    struct json answer = {.kind = JSON_NONE};
    buf_init(&path, PATH_MAX_BYTES);
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_append(&path, STR("/weir/v1/runs"));
    runs_parameter(&path, "session_id", session);
    runs_parameter(&path, "workspace", workspace);
    runs_parameter(&path, "user", user);
    bool ok = runs_ask(list, &path, &body, &answer, e);
    if (ok) show_newest_first(list, json_find(answer, STR("runs")));
    buf_done(&body);
    buf_done(&path);
    return ok;
}

/* --- the sessions ------------------------------------------------------------------------- */

static bool runs_of_session(struct runs_list *list, struct json session, struct err *e) {
    static const char *const names[] = {"session_id", "workspace", "user"};
    struct str texts[ARRAY_LEN(names)];
    struct arena *arena = arena_new(PATH_MAX_BYTES);
    bool ok = true;
    for (size_t i = 0; ok && i < ARRAY_LEN(names); i++) {
        struct json member = json_find(session, str_from(names[i]));
        ok = member.kind == JSON_STRING && json_str(member, arena, &texts[i]);
    }
    ok = ok ? runs_of(list, texts[0], texts[1], texts[2], e)
            : err_set(e, ERR_INTERNAL, "the daemon names a session that cannot be read");
    arena_free(arena);
    return ok;
}

/* One page of sessions. *cursor is its start, then the start of the next one, or empty. */
static bool runs_page(struct runs_list *list, struct buf *cursor, struct err *e) {
    struct buf path, body;
    struct json answer, session;
    struct str next = STR_EMPTY;
    struct arena *arena = arena_new(PATH_MAX_BYTES);
    buf_init(&path, PATH_MAX_BYTES);
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_printf(&path, "/weir/v1/sessions?limit=%d", SESSIONS_AT_ONCE);
    runs_parameter(&path, "workspace", given(list->arguments->workspace));
    runs_parameter(&path, "user", given(list->arguments->user));
    runs_parameter(&path, "after", buf_str(cursor));
    bool ok = runs_ask(list, &path, &body, &answer, e);
    struct json_reader reader =
        json_enter(ok ? json_find(answer, STR("sessions")) : (struct json){0});
    while (ok && list->left > 0 && json_next_item(&reader, &session))
        ok = runs_of_session(list, session, e);
    struct json member = ok ? json_find(answer, STR("next")) : (struct json){0};
    if (member.kind == JSON_STRING && !json_str(member, arena, &next))
        ok = err_set(e, ERR_INTERNAL, "the daemon's cursor is too long");
    buf_clear(cursor);
    buf_append(cursor, next);
    buf_done(&body);
    buf_done(&path);
    arena_free(arena);
    return ok;
}

static bool runs_of_all(struct runs_list *list, struct err *e) {
    struct buf cursor;
    bool ok;
    buf_init(&cursor, KIB);
    do {
        ok = runs_page(list, &cursor, e);
    } while (ok && cursor.len && list->left > 0);
    buf_done(&cursor);
    return ok;
}

/* --- the command -------------------------------------------------------------------------- */

static int runs_list(const struct config *config, const struct runs_arguments *arguments,
                     uint64_t limit) {
    struct daemon_target target;
    struct runs_list list = {arguments, &target, limit};
    struct err e;
    bool ok =
        daemon_target_find(config, arguments->url, arguments->token, &target, &e) &&
        (arguments->session ? runs_of(&list, str_from(arguments->session),
                                      given(arguments->workspace), given(arguments->user), &e)
                            : runs_of_all(&list, &e));
    daemon_target_done(&target);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

static int runs_run(const struct runs_arguments *arguments) {
    struct config *config;
    uint64_t limit = LIMIT_USUAL;
    int code;
    if (!cli_config(arguments->all.rest_count, arguments->all.rest, true, usage,
                    arguments->all.names, &config, &code))
        return code;
    bool numbered = !arguments->limit || str_to_u64(str_from(arguments->limit), &limit);
    if (config->operand_count == 0 && numbered) {
        code = runs_list(config, arguments, limit);
    } else {
        fprintf(stderr, "%s", usage);
        code = EXIT_USAGE;
    }
    config_free(config);
    return code;
}

int command_runs(int arg_count, const char *const *args) {
    struct runs_arguments arguments = {.json = false};
    const struct argument_flag flags[] = {{.name = "json", .given = &arguments.json},
                                          {.name = "session", .value = &arguments.session},
                                          {.name = "user", .value = &arguments.user},
                                          {.name = "workspace", .value = &arguments.workspace},
                                          {.name = "agent", .value = &arguments.agent},
                                          {.name = "state", .value = &arguments.state},
                                          {.name = "limit", .value = &arguments.limit},
                                          {.name = "url", .value = &arguments.url},
                                          {.name = "token", .value = &arguments.token},
                                          {.name = NULL}};
    if (!arguments_read(arg_count, args, NULL, flags, usage, &arguments.all)) return EXIT_USAGE;
    int code = runs_run(&arguments);
    arguments_done(&arguments.all);
    return code;
}
