#include "validate/target.h"

#include "base/clock.h"
#include "base/mem.h"
#include "loop/free_port.h"
#include "validate/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Between two questions to a server that starts. */
#define BOOT_PAUSE_MS 50

/* One of them takes at most this long. */
#define BOOT_ASK_MS 5000

/* A process that was asked to end. */
#define STOP_MS 10000

/* Docker's and podman's `run`: they started no container. */
#define ENGINE_FAILED 125

#define PORT_MARK STR("{port}")
#define ENVIRONMENT_MAX_BYTES (2 * MIB)

extern char **environ;

/* --- the process --------------------------------------------------------------------------- */

/* Keep the newest output. */
static void keep_output(struct str bytes, void *ctx) {
    struct target *target = ctx;
    struct buf *output = &target->output;
    if (bytes.len > TARGET_OUTPUT_MAX_BYTES)
        bytes = str_skip(bytes, bytes.len - TARGET_OUTPUT_MAX_BYTES);
    if (output->len + bytes.len > TARGET_OUTPUT_MAX_BYTES)
        buf_drop(output, output->len + bytes.len - TARGET_OUTPUT_MAX_BYTES);
    buf_append(output, bytes);
}

static void target_on_end(const struct child_end *end, void *ctx) {
    struct target *target = ctx;
    target->child = NULL;
    target->ended = true;
    target->exit_code = end->exit_code;
    target->exit_signal = end->signal;
    if (target->stopping) loop_stop(target->asker->loop);
}

static const struct child_sink child_sink = {keep_output, target_on_end, keep_output};

/* --- its environment: lines that each end in NUL --------------------------------------------- */

static void target_add_line(struct buf *lines, const char *line) {
    buf_append(lines, str_from(line));
    buf_append_byte(lines, '\0');
}

static bool is_ours(const char *line) {
    return str_starts(str_from(line), STR("PORT=")) ||
           str_starts(str_from(line), STR("AGENT_AUTH_TOKEN=")) ||
           str_starts(str_from(line), STR("CRAWBL_MCP_SIGNING_KEY="));
}

static void add_all(struct buf *lines, const char *const *from) {
    for (; from && *from; from++) target_add_line(lines, *from);
}

static void write_environment(const struct target *target, const struct target_boot *boot,
                              uint16_t port, struct buf *lines) {
    for (char **line = environ; *line; line++) {
        if (!is_ours(*line)) target_add_line(lines, *line);
    }
    if (target->kind == TARGET_COMMAND) {
        buf_printf(lines, "PORT=%u", port);
        buf_append_byte(lines, '\0');
    }
    if (!boot->open) {
        buf_append(lines, STR("AGENT_AUTH_TOKEN="));
        buf_append(lines, target->options->token);
        buf_append_byte(lines, '\0');
    }
    if (target->options->signing_key.len) {
        buf_append(lines, STR("CRAWBL_MCP_SIGNING_KEY="));
        buf_append(lines, target->options->signing_key);
        buf_append_byte(lines, '\0');
    }
    add_all(lines, target->options->more);
    add_all(lines, boot->more);
}

/* Views of the lines, ended by NULL; free() the list. */
static const char **list_of(struct str lines) {
    size_t count = 0, at = 0;
    for (size_t i = 0; i < lines.len; i++) count += lines.at[i] == '\0';
    const char **list = mem_zero(count + 1, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        list[i] = lines.at + at;
        at += strlen(lines.at + at) + 1;
    }
    return list;
}

/* --- a command ------------------------------------------------------------------------------ */

static void put_with_port(struct str word, uint16_t port, struct buf *out) {
    while (word.len) {
        size_t at = str_find(word, PORT_MARK);
        buf_append(out, str_head(word, at));
        if (at < word.len) buf_printf(out, "%u", port);
        word = str_skip(word, at + PORT_MARK.len);
    }
    buf_append_byte(out, '\0');
}

static void write_command(const struct target *target, uint16_t port, struct buf *words) {
    for (const char *const *word = target->options->command; *word; word++)
        put_with_port(str_from(*word), port, words);
}

static bool start_process(struct target *target, struct str words, struct str lines,
                          struct err *e) {
    struct buf path;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes our environment */
    struct str search = str_from(getenv("PATH"));
    const char **args = list_of(words), **environment = list_of(lines);
    buf_init(&path, 16 * KIB);
    bool started =
        child_find(str_from(args[0]), search, &path)
            ? child_start(target->asker->loop,
                          &(struct child_options){.path = path.at,
                                                  .args = args,
                                                  .environment = environment,
                                                  .reports = true,
                                                  .guard = CHILD_GUARD_SELF},
                          &child_sink, target, &target->child, e)
            : err_set(e, ERR_NOT_FOUND, "there is no program '%s' that can be run", args[0]);
    buf_done(&path);
    free(args);
    free(environment);
    return started;
}

static bool start_target(struct target *target, const struct target_boot *boot, struct err *e) {
    struct buf words, lines;
    uint16_t port;
    if (!free_port(&port, e)) return false;
    buf_clear(&target->url);
    buf_printf(&target->url, "http://127.0.0.1:%u", port);
    buf_init(&words, ENVIRONMENT_MAX_BYTES);
    buf_init(&lines, ENVIRONMENT_MAX_BYTES);
    if (target->kind == TARGET_COMMAND)
        write_command(target, port, &words);
    else
        container_command(target, boot, port, &words);
    write_environment(target, boot, port, &lines);
    bool started = buf_ok(&words) && buf_ok(&lines)
                       ? start_process(target, buf_str(&words), buf_str(&lines), e)
                       : err_set(e, ERR_TOO_LARGE, "the command is too long");
    buf_done(&words);
    buf_done(&lines);
    return started;
}

/* --- waiting for it -------------------------------------------------------------------------- */

static bool target_is_healthy(const struct reply *reply) {
    struct json status = json_find(reply->json, STR("status"));
    return reply->status == 200 &&
           (json_is(status, STR("healthy")) || json_is(status, STR("ok")));
}

static bool is_loading(const struct reply *reply) {
    return reply->status == 200 &&
           json_is(json_find(reply->json, STR("status")), STR("loading"));
}

static void ask_target(struct target *target, struct str method, struct str path,
                       uint64_t timeout_ms, struct reply *ret) {
    struct buf fields;
    buf_init(&fields, 64 * KIB);
    bool posts = str_equal(method, STR("POST"));
    if (posts && target->options->token.len)
        buf_printf(&fields, "Authorization: Bearer " STR_FMT "\r\n",
                   STR_ARG(target->options->token));
    if (posts) buf_append(&fields, STR("Content-Type: application/json\r\n"));
    ask(target->asker,
        &(struct question){.url = buf_str(&target->url),
                           .method = method,
                           .path = path,
                           .fields = buf_str(&fields),
                           .body = posts ? STR("{\"input\":\"ping\"}") : STR_EMPTY,
                           .timeout_ms = timeout_ms},
        ret);
    buf_done(&fields);
}

static bool still_loads(struct target *target) {
    struct reply reply;
    ask_target(target, STR("GET"), STR("/health"), BOOT_ASK_MS, &reply);
    bool loads = is_loading(&reply);
    reply_done(&reply);
    return loads;
}

/* Loading may have ended before the endpoint answered. So an answer is one of a target that
 * loads if it is the 503, or if /health says loading after it too. */
static bool ask_loading(struct target *target, struct str path, struct loading_answer *ret) {
    ask_target(target, STR("POST"), path, target->options->timeout_ms, &ret->reply);
    ret->seen = ret->reply.status == 503 || still_loads(target);
    if (!ret->seen) reply_done(&ret->reply);
    return ret->seen;
}

/* What its other endpoints say meanwhile. */
static void look_while_loading(struct target *target) {
    struct target_start *start = &target->start;
    if (start->loading++) return;
    if (ask_loading(target, STR("/invoke"), &start->invoke))
        (void)ask_loading(target, STR("/stream"), &start->stream);
}

/* Take what /health says. True: it is healthy. */
static bool take_health(struct target *target, struct reply *reply) {
    struct target_start *start = &target->start;
    start->answered |= reply->status != 0;
    start->healthy = target_is_healthy(reply);
    /* An engine takes connections for a container that does not listen yet, and drops them. */
    bool dropped = target->kind == TARGET_IMAGE && !reply->status;
    bool refused = dropped || (reply_is_unreachable(reply) && !reply->timed_out);
    if (is_loading(reply)) {
        look_while_loading(target);
    } else if (!start->healthy && !refused && !start->odd++) {
        start->odd_one = *reply;
        return false;
    }
    reply_done(reply);
    return start->healthy;
}

static void wait_until_healthy(struct target *target) {
    uint64_t late_ms = clock_mono_ms() + target->options->boot_timeout_ms;
    for (uint64_t now = clock_mono_ms(); now < late_ms && !target->ended;
         now = clock_mono_ms()) {
        struct reply reply;
        uint64_t left_ms = late_ms - now;
        bool up = false;
        ask_target(target, STR("GET"), STR("/health"),
                   left_ms < BOOT_ASK_MS ? left_ms : BOOT_ASK_MS, &reply);
        up = target->options->any_answer && reply.connected && !reply.timed_out;
        if (take_health(target, &reply)) return;
        if (up && !target->start.loading) {
            target->start.answered = true;
            return;
        }
        /* A server that runs already does not become another one by being asked again. */
        bool loads = target->start.loading && !target->start.odd;
        if (target->kind == TARGET_URL && !loads) return;
        asker_wait(target->asker, BOOT_PAUSE_MS);
    }
}

/* --- start and end --------------------------------------------------------------------------- */

static void start_init(struct target_start *start) {
    *start = (struct target_start){.answered = false};
}

static void start_done(struct target_start *start) {
    if (start->odd) reply_done(&start->odd_one);
    if (start->invoke.seen) reply_done(&start->invoke.reply);
    if (start->stream.seen) reply_done(&start->stream.reply);
    start_init(start);
}

/* The end of an error's text: this much of what the process printed last. */
#define QUOTED_BYTES 300

/* Whether nothing of it is left. A container may outlive the engine's command. */
static bool is_gone(const struct target *target) {
    return target->ended &&
           (target->kind == TARGET_COMMAND ||
            (target->kind == TARGET_IMAGE && target->exit_code == ENGINE_FAILED));
}

/* Whether it is gone while its port takes connections. All its processes are ended with it, so
 * these are another program's. */
static bool is_replaced(struct target *target) {
    struct reply reply;
    if (!is_gone(target)) return false;
    ask_target(target, STR("GET"), STR("/health"), BOOT_ASK_MS, &reply);
    bool connected = reply.connected;
    reply_done(&reply);
    return connected;
}

static bool explain_end_with(const struct target *target, bool replaced, struct str said,
                             struct err *e) {
    const char *says = said.len ? "; its last output:\n" : "; it printed nothing";
    const char *other = replaced ? ", and another program answers on its port" : "";
    if (target->ended && target->exit_signal)
        return err_set(e, ERR_UNAVAILABLE, "the target was ended by signal %d%s%s" STR_FMT,
                       target->exit_signal, other, says, STR_ARG(said));
    if (target->ended)
        return err_set(e, ERR_UNAVAILABLE, "the target ended with exit code %d%s%s" STR_FMT,
                       target->exit_code, other, says, STR_ARG(said));
    return err_set(
        e, ERR_UNAVAILABLE,
        "the target did not answer GET /health within %llu s (--boot-timeout)%s" STR_FMT,
        (unsigned long long)(target->options->boot_timeout_ms / 1000), says, STR_ARG(said));
}

static bool explain_end(const struct target *target, bool replaced, struct err *e) {
    struct str said = str_trim(buf_str(&target->output));
    struct buf text;
    if (said.len > QUOTED_BYTES) said = str_skip(said, said.len - QUOTED_BYTES);
    buf_init(&text, (size_t)4 * QUOTED_BYTES);
    evidence_append(&text, said, target->asker->secrets, target->asker->secret_count);
    explain_end_with(target, replaced, buf_str(&text), e);
    buf_done(&text);
    return false;
}

bool target_boot(struct target *target, const struct target_boot *boot, struct err *e) {
    target_stop(target);
    start_done(&target->start);
    buf_clear(&target->output);
    target->ended = false;
    if (target->kind != TARGET_URL && !start_target(target, boot, e)) return false;
    wait_until_healthy(target);
    /* One that could not listen, because another program does, ends about now. */
    if (target->kind == TARGET_COMMAND && !target->ended)
        asker_wait(target->asker, BOOT_PAUSE_MS);
    if (target->start.answered && !target->ended) return true;
    if (target->kind != TARGET_URL) return explain_end(target, is_replaced(target), e);
    return err_set(e, ERR_UNAVAILABLE, "nothing answers at " STR_FMT "%s%s",
                   STR_ARG(buf_str(&target->url)), target->start.odd ? ": " : "",
                   target->start.odd ? target->start.odd_one.failed.text : "");
}

bool target_is_replaced(struct target *target, struct err *e) {
    if (!is_replaced(target)) return false;
    (void)explain_end(target, true, e);
    return true;
}

static void on_stop_late(void *ctx) {
    struct target *target = ctx;
    loop_stop(target->asker->loop);
}

/* Wait for its end, so that what it holds (a port, a data folder) is free again. */
void target_stop(struct target *target) {
    struct timer timer;
    if (target->kind == TARGET_IMAGE && target->child) container_kill(target);
    if (!target->child) return;
    timer_init(&timer, target->asker->loop, on_stop_late, target);
    timer_start(&timer, STOP_MS);
    target->stopping = true;
    child_stop(target->child);
    loop_run(target->asker->loop);
    timer_stop(&timer);
    target->stopping = false;
    if (target->child) child_kill(target->child);
    target->child = NULL;
}

bool target_open(const struct target_options *options, struct asker *asker, struct target *ret,
                 struct err *e) {
    struct forward_server server;
    *ret = (struct target){.options = options, .asker = asker, .kind = TARGET_URL};
    if (options->command) ret->kind = TARGET_COMMAND;
    if (options->image.len) ret->kind = TARGET_IMAGE;
    buf_init(&ret->url, 64 * KIB);
    buf_init(&ret->output, TARGET_OUTPUT_MAX_BYTES);
    buf_init(&ret->engine, 16 * KIB);
    buf_init(&ret->container, 256);
    buf_append(&ret->url, options->url);
    bool good = ret->kind == TARGET_IMAGE ? container_find_engine(ret, e)
                                          : ret->kind == TARGET_COMMAND ||
                                                forward_server_of(options->url, &server, e);
    if (!good) target_done(ret);
    return good;
}

void target_done(struct target *target) {
    target_stop(target);
    start_done(&target->start);
    buf_done(&target->url);
    buf_done(&target->output);
    buf_done(&target->engine);
    buf_done(&target->container);
}
