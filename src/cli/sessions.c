#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "wire/json.h"

#include <stdio.h>

static const char usage[] =
    "weir sessions [list] [--workspace W] [--user U] [--json] [--url URL] [--token TOKEN]\n"
    "weir sessions export ID [--workspace W] [--user U]\n"
    "weir sessions delete ID [--workspace W] [--user U]\n\n"
    "The conversations that the running daemon has stored: which, all events of one as JSON\n"
    "lines, or one gone for good, also from the files. The daemon is that of --url "
    "(WEIR_URL),\n"
    "else the one of the data folder; the token is --token, else AGENT_AUTH_TOKEN. Without\n"
    "--workspace and --user, list shows all that the token may see; export and delete mean "
    "the\n"
    "token's, else workspace default and user anonymous. Exit code 0: done; 1: it was tried "
    "and\n"
    "refused (unknown, a turn runs), or no daemon listens; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)
#define PATH_MAX_BYTES (16 * KIB)

struct sessions_arguments {
    const char *workspace, *user; /* NULL: not given */
};

/* What is not given is left out. */
static void add_given(struct buf *path, const char *name, const char *value) {
    if (value && *value) daemon_path_add(path, name, str_from(value));
}

static bool sessions_write_path(const struct sessions_arguments *arguments, struct str id,
                                const char *after, struct buf *out, struct err *e) {
    buf_append(out, STR("/weir/v1/sessions"));
    if (id.len) buf_append_byte(out, '/');
    buf_append_percent(out, id, "-._~");
    buf_append(out, str_from(after));
    add_given(out, "workspace", arguments->workspace);
    add_given(out, "user", arguments->user);
    return buf_ok(out) || err_set(e, ERR_INVALID_ARGUMENT, "that is too long");
}

/* --- list --------------------------------------------------------------------------------- */

static void show_row(struct json session) {
    struct buf line;
    buf_init(&line, ANSWER_MAX_BYTES);
    show_form(session, "{session_id}  workspace {workspace}  user {user}  {state}", &line);
    printf(STR_FMT "\n", STR_ARG(buf_str(&line)));
    buf_done(&line);
}

static void show_page(struct json page, bool as_json) {
    struct json_reader reader = json_enter(json_find(page, STR("sessions")));
    struct json session;
    while (json_next_item(&reader, &session)) {
        if (as_json) {
            show_json(stdout, session.raw);
        } else {
            show_row(session);
        }
    }
}

/* Print one page. *cursor is its start, then the start of the next one, or empty. */
static bool list_page(const struct asked *asked, const struct sessions_arguments *arguments,
                      struct buf *cursor, struct err *e) {
    struct buf path, body;
    struct json page;
    struct str next = STR_EMPTY;
    struct arena *arena = arena_new(PATH_MAX_BYTES);
    buf_init(&path, PATH_MAX_BYTES);
    buf_init(&body, ANSWER_MAX_BYTES);
    bool ok = sessions_write_path(arguments, STR_EMPTY, "?limit=1000", &path, e);
    if (cursor->len) daemon_path_add(&path, "after", buf_str(cursor));
    ok = ok && asked_whole(asked, STR("GET"), buf_str(&path), STR_EMPTY, &body, e) &&
         json_read(buf_str(&body), &page, e);
    if (ok) {
        show_page(page, asked->json);
        struct json member = json_find(page, STR("next"));
        if (member.kind == JSON_STRING && !json_str(member, arena, &next))
            ok = err_set(e, ERR_INTERNAL, "the daemon's cursor is too long");
        buf_clear(cursor);
        buf_append(cursor, next);
    }
    buf_done(&body);
    buf_done(&path);
    arena_free(arena);
    return ok;
}

static int sessions_list(const struct asked *asked,
                         const struct sessions_arguments *arguments) {
    struct buf cursor;
    struct err e;
    bool ok;
    buf_init(&cursor, KIB);
    do {
        ok = list_page(asked, arguments, &cursor, &e);
    } while (ok && cursor.len);
    buf_done(&cursor);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

/* --- export and delete -------------------------------------------------------------------- */

static void sessions_show(struct str bytes, void *ctx) {
    (void)ctx;
    fwrite(bytes.at, 1, bytes.len, stdout);
}

static void cli_sessions_drop(struct str bytes, void *ctx) {
    (void)bytes;
    (void)ctx;
}

static int act_on(const struct asked *asked, const struct sessions_arguments *arguments,
                  bool erases) {
    struct buf path;
    struct err e;
    buf_init(&path, PATH_MAX_BYTES);
    bool ok = sessions_write_path(arguments, asked->config->operands[0],
                                  erases ? "" : "/export", &path, &e) &&
              asked_answer(asked,
                           &(struct daemon_question){
                               .method = erases ? STR("DELETE") : STR("GET"),
                               .path = buf_str(&path),
                               .body = STR_EMPTY,
                               .on_body = erases ? cli_sessions_drop : sessions_show},
                           &e);
    buf_done(&path);
    if (ok && erases) printf("deleted\n");
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

/* --- the command -------------------------------------------------------------------------- */

enum act { ACT_LIST, ACT_EXPORT, ACT_DELETE };

static bool sessions_fit(const struct asked *asked, void *ctx) {
    size_t wanted = asked->act != ACT_LIST;
    (void)ctx;
    return cli_operands_fit(asked->config, wanted, wanted,
                            "the id of a session (weir sessions lists them)");
}

static int sessions_act(const struct asked *asked, void *ctx) {
    return asked->act == ACT_LIST ? sessions_list(asked, ctx)
                                  : act_on(asked, ctx, asked->act == ACT_DELETE);
}

int command_sessions(int arg_count, const char *const *args) {
    static const char *const acts[] = {
        [ACT_LIST] = "list", [ACT_EXPORT] = "export", [ACT_DELETE] = "delete", NULL};
    struct sessions_arguments arguments = {.user = NULL};
    const struct argument_flag flags[] = {{.name = "workspace", .value = &arguments.workspace},
                                          {.name = "user", .value = &arguments.user},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .takes = TAKES_JSON | TAKES_DAEMON,
                                      .acts = acts,
                                      .flags = flags,
                                      .fits = sessions_fit,
                                      .act = sessions_act};
    return cli_command(arg_count, args, &form, &arguments);
}
