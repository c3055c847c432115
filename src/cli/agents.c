/* weir agents: who takes turns at a running daemon. */
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"

static const char usage[] =
    "weir agents [--json] [--url URL] [--token TOKEN]\n\n"
    "The agents of a running daemon: the names that --agent, and a member `agent` of /invoke "
    "and\n"
    "/stream, may have, with their models, tools and delegates. The one marked * takes turns\n"
    "that name none. weir agent list shows those of the settings, without a daemon. Exit code "
    "0:\n"
    "done; 1: refused, or no daemon answers; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * MIB)

/* "  tools: a, b", of strings or of objects with a name; nothing if there are none. */
static void append_names(struct json list, const char *what, struct buf *out) {
    struct json_reader reader = json_enter(list);
    struct json item;
    bool any = false;
    while (json_next_item(&reader, &item)) {
        struct json name = item.kind == JSON_OBJECT ? json_find(item, STR("name")) : item;
        struct arena *arena = arena_new(64 * KIB);
        struct str text = STR("...");
        if (name.kind == JSON_STRING && !json_str(name, arena, &text)) text = STR("...");
        buf_printf(out, any ? ", " : "\n    %s: ", what);
        terminal_text_append(out, text, TERMINAL_ONE_LINE);
        arena_free(arena);
        any = true;
    }
}

static void show_agent(struct json agent) {
    struct buf line;
    buf_init(&line, ANSWER_MAX_BYTES);
    show_member(agent, "name", &line);
    if (json_find(agent, STR("default")).kind == JSON_TRUE) buf_append(&line, STR(" *"));
    show_form(agent, "  {model}\n    {description}", &line);
    append_names(json_find(agent, STR("tools")), "tools", &line);
    append_names(json_find(agent, STR("delegates")), "delegates to", &line);
    printf(STR_FMT "\n", STR_ARG(buf_str(&line)));
    buf_done(&line);
}

static int agents_show(const struct asked *asked, void *ctx) {
    struct buf body;
    struct json answer, agent;
    struct err e;
    (void)ctx;
    buf_init(&body, ANSWER_MAX_BYTES);
    bool ok = asked_whole(asked, STR("GET"), STR("/weir/v1/agents"), STR_EMPTY, &body, &e) &&
              json_read(buf_str(&body), &answer, &e);
    if (ok && asked->json) show_json(stdout, answer.raw);
    struct json_reader reader =
        json_enter(ok ? json_find(answer, STR("agents")) : (struct json){0});
    while (!asked->json && json_next_item(&reader, &agent)) show_agent(agent);
    buf_done(&body);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

int command_agents(int arg_count, const char *const *args) {
    static const struct command_form form = {
        .usage = usage, .takes = TAKES_JSON | TAKES_DAEMON, .act = agents_show};
    return cli_command(arg_count, args, &form, NULL);
}
