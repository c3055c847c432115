#include "cli/chat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "weir chat [AGENT] [--session NAME | --continue] [--user U] [--json] [--alone]\n"
    "          [--thinking shown|folded|hidden] [--color auto|on|off]\n"
    "          [--url URL] [--token TOKEN]\n\n"
    "A conversation in the terminal. The running daemon is asked (of --url, else of the data\n"
    "folder, else at listen.http); if there is none, or with --alone, one is started with "
    "these\n"
    "settings and their store for as long as the command runs. --session goes on with a "
    "session,\n"
    "or begins one of that name; --continue goes on with the newest. Answers go to stdout; "
    "tools,\n"
    "their results and thinking to stderr. A call that needs approval is shown with all of "
    "its\n"
    "arguments: y, n, n REASON, or e and other arguments. /help lists what lines with a slash "
    "do.\n"
    "Ctrl-C cancels the turn, a second one leaves; Ctrl-D leaves.\n\n"
    "Arrow keys, Home, End, Ctrl-A E K U W Y edit a line and bring back earlier ones; a "
    "backslash\n"
    "at the end begins another line of the same text.\n\n"
    "Lines may also come from a pipe. With --json each event is a line of JSON on stdout, and "
    "an\n"
    "input line may be {\"text\":\"...\"}, or {\"decision\":\"approve\"} while a turn waits. "
    "Exit "
    "code\n"
    "0: done; 1: a turn failed or waits for an answer; 2: wrong usage; 130: left with "
    "Ctrl-C.\n";

#define EXIT_INTERRUPTED 130

/* --- messages ----------------------------------------------------------------------------- */

void chat_report(struct chat *chat, const struct err *problem) {
    if (chat->options->json) {
        show_json_error(stdout, problem);
    } else {
        event_show_end_line(&chat->show);
        fprintf(stderr, "weir: error: ");
        show_text(stderr, err_text(problem), TERMINAL_ONE_LINE);
        fputc('\n', stderr);
    }
}

static bool greets(const struct chat *chat) {
    return chat->input.terminal && !chat->options->json && !chat->options->once.len;
}

static void greet(const struct chat *chat) {
    if (!greets(chat)) return;
    if (chat->alone) {
        fprintf(stderr, "weir by itself, data " STR_FMT, STR_ARG(chat->options->config->data));
    } else {
        fprintf(stderr, "weir at " STR_FMT, STR_ARG(daemon_target_where(&chat->target)));
    }
    fprintf(stderr, ", session ");
    show_text(stderr, buf_str(&chat->session), TERMINAL_ONE_LINE);
    fprintf(stderr, "   /help, Ctrl-D leaves\n");
}

static void part(const struct chat *chat) {
    if (!greets(chat)) return;
    fprintf(stderr, "%sto go on: weir chat --session ", chat_input_gap(&chat->input));
    show_text(stderr, buf_str(&chat->session), TERMINAL_ONE_LINE);
    fputc('\n', stderr);
}

/* --- turns -------------------------------------------------------------------------------- */

/* Until the run ends, whatever it asks meanwhile. */
static void chat_end_turn(struct chat *chat, enum chat_end end, struct chat_question *question,
                          struct err *e) {
    while (end == CHAT_ASKS) {
        enum chat_answer answer = ferror(stdout) ? CHAT_UNANSWERED : chat_ask(chat, question);
        if (answer != CHAT_ANSWERED) {
            chat->leaves = true;
            chat->code = answer == CHAT_ASK_LEFT ? EXIT_INTERRUPTED : EXIT_FAILED;
            return;
        }
        end = chat_turn_go_on(chat, question, e);
    }
    if (end == CHAT_BROKEN) chat_report(chat, e);
    if (end == CHAT_BROKEN || end == CHAT_FAILED) chat->code = EXIT_FAILED;
    if (end == CHAT_LEFT || (end == CHAT_CANCELLED && !chat->input.terminal)) {
        chat->leaves = true;
        chat->code = EXIT_INTERRUPTED;
    }
    if (ferror(stdout)) { /* no one reads on: no further turn */
        chat->leaves = true;
        chat->code = EXIT_FAILED;
    }
}

static void chat_say(struct chat *chat, struct str text) {
    struct chat_question question;
    struct err e;
    chat_question_init(&question);
    chat_end_turn(chat, chat_turn_say(chat, text, &question, &e), &question, &e);
    chat_question_done(&question);
}

/* A turn of before may wait for an answer, and then the session takes no other. */
static void settle_first(struct chat *chat) {
    struct chat_question question;
    struct err e;
    if (!chat->options->session && !chat->options->resumes) return;
    chat_question_init(&question);
    if (chat_find_question(chat, &question)) chat_end_turn(chat, CHAT_ASKS, &question, &e);
    chat_question_done(&question);
}

/* --- lines -------------------------------------------------------------------------------- */

/* {"text":"..."} of a program; any other line is the text itself. */
static void say_of_program(struct chat *chat, struct str line) {
    struct json object, text;
    struct err e;
    struct str said = line;
    struct arena *arena = arena_new(2 * line.len + KIB);
    if (json_read(line, &object, &e) && object.kind == JSON_OBJECT) {
        text = json_find(object, STR("text"));
        if (text.kind == JSON_STRING && !json_str(text, arena, &said)) said = line;
    }
    chat_say(chat, said);
    arena_free(arena);
}

static void take_line(struct chat *chat, struct str line) {
    struct buf kept; /* the input's buffer is for the answers to questions then */
    if (str_trim(line).len == 0) return;
    buf_init(&kept, line.len + 1);
    buf_append(&kept, line);
    line = buf_str(&kept);
    if (chat->options->json) {
        say_of_program(chat, line);
    } else if (!chat_order(chat, line)) {
        chat_say(chat, str_skip(line, str_starts(line, STR("//")) ? 1 : 0));
    }
    buf_done(&kept);
}

/* Ctrl-C where nothing runs. True: to be left. */
static bool leaves_at_prompt(const struct chat *chat, bool again) {
    if (again || !chat->input.terminal) return true;
    fprintf(stderr, "%s(Ctrl-C again or Ctrl-D leaves)\n", chat_input_gap(&chat->input));
    return false;
}

/* A program that wrote the line must not take silence for an answer. */
static void report_long_line(struct chat *chat) {
    struct err e;
    err_set(&e, ERR_TOO_LARGE,
            "a line of the input is longer than %d MiB; it was not said, and nothing after it "
            "was read",
            (int)(CHAT_LINE_MAX_BYTES / MIB));
    chat_report(chat, &e);
    chat->code = EXIT_FAILED;
}

/* Talk until there is nothing more to say. Returns the exit code. */
static int chat_talk(struct chat *chat) {
    bool interrupted = false;
    struct str line;
    greet(chat);
    settle_first(chat);
    if (chat->options->once.len && !chat->leaves) chat_say(chat, chat->options->once);
    if (chat->options->once.len) return chat->code;
    while (!chat->leaves) {
        enum chat_line came =
            chat_input_line(&chat->input, chat->options->json ? "" : "> ", &line);
        if (came == CHAT_OVER) break;
        if (came == CHAT_INTERRUPTED) {
            if (!leaves_at_prompt(chat, interrupted)) {
                interrupted = true;
                continue;
            }
            chat->code = EXIT_INTERRUPTED;
            break;
        }
        interrupted = false;
        chat_input_remember(&chat->input, line);
        take_line(chat, line);
    }
    if (chat->input.too_long) report_long_line(chat);
    part(chat);
    return chat->code;
}

/* --- the command -------------------------------------------------------------------------- */

/* A daemon of our own takes the settings, and no operand. */
int chat_settings(const struct config *config, const char **args, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool is_operand = config->operand_count && (size_t)i == config->operand_at;
        if (!is_operand && strcmp(args[i], "--") != 0) args[kept++] = args[i];
    }
    return kept;
}

int chat_run(const struct chat_options *options) {
    struct chat chat;
    struct err e;
    bool opened = chat_open(&chat, options, &e);
    if (!opened && options->json) show_json_error(stdout, &e);
    int code = opened ? chat_talk(&chat) : cli_fail(EXIT_FAILED, &e);
    chat_close(&chat);
    return code;
}

/* What does not go together, or NULL. */
static const char *chat_misfit(const struct asked *asked, const struct chat_options *options) {
    const char *color = options->color;
    enum thinking_shown thinking;
    if (asked->config->operand_count > 1) return "one agent is talked to at a time";
    if (options->session && options->resumes)
        return "--session and --continue name two sessions";
    if (options->alone && asked->url) return "--alone asks no daemon, and --url names one";
    if (color && strcmp(color, "auto") != 0 && strcmp(color, "on") != 0 &&
        strcmp(color, "off") != 0)
        return "--color must be auto, on or off";
    if (options->thinking && !thinking_shown_parse(options->thinking, &thinking))
        return "--thinking must be shown, folded or hidden";
    return NULL;
}

static bool chat_fits(const struct asked *asked, void *ctx) {
    const char *misfit = chat_misfit(asked, ctx);
    if (misfit) fprintf(stderr, "weir: error: %s\n", misfit);
    return !misfit;
}

static int chat_act(const struct asked *asked, void *ctx) {
    struct chat_options *options = ctx;
    const struct config *config = asked->config;
    char *agent = config->operand_count ? str_dup(config->operands[0]) : NULL;
    options->config = config;
    options->agent = agent;
    options->url = asked->url;
    options->token = asked->token;
    options->json = asked->json;
    options->args = asked->all->rest;
    options->arg_count = chat_settings(config, asked->all->rest, asked->all->rest_count);
    int code = chat_run(options);
    free(agent);
    return code;
}

int command_chat(int arg_count, const char *const *args) {
    struct chat_options options = {.json = false};
    const struct argument_flag flags[] = {{.name = "continue", .given = &options.resumes},
                                          {.name = "alone", .given = &options.alone},
                                          {.name = "session", .value = &options.session},
                                          {.name = "user", .value = &options.user},
                                          {.name = "thinking", .value = &options.thinking},
                                          {.name = "color", .value = &options.color},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .flags = flags,
                                      .takes = TAKES_JSON | TAKES_DAEMON,
                                      .fits = chat_fits,
                                      .act = chat_act};
    return cli_command(arg_count, args, &form, &options);
}
