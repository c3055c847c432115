#include "turn/run.h"
#include "base/clock.h"
#include "cli/chat.h"
#include "cli/cli.h"
#include "cli/contracts.h"
#include "cli/looking.h"
#include "cli/show.h"
#include "daemon/config_snapshot.h"
#include "session/waiting.h"
#include "stream/stream.h"
#include "tool/catalogue.h"
#include "wire/event_json.h"
#include "wire/lines.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define ANSWER_MAX_BYTES (4 * MIB)

static const char usage[] =
    "weir run \"plan two days in Kyoto\" [--agent NAME] [--json]\n"
    "weir run \"and for the third day?\" --session NAME [--url URL] [--token TOKEN]\n\n"
    "One turn, in this process, kept nowhere. The answer goes to stdout, what the agents do\n"
    "to stderr; --json writes every event as a line of JSON instead. --agent NAME asks that\n"
    "agent directly. With --session the turn goes on with a session of the store, as in weir\n"
    "chat: the running daemon takes it, or one that is started for as long as it lasts. So it "
    "is\n"
    "with --url (WEIR_URL), and with agents whose tools keep memories. Exit code 0: done; 1: "
    "the\n"
    "turn failed, or waits for an answer; 2: wrong usage.\n";

/* One turn of this command. */
struct once {
    struct loop *loop;
    struct run_host host;
    struct session_table *sessions;
    struct run *run;
    struct stream *stream;
    bool json;
    bool in_line;         /* stdout is in the middle of a line */
    uint64_t asked_seq;   /* of a question that waits for an answer; 0: none */
    struct lines answers; /* of stdin */
    int code;
};

/* --- showing ------------------------------------------------------------------------------ */

static void run_end_line(struct once *once) {
    if (once->in_line) printf("\n");
    once->in_line = false;
    fflush(stdout);
}

static void run_show_json(const struct event *event) {
    struct buf line;
    buf_init(&line, 64 * MIB);
    event_to_json(event, &line);
    show_json(stdout, buf_str(&line));
    fflush(stdout);
    buf_done(&line);
}

/* A program that reads stdout gets the text as it is. */
static void run_show_text(struct once *once, struct str text) {
    if (isatty(STDOUT_FILENO)) {
        show_text(stdout, text, TERMINAL_LINES);
    } else {
        fwrite(text.at, 1, text.len, stdout);
    }
    once->in_line = text.len && text.at[text.len - 1] != '\n';
    fflush(stdout);
}

/* "[agent] name {...}" on stderr. */
static void run_show_line(struct str agent, struct str name, struct str text) {
    struct buf line;
    buf_init(&line, 64 * MIB);
    if (agent.len) buf_printf(&line, "[" STR_FMT "] ", STR_ARG(agent));
    buf_append(&line, name);
    if (name.len) buf_append_byte(&line, ' ');
    buf_append(&line, text);
    show_text(stderr, buf_str(&line), TERMINAL_ONE_LINE);
    fputc('\n', stderr);
    buf_done(&line);
}

static void run_show(struct once *once, const struct event *event) {
    switch (event->kind) {
    case EVENT_TEXT: run_show_text(once, event->text.text); break;
    case EVENT_TOOL_CALL:
        run_end_line(once);
        run_show_line(event->agent, event->tool_call.tool, event->tool_call.args);
        break;
    case EVENT_TOOL_RESULT:
        run_show_line(STR_EMPTY, event->tool_result.error ? STR("  failed") : STR("  ->"),
                      str_head(event->tool_result.result, 500));
        break;
    case EVENT_APPROVAL:
        run_end_line(once);
        run_show_line(event->agent, STR_EMPTY, event->approval.question);
        break;
    case EVENT_FAILED:
        run_end_line(once);
        run_show_line(STR_EMPTY, STR("weir: error:"), event->failed.message);
        break;
    default: break;
    }
    if (event_is_terminal(event->kind)) run_end_line(once);
}

/* --- the stream --------------------------------------------------------------------------- */

static void run_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct once *once = ctx;
    (void)frame;
    if (once->json) {
        run_show_json(event);
    } else {
        run_show(once, event);
    }
    if (event->kind == EVENT_APPROVAL) once->asked_seq = event->seq;
}

static void run_ended(struct close_ending ending, enum close_cause cause,
                      const struct event *last, void *ctx) {
    struct once *once = ctx;
    (void)ending;
    (void)last;
    once->code = cause == CAUSE_FINISHED ? EXIT_DONE : EXIT_FAILED;
    loop_stop(once->loop);
}

static const struct stream_wire wire = {
    .judge = stream_judge_question, .project = run_project, .ended = run_ended};

static bool run_follow(struct once *once, uint64_t after_seq, struct err *e) {
    struct stream_options options = {.loop = once->loop,
                                     .journal = run_journal(once->run),
                                     .after_seq = after_seq,
                                     .mode = CLOSE_DONE,
                                     .paces = after_seq == 0,
                                     .wire = &wire,
                                     .ctx = once};
    stream_free(once->stream);
    once->stream = NULL;
    return stream_open(&options, &once->stream, e);
}

/* --- a question to the person at the terminal --------------------------------------------- */

/* The last line of a file may have no end. */
static bool take_last_answer(struct lines *answers, struct str *ret) {
    return lines_waiting(answers) && lines_feed(answers, STR("\n")) &&
           lines_next(answers, ret) == LINES_ONE;
}

/* A whole line, valid until the next one: the rest of a long one must not answer what is asked
 * next. */
static bool read_answer(struct lines *answers, struct str *ret, struct err *e) {
    char room[16 * KIB];
    enum lines_found found;
    while ((found = lines_next(answers, ret)) == LINES_NONE) {
        ssize_t got = read(STDIN_FILENO, room, sizeof(room));
        if (got < 0 && errno == EINTR) continue;
        if (got > 0 && lines_feed(answers, str_of(room, (size_t)got))) continue;
        if (got > 0) break;
        return take_last_answer(answers, ret) ||
               err_set(e, ERR_FAILED_PRECONDITION,
                       "the turn waits for an answer and stdin has none; try: echo yes | "
                       "weir run ...");
    }
    return found == LINES_ONE ||
           err_set(e, ERR_TOO_LARGE, "the answer is longer than %d MiB, and the turn waits on",
                   (int)(ANSWER_MAX_BYTES / MIB));
}

/* False when there is no one to answer. */
static bool cli_run_answer(struct once *once, const struct session_name *name, struct err *e) {
    enum pending_found found = PENDING_REFUSED;
    struct journal *journal;
    uint64_t seq;
    while (found == PENDING_REFUSED) {
        struct str line;
        struct err why = {.code = ERR_NONE};
        fprintf(stderr, "> ");
        if (!read_answer(&once->answers, &line, e)) return false;
        found =
            session_answer_pending(once->sessions, name, str_trim(line), &journal, &seq, &why);
        if (found == PENDING_REFUSED) fprintf(stderr, "%s\n", why.text);
    }
    if (found == PENDING_NONE)
        return err_set(e, ERR_INTERNAL, "the turn does not wait any more");
    journal_unref(journal);
    return run_follow(once, seq, e);
}

static bool run_play(struct once *once, const struct run_request *request, struct err *e) {
    if (!run_start(&once->host, request, &once->run, e)) return false;
    bool going = run_follow(once, 0, e);
    while (going) {
        once->asked_seq = 0;
        loop_run(once->loop);
        if (!once->asked_seq) return true;
        going = cli_run_answer(once, &request->name, e);
    }
    return false;
}

/* --- the command -------------------------------------------------------------------------- */

struct run_arguments {
    const char *agent;   /* "": the first */
    const char *session; /* NULL: not given */
};

/* Whether an agent of these settings has a tool that needs the store. */
static bool keeps_memories(const struct config *config) {
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *agent = &config->agents[i];
        for (size_t k = 0; k < agent->tool_count; k++) {
            const struct catalogue_row *row = catalogue_find(agent->tools[k].name);
            if (row && str_equal(row->category, STR("memory"))) return true;
        }
    }
    return false;
}

static int run_with_store(const struct asked *asked, const struct run_arguments *arguments) {
    const struct config *config = asked->config;
    const char **settings = asked->all->rest;
    int kept = chat_settings(config, settings, asked->all->rest_count);
    return chat_run(
        &(struct chat_options){.config = config,
                               .args = settings,
                               .arg_count = kept,
                               .url = asked->url,
                               .token = asked->token,
                               .session = arguments->session,
                               .agent = arguments->agent[0] ? arguments->agent : NULL,
                               .once = config->operands[0],
                               .json = asked->json});
}

static void stop_loop(void *ctx) {
    loop_stop(ctx);
}

/* Let an abandoned run end, so that everything can be freed. */
static void cli_run_finish(struct once *once) {
    stream_free(once->stream);
    if (once->run) {
        run_cancel(once->run, STR("no reader is left"));
        struct task stop;
        task_init(&stop, stop_loop, once->loop);
        loop_defer(once->loop, &stop);
        loop_run(once->loop);
    }
    run_unref(once->run);
}

static int take_turn(struct once *once, struct engine *engine,
                     const struct run_request *request) {
    struct err e;
    run_host_init(&once->host, engine, once->loop, NULL);
    once->host.quiet = true;
    if (!run_play(once, request, &e)) {
        if (once->json) show_json_error(stdout, &e);
        once->code = cli_fail(EXIT_FAILED, &e);
    }
    cli_run_finish(once);
    run_host_done(&once->host);
    return once->code;
}

/* The first snapshot starts the servers, the second one has their tools. */
static bool make_snapshot(struct config_snapshot_options *options, struct config_snapshot **ret,
                          struct err *e) {
    struct config_snapshot *first;
    if (!config_snapshot_new(options, &first, e)) return false;
    *ret = first;
    if (!options->config->mcp_count) return true;
    mcp_hub_wait(options->resources.mcp, LOOKING_SERVERS_MS);
    options->owner = first;
    bool made = config_snapshot_new(options, ret, e);
    config_snapshot_unref(first);
    return made;
}

static int run_once(const struct asked *asked, const struct run_arguments *arguments) {
    const struct config *config = asked->config;
    struct once once = {.loop = loop_new(), .json = asked->json};
    struct http_pool *pool = http_pool_new();
    http_pool_trust(pool, config->tls.trust);
    lines_init(&once.answers, ANSWER_MAX_BYTES);
    struct config_snapshot *snapshot;
    struct err e;
    struct process_pool *processes = process_pool_new();
    char session[48]; /* an agent elsewhere remembers its sessions */
    snprintf(session, sizeof(session), "run-%lld", (long long)clock_unix_us());
    http_pool_add(pool, once.loop);
    process_pool_add(processes, once.loop);
    once.sessions = session_table_new(NULL);
    struct mcp_hub *hub = looking_hub(config, pool);
    struct config_snapshot_options options = {
        .config = config,
        .contracts = &contracts,
        .sessions = once.sessions,
        .resources = {.pool = pool, .processes = processes, .mcp = hub}};
    if (make_snapshot(&options, &snapshot, &e)) {
        take_turn(&once, &snapshot->engine,
                  &(struct run_request){.name = {STR("local"), STR("local"), str_from(session)},
                                        .agent = str_from(arguments->agent),
                                        .text = config->operands[0],
                                        .contract = STR("cli")});
        config_snapshot_unref(snapshot);
    } else {
        once.code = cli_fail(EXIT_USAGE, &e);
    }
    mcp_hub_free(hub);
    session_table_free(once.sessions);
    http_pool_leave(pool, once.loop);
    process_pool_leave(processes, once.loop);
    loop_free(once.loop);
    http_pool_free(pool);
    process_pool_free(processes);
    lines_done(&once.answers);
    return once.code;
}

static bool run_fits(const struct asked *asked, void *ctx) {
    const struct config *config = asked->config;
    (void)ctx;
    if (config->operand_count == 1 && config->operands[0].len) return true;
    fprintf(stderr, "weir: error: %s\n",
            config->operand_count > 1
                ? "there is more than one message; put what is to be said between quotes"
            : config->operand_count ? "the message is empty"
                                    : "there is no message");
    return false;
}

static int run_act(const struct asked *asked, void *ctx) {
    const struct run_arguments *arguments = ctx;
    cli_log_file(asked->config);
    bool stored = arguments->session || daemon_url(asked->url) || keeps_memories(asked->config);
    return (stored ? run_with_store : run_once)(asked, arguments);
}

int command_run(int arg_count, const char *const *args) {
    struct run_arguments arguments = {.agent = ""};
    const struct argument_flag flags[] = {{.name = "agent", .value = &arguments.agent},
                                          {.name = "session", .value = &arguments.session},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .flags = flags,
                                      .takes = TAKES_JSON | TAKES_DAEMON,
                                      .fits = run_fits,
                                      .act = run_act};
    return cli_command(arg_count, args, &form, &arguments);
}
