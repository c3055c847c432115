/* weir runs: which runs there were, newest first. */
#include "base/nearest.h"
#include "base/utf8.h"
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"

#include <time.h>

static const char usage[] =
    "weir runs [--session ID] [--user U] [--workspace W] [--agent A] [--contract C] [--state "
    "S]\n"
    "          [--limit N] [--json] [--url URL] [--token TOKEN]\n\n"
    "The runs that a running daemon has, live and stored, of all sessions, newest first: id,\n"
    "state, agent, session, start, duration and what was asked. A state is queued, running,\n"
    "waiting, done, failed or cancelled. 20 runs are shown unless --limit says otherwise, and\n"
    "all that the token may see unless a filter says less. --json writes each run as a line\n"
    "of JSON. weir logs ID shows what happened in one. Exit code 0: done; 1: refused, or no\n"
    "daemon answers; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)
#define PATH_MAX_BYTES (16 * KIB)
#define LIMIT_USUAL 20
#define PAGE_RUNS 200 /* the daemon answers with so many at most */
#define TEXT_CHARACTERS 60

/* The flags that are the filters of GET /weir/v1/runs. */
enum filter {
    BY_SESSION,
    BY_USER,
    BY_WORKSPACE,
    BY_AGENT,
    BY_CONTRACT,
    BY_STATE,
    FILTER_COUNT
};

static const char *const filters[FILTER_COUNT] = {
    [BY_SESSION] = "session", [BY_USER] = "user",         [BY_WORKSPACE] = "workspace",
    [BY_AGENT] = "agent",     [BY_CONTRACT] = "contract", [BY_STATE] = "state"};

struct runs_arguments {
    const char *filters[FILTER_COUNT]; /* NULL: not given */
    const char *limit;
    uint64_t left; /* to be shown */
};

/* --- one run ------------------------------------------------------------------------------ */

static void append_start(struct json run, struct buf *out) {
    int64_t began_ms, ended_ms;
    char text[32];
    struct tm tm;
    struct json began = json_find(run, STR("started_unix_ms"));
    struct json ended = json_find(run, STR("ended_unix_ms"));
    if (!json_i64(began, &began_ms)) return;
    time_t began_s = (time_t)(began_ms / 1000);
    if (localtime_r(&began_s, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
        buf_printf(out, "  %s", text);
    if (json_i64(ended, &ended_ms))
        buf_printf(out, "  %.1f s", (double)(ended_ms - began_ms) / 1000);
}

static void runs_append_text(struct json run, struct buf *out) {
    struct buf text;
    struct json cut = json_find(run, STR("text_cut"));
    buf_init(&text, ANSWER_MAX_BYTES);
    show_member(run, "text", &text);
    struct str all = buf_str(&text);
    size_t len = utf8_head(all, TEXT_CHARACTERS);
    buf_printf(out, "\n    " STR_FMT "%s", STR_ARG(str_head(all, len)),
               len < all.len || cut.kind == JSON_TRUE ? "…" : "");
    buf_done(&text);
}

static void show_run(struct json run) {
    struct buf line;
    buf_init(&line, ANSWER_MAX_BYTES);
    show_form(run, "{id}  {state}  {agent}  session {session_id}", &line);
    append_start(run, &line);
    runs_append_text(run, &line);
    printf(STR_FMT "\n", STR_ARG(buf_str(&line)));
    buf_done(&line);
}

/* --- pages -------------------------------------------------------------------------------- */

static bool runs_path(const struct runs_arguments *arguments, int64_t before, struct buf *out,
                      struct err *e) {
    uint64_t limit = arguments->left < PAGE_RUNS ? arguments->left : PAGE_RUNS;
    buf_printf(out, "/weir/v1/runs?limit=%llu", (unsigned long long)limit);
    if (before) buf_printf(out, "&before=%lld", (long long)before);
    for (size_t i = 0; i < FILTER_COUNT; i++) {
        if (arguments->filters[i])
            daemon_path_add(out, filters[i], str_from(arguments->filters[i]));
    }
    return buf_ok(out) || err_set(e, ERR_INVALID_ARGUMENT, "that is too long");
}

static void show_page(const struct asked *asked, struct runs_arguments *arguments,
                      struct json page) {
    struct json runs = json_find(page, STR("runs")), run;
    struct json_reader reader = json_enter(runs);
    for (; arguments->left > 0 && json_next_item(&reader, &run); arguments->left--) {
        if (asked->json) {
            show_json(stdout, run.raw);
        } else {
            show_run(run);
        }
    }
}

/* *before is the start of a page, then of the next one; 0: there is none. */
static bool runs_page(const struct asked *asked, struct runs_arguments *arguments,
                      int64_t *before, struct err *e) {
    struct buf path, body;
    struct json page = {.kind = JSON_NONE};
    buf_init(&path, PATH_MAX_BYTES);
    buf_init(&body, ANSWER_MAX_BYTES);
    bool ok = runs_path(arguments, *before, &path, e) &&
              asked_whole(asked, STR("GET"), buf_str(&path), STR_EMPTY, &body, e) &&
              json_read(buf_str(&body), &page, e);
    if (ok) show_page(asked, arguments, page);
    struct json next = json_find(page, STR("next"));
    if (!ok || !json_i64(next, before)) *before = 0;
    buf_done(&body);
    buf_done(&path);
    return ok;
}

/* --- the command -------------------------------------------------------------------------- */

static int runs_act(const struct asked *asked, void *ctx) {
    struct runs_arguments *arguments = ctx;
    int64_t before = 0;
    struct err e;
    bool ok;
    do {
        ok = runs_page(asked, arguments, &before, &e);
    } while (ok && before && arguments->left > 0);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

static bool is_state(const char *name) {
    static const char *const states[] = {"queued", "running", "waiting",
                                         "done",   "failed",  "cancelled"};
    struct nearest nearest;
    nearest_init(&nearest, str_from(name));
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        if (strcmp(states[i], name) == 0) return true;
        nearest_offer(&nearest, str_from(states[i]));
    }
    fprintf(stderr, "weir: error: --state: a run cannot be '%s'%s\n", name,
            nearest_hint(&nearest));
    return false;
}

static bool read_limit(const char *limit, uint64_t *ret) {
    if (!limit || (str_to_u64(str_from(limit), ret) && *ret > 0)) return true;
    fprintf(stderr, "weir: error: --limit must be a number above 0\n");
    return false;
}

static bool runs_fit(const struct asked *asked, void *ctx) {
    struct runs_arguments *arguments = ctx;
    const char *state = arguments->filters[BY_STATE];
    if (state && !is_state(state)) return false;
    return read_limit(arguments->limit, &arguments->left) &&
           cli_operands_fit(asked->config, 0, 0, NULL);
}

int command_runs(int arg_count, const char *const *args) {
    struct runs_arguments arguments = {.left = LIMIT_USUAL};
    struct argument_flag flags[FILTER_COUNT + 2] = {
        {.name = "limit", .value = &arguments.limit}};
    for (size_t i = 0; i < FILTER_COUNT; i++)
        flags[i + 1] =
            (struct argument_flag){.name = filters[i], .value = &arguments.filters[i]};
    const struct command_form form = {.usage = usage,
                                      .takes = TAKES_JSON | TAKES_DAEMON,
                                      .flags = flags,
                                      .fits = runs_fit,
                                      .act = runs_act};
    return cli_command(arg_count, args, &form, &arguments);
}
