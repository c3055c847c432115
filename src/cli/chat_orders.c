/* Lines that begin with a slash are for the command and not for the agent. */
#include "cli/chat.h"

#define ANSWER_MAX_BYTES (64 * MIB)

/* --- agents ------------------------------------------------------------------------------- */

/* False: the daemon does not list them, to this caller at least. */
static bool ask_agents(struct chat *chat, struct buf *body, struct json *ret, struct err *e) {
    return ask_target_whole(&chat->target, STR("GET"), STR("/weir/v1/agents"), STR_EMPTY, body,
                            e) &&
           json_read(buf_str(body), ret, e);
}

static void append_agents(struct json agents, struct buf *out) {
    struct json_reader reader = json_enter(agents);
    struct json agent;
    for (bool first = true; json_next_item(&reader, &agent); first = false) {
        if (!first) buf_append(out, STR(", "));
        show_member(agent, "name", out);
    }
}

static bool has_agent(struct json agents, struct str name) {
    struct json_reader reader = json_enter(agents);
    struct json agent;
    while (json_next_item(&reader, &agent)) {
        if (json_is(json_find(agent, STR("name")), name)) return true;
    }
    return false;
}

bool chat_agent_is_known(struct chat *chat, struct str name, struct err *e) {
    struct buf body, names;
    struct json answer;
    struct err none;
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_init(&names, ANSWER_MAX_BYTES);
    /* Who may not list them learns it from the first turn. */
    bool known = !ask_agents(chat, &body, &answer, &none) ||
                 has_agent(json_find(answer, STR("agents")), name);
    if (!known) {
        append_agents(json_find(answer, STR("agents")), &names);
        err_set(e, ERR_NOT_FOUND, "no agent named '" STR_FMT "'; there are: " STR_FMT,
                STR_ARG(str_head(name, 80)), STR_ARG(str_head(buf_str(&names), 300)));
    }
    buf_done(&names);
    buf_done(&body);
    return known;
}

/* --- orders ------------------------------------------------------------------------------- */

typedef void order_fn(struct chat *chat, struct str word);

static void order_help(struct chat *chat, struct str word);

static void order_new(struct chat *chat, struct str word) {
    (void)word;
    chat_new_session(chat);
    event_show_line(&chat->show, "session ", buf_str(&chat->session));
}

static void order_session(struct chat *chat, struct str word) {
    struct err e;
    if (word.len && !chat_take_session(chat, word, &e)) {
        chat_report(chat, &e);
        return;
    }
    event_show_line(&chat->show, "session ", buf_str(&chat->session));
}

static void order_agent(struct chat *chat, struct str word) {
    struct err e;
    if (word.len && !chat_agent_is_known(chat, word, &e)) {
        chat_report(chat, &e);
        return;
    }
    if (word.len) {
        buf_clear(&chat->agent);
        buf_append(&chat->agent, word);
    }
    event_show_line(&chat->show, "agent ",
                    chat->agent.len ? buf_str(&chat->agent) : STR("(the first)"));
}

static void order_agents(struct chat *chat, struct str word) {
    struct buf body, names;
    struct json answer;
    struct err e;
    (void)word;
    buf_init(&body, ANSWER_MAX_BYTES);
    buf_init(&names, ANSWER_MAX_BYTES);
    if (ask_agents(chat, &body, &answer, &e)) {
        append_agents(json_find(answer, STR("agents")), &names);
        event_show_line(&chat->show, "agents: ", buf_str(&names));
    } else {
        chat_report(chat, &e);
    }
    buf_done(&names);
    buf_done(&body);
}

static void order_quit(struct chat *chat, struct str word) {
    (void)word;
    chat->leaves = true;
}

static const struct {
    const char *name, *what;
    order_fn *obey;
} orders[] = {
    {"/help", "this list", order_help},
    {"/new", "begin a new session", order_new},
    {"/session", "which session this is; with a name, go on with that one", order_session},
    {"/agent", "whom you talk to; with a name, talk to that one", order_agent},
    {"/agents", "who there is", order_agents},
    {"/quit", "leave, as Ctrl-D does", order_quit},
};

static void order_help(struct chat *chat, struct str word) {
    (void)word;
    event_show_end_line(&chat->show);
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        fprintf(stderr, "  %-10s %s\n", orders[i].name, orders[i].what);
    fprintf(stderr, "  //TEXT     say TEXT with a slash in front\n"
                    "  a \\ at the end, or Alt-Enter, begins another line\n"
                    "  Ctrl-C cancels the turn, and leaves if it is pressed again\n");
}

bool chat_order(struct chat *chat, struct str line) {
    struct str word, name;
    struct err e;
    if (!str_starts(line, STR("/")) || str_starts(line, STR("//"))) return false;
    name = str_split(str_trim(line), ' ', &word);
    word = word.at ? str_trim(word) : STR_EMPTY;
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        if (!str_equal(name, str_from(orders[i].name))) continue;
        orders[i].obey(chat, word);
        return true;
    }
    err_set(&e, ERR_INVALID_ARGUMENT, "there is no " STR_FMT "; /help lists what there is",
            STR_ARG(str_head(name, 40)));
    chat_report(chat, &e);
    return true;
}
