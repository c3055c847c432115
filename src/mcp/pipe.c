#include "mcp/pipe.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/child.h"
#include "wire/lines.h"

#include <assert.h>
#include <stdlib.h>

#define REST_FIRST_MS 250
#define REST_MAX_MS 30000
#define LIVED_LONG_MS 60000 /* a program that ran this long did not end early */
#define COMPLAINT_LINE_BYTES 512
#define COMPLAINTS_MAX 20 /* lines per COMPLAINTS_MS */
#define COMPLAINTS_MS 1000

struct mcp_pipe {
    struct pipe_options options;
    const struct pipe_events *events;
    void *ctx;
    enum pipe_state state;
    struct child *child; /* NULL unless the program runs */
    struct lines lines, complaints;
    bool feeding, freed;
    uint64_t started_ms, rests_until_ms, rest_ms;
    uint64_t counted_ms; /* when the current count of complaints began */
    unsigned complaint_count;
};

const struct state pipe_states[PIPE_STATE_COUNT] = {
    /* clang-format off */
    [PIPE_DOWN]    = {"down",    TO(PIPE_UP)},
    [PIPE_UP]      = {"up",      TO(PIPE_RESTING) | TO(PIPE_DOWN)},
    [PIPE_RESTING] = {"resting", TO(PIPE_UP) | TO(PIPE_DOWN)},
    /* clang-format on */
};

/* The only function that writes pipe->state. */
static void pipe_move(struct mcp_pipe *pipe, enum pipe_state next) {
    assert(states_allow(pipe_states, pipe->state, next));
    pipe->state = next;
}

/* --- ending ------------------------------------------------------------------------------- */

/* A program that keeps ending early is restarted after growing pauses. */
static void rest(struct mcp_pipe *pipe) {
    uint64_t now_ms = loop_now_ms(pipe->options.loop);
    bool early = now_ms - pipe->started_ms < LIVED_LONG_MS;
    uint64_t doubled = pipe->rest_ms * 2 < REST_MAX_MS ? pipe->rest_ms * 2 : REST_MAX_MS;
    pipe->rest_ms = early && pipe->rest_ms ? doubled : REST_FIRST_MS;
    pipe->rests_until_ms = now_ms + pipe->rest_ms;
    pipe_move(pipe, PIPE_RESTING);
}

static void go_down(struct mcp_pipe *pipe, const struct err *why) {
    pipe->child = NULL;
    rest(pipe);
    log_warning("the MCP server '" STR_FMT "' %s", STR_ARG(pipe->options.name), why->text);
    pipe->events->on_down(why, pipe->ctx);
}

void pipe_fail(struct mcp_pipe *pipe, const char *reason) {
    struct err why;
    if (pipe->state != PIPE_UP) return;
    err_set(&why, ERR_UNAVAILABLE, "%s", reason);
    child_kill(pipe->child);
    go_down(pipe, &why);
}

static void pipe_on_end(const struct child_end *end, void *ctx) {
    struct mcp_pipe *pipe = ctx;
    struct err why;
    int code = end->exit_code > 128 ? end->exit_code - 128 : end->exit_code;
    err_set(&why, ERR_UNAVAILABLE, "ended %s %d", end->exit_code > 128 ? "by signal" : "with",
            code);
    go_down(pipe, &why);
}

/* --- output ------------------------------------------------------------------------------- */

static void take_unread(struct mcp_pipe *pipe, struct str line) {
    log_often(LOG_WARNING,
              "the MCP server '" STR_FMT "' writes what is not a message: " STR_FMT,
              STR_ARG(pipe->options.name), STR_ARG(str_head(line, 80)));
    if (pipe->events->on_unread) pipe->events->on_unread(line, pipe->ctx);
}

static void pipe_take_line(struct mcp_pipe *pipe, struct str line) {
    struct json value;
    struct err e;
    struct buf mended;
    buf_init(&mended, PIPE_LINE_MAX_BYTES);
    if (json_read_mended(line, &mended, &value, &e)) {
        pipe->events->on_message(value, pipe->ctx);
    } else {
        take_unread(pipe, line);
    }
    buf_done(&mended);
}

static void pipe_destroy(struct mcp_pipe *pipe) {
    lines_done(&pipe->lines);
    lines_done(&pipe->complaints);
    free(pipe);
}

/* A callback may end the pipe or its program. */
static void take_lines(struct mcp_pipe *pipe) {
    const struct child *speaker = pipe->child;
    struct str line;
    enum lines_found found;
    while ((found = lines_next(&pipe->lines, &line)) == LINES_ONE) {
        if (line.len) pipe_take_line(pipe, line);
        if (pipe->freed || pipe->child != speaker) return;
    }
    if (found == LINES_TOO_LONG) pipe_fail(pipe, "wrote a line of more than 4 MiB");
}

static void pipe_on_output(struct str bytes, void *ctx) {
    struct mcp_pipe *pipe = ctx;
    pipe->feeding = true;
    if (lines_feed(&pipe->lines, bytes)) {
        take_lines(pipe);
    } else {
        pipe_fail(pipe, "wrote more than there is room for");
    }
    pipe->feeding = false;
    if (pipe->freed) pipe_destroy(pipe);
}

static void log_complaint(struct mcp_pipe *pipe, struct str line) {
    uint64_t now_ms = loop_now_ms(pipe->options.loop);
    if (now_ms - pipe->counted_ms >= COMPLAINTS_MS) {
        if (pipe->complaint_count > COMPLAINTS_MAX)
            log_info("mcp " STR_FMT ": %u more lines were left out",
                     STR_ARG(pipe->options.name), pipe->complaint_count - COMPLAINTS_MAX);
        pipe->counted_ms = now_ms;
        pipe->complaint_count = 0;
    }
    if (pipe->complaint_count++ >= COMPLAINTS_MAX) return;
    log_info("mcp " STR_FMT ": " STR_FMT, STR_ARG(pipe->options.name),
             STR_ARG(str_head(line, COMPLAINT_LINE_BYTES)));
}

/* A line of standard error that is too long is dropped; the server keeps running. */
static void pipe_on_complaint(struct str bytes, void *ctx) {
    struct mcp_pipe *pipe = ctx;
    struct str line;
    enum lines_found found = LINES_TOO_LONG;
    if (lines_feed(&pipe->complaints, bytes)) {
        while ((found = lines_next(&pipe->complaints, &line)) == LINES_ONE) {
            if (line.len) log_complaint(pipe, line);
        }
    }
    if (found == LINES_NONE) return;
    lines_done(&pipe->complaints);
    lines_init(&pipe->complaints, 64 * KIB);
}

static const struct child_sink child_sink = {pipe_on_output, pipe_on_end, pipe_on_complaint};

/* --- public functions --------------------------------------------------------------------- */

static struct str pipe_path_of(const char *const *environment) {
    for (size_t i = 0; environment[i]; i++) {
        if (str_starts(str_from(environment[i]), STR("PATH=")))
            return str_skip(str_from(environment[i]), 5);
    }
    return STR("/usr/local/bin:/usr/bin:/bin");
}

static bool spawn(struct mcp_pipe *pipe, struct err *e) {
    const struct pipe_options *options = &pipe->options;
    struct buf path;
    buf_init(&path, 8 * KIB);
    bool found =
        child_find(str_from(options->args[0]), pipe_path_of(options->environment), &path) ||
        err_set(e, ERR_NOT_FOUND, "there is no program '%s'; give its whole path",
                options->args[0]);
    struct child_options child = {.path = path.at,
                                  .args = options->args,
                                  .environment = options->environment,
                                  .input = STR_EMPTY,
                                  .talks = true,
                                  .guard = CHILD_GUARD_SELF};
    bool started =
        found && child_start(options->loop, &child, &child_sink, pipe, &pipe->child, e);
    buf_done(&path);
    return started;
}

bool pipe_start(struct mcp_pipe *pipe, struct err *e) {
    uint64_t now_ms = loop_now_ms(pipe->options.loop);
    if (pipe->state == PIPE_UP) return true;
    if (pipe->state == PIPE_RESTING && now_ms < pipe->rests_until_ms)
        return err_set(e, ERR_UNAVAILABLE,
                       "the MCP server '" STR_FMT "' has ended; it is started again in %llu ms",
                       STR_ARG(pipe->options.name),
                       (unsigned long long)(pipe->rests_until_ms - now_ms));
    lines_done(&pipe->lines);
    lines_init(&pipe->lines, PIPE_LINE_MAX_BYTES);
    if (!spawn(pipe, e))
        return err_add(e, "the MCP server '" STR_FMT "'", STR_ARG(pipe->options.name));
    pipe->started_ms = now_ms;
    pipe_move(pipe, PIPE_UP);
    return true;
}

/* In one write: the server wakes once, and never has a line without its end. */
bool pipe_send(struct mcp_pipe *pipe, struct str message) {
    struct buf line;
    if (pipe->state != PIPE_UP) return false;
    buf_init(&line, SIZE_MAX);
    buf_append(&line, message);
    buf_append_byte(&line, '\n');
    bool sent = child_write(pipe->child, buf_str(&line));
    buf_done(&line);
    return sent;
}

struct mcp_pipe *pipe_new(const struct pipe_options *options, const struct pipe_events *events,
                          void *ctx) {
    struct mcp_pipe *pipe = MEM_NEW(struct mcp_pipe);
    pipe->options = *options;
    pipe->events = events;
    pipe->ctx = ctx;
    lines_init(&pipe->lines, PIPE_LINE_MAX_BYTES);
    lines_init(&pipe->complaints, 64 * KIB);
    return pipe;
}

void pipe_free(struct mcp_pipe *pipe) {
    if (!pipe) return;
    if (pipe->state == PIPE_UP) child_kill(pipe->child);
    if (pipe->state != PIPE_DOWN) pipe_move(pipe, PIPE_DOWN);
    pipe->freed = true;
    if (!pipe->feeding) pipe_destroy(pipe);
}
