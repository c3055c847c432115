/* One process: its states, and its output as events of a reply. */
#include "agent/process_inner.h"
#include "agent/process_line.h"
#include "agent/process_turn.h"
#include "base/log.h"
#include "base/mem.h"
#include "provider/dialect.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_BYTES (4 * MIB)    /* of its output */
#define UNREAD_MAX_BYTES (64 * KIB) /* when this much waits, its output is not read */
#define TURN_MAX_BYTES (64 * MIB)   /* of a conversation */
#define ERROR_MAX_BYTES 400         /* of its own text about a failure */
#define IDLE_MS (10 * 60 * 1000)    /* idle longer than this, it is ended */
#define HOLD_MS (10 * 1000)         /* how long it may wait for the results of its calls */
#define DRAIN_MS 2000               /* to stop writing after its turn was dropped */
#define UNSENT_MAX 3                /* processes tried before a turn fails */

const struct state process_states[PROCESS_STATE_COUNT] = {
    /* clang-format off */
    [PROCESS_IDLE]     = {"idle",     TO(PROCESS_BUSY) | TO(PROCESS_GONE)},
    [PROCESS_BUSY]     = {"busy",     TO(PROCESS_IDLE) | TO(PROCESS_HELD) |
                                      TO(PROCESS_DRAINING) | TO(PROCESS_GONE)},
    [PROCESS_HELD]     = {"held",     TO(PROCESS_BUSY) | TO(PROCESS_DRAINING) |
                                      TO(PROCESS_GONE)},
    [PROCESS_DRAINING] = {"draining", TO(PROCESS_IDLE) | TO(PROCESS_GONE)},
    [PROCESS_GONE]     = {"gone",     0},
    /* clang-format on */
};

/* The only function that writes process->state after the start. */
static void process_move(struct process *process, enum process_state next) {
    static const uint64_t limits_ms[] = {[PROCESS_IDLE] = IDLE_MS,
                                         [PROCESS_BUSY] = 0,
                                         [PROCESS_HELD] = HOLD_MS,
                                         [PROCESS_DRAINING] = DRAIN_MS,
                                         [PROCESS_GONE] = 0};
    assert(states_allow(process_states, process->state, next));
    process->state = next;
    timer_stop(&process->timer);
    if (next == PROCESS_BUSY) {
        timer_start(&process->timer, process->stall_ms);
    } else if (limits_ms[next]) {
        timer_start(&process->timer, limits_ms[next]);
    }
    if (next == PROCESS_HELD) process->held_ms = loop_now_ms(process->place->loop);
    if (next == PROCESS_IDLE || next == PROCESS_GONE) process_place_serve(process->place);
}

/* --- ending ------------------------------------------------------------------------------- */

static void process_free(struct process *process) {
    if (process->child || process->inside) return;
    list_remove(&process->link);
    timer_stop(&process->timer);
    lines_done(&process->lines);
    buf_done(&process->texts);
    free(process);
}

/* Between enter and leave the process is not freed, even if it ends. */
static void process_enter(struct process *process) {
    process->inside++;
    assert(process->inside > 0);
}

static void process_leave(struct process *process) {
    process->inside--;
    process_free(process);
}

/* End the current call, if any, with `event`. */
static void process_worker_end_call(struct process *process, const struct reply_event *event) {
    struct provider_call *call = process->call;
    if (!call) return;
    process->call = NULL;
    process_call_end(call, event);
}

static void end_child(struct process *process) {
    if (!process->child) return;
    child_kill(process->child);
    process->child = NULL;
    process_move(process, PROCESS_GONE);
}

/* End the process and fail its turn. The caller is inside the process. */
static void break_inside(struct process *process, enum err_code code, const char *reason,
                         struct str why) {
    struct err e;
    err_set(&e, code, "the agent '" STR_FMT "' " STR_FMT, STR_ARG(process->name), STR_ARG(why));
    log_warning("%s", e.text);
    struct reply_event failed = reply_event_failed(&e, str_from(reason));
    end_child(process);
    process_worker_end_call(process, &failed);
}

static void process_break(struct process *process, enum err_code code, const char *reason,
                          struct str why) {
    process_enter(process);
    break_inside(process, code, reason, why);
    process_leave(process);
}

void process_kill(struct process *process) {
    if (!process->child) return;
    end_child(process);
    process_free(process);
}

static void process_worker_on_end(const struct child_end *end, void *ctx) {
    struct process *process = ctx;
    struct buf why;
    buf_init(&why, KIB);
    if (end->signal) {
        buf_printf(&why, "was ended by signal %d in the middle of a turn", end->signal);
    } else {
        buf_printf(&why, "ended with status %d in the middle of a turn", end->exit_code);
    }
    process->child = NULL;
    bool asked = process->state == PROCESS_BUSY;
    process_enter(process);
    process_move(process, PROCESS_GONE);
    if (asked) {
        struct err e;
        err_set(&e, ERR_UNAVAILABLE, "the agent '" STR_FMT "' " STR_FMT, STR_ARG(process->name),
                STR_ARG(buf_str(&why)));
        log_warning("%s", e.text);
        struct reply_event failed = reply_event_failed(&e, STR(AGENT_ENDED));
        process_worker_end_call(process, &failed);
    }
    buf_done(&why);
    process_leave(process);
}

static void process_worker_on_timer(void *ctx) {
    struct process *process = ctx;
    bool paused = process->call && process->call->answer.gate.closed;
    switch (process->state) {
    case PROCESS_BUSY:
        if (paused) {
            timer_start(&process->timer, process->stall_ms);
        } else {
            process_break(process, ERR_DEADLINE_EXCEEDED, AGENT_STALLED,
                          STR("said nothing for too long"));
        }
        return;
    case PROCESS_HELD: process_drop(process); return;
    default: process_kill(process);
    }
}

/* --- lines of a turn ---------------------------------------------------------------------- */

static void give(struct process *process, const struct reply_event *event) {
    (void)answer_give(&process->call->answer, event); /* the caller checks process->call */
}

/* The process leaves the call before reporting the end,
 * because the listener may make the next call at once. */
static void end_reply(struct process *process, enum process_state next) {
    struct provider_call *call = process->call;
    struct buf model;
    buf_init(&model, KIB);
    buf_append(&model,
               call->answer.model.len ? buf_str(&call->answer.model) : call->request->model);
    process_move(process, next);
    struct reply_event done = {.kind = REPLY_DONE, .model = buf_str(&model)};
    process_worker_end_call(process, &done);
    buf_done(&model);
}

static void process_worker_on_text(struct process *process, const struct process_line *line,
                                   enum reply_kind kind) {
    struct reply_event event = {.kind = kind, .text = line->text};
    give(process, &event);
}

static void on_calls(struct process *process, const struct process_line *line,
                     struct arena *arena) {
    struct json_reader reader = json_enter(line->calls);
    struct json call;
    while (process->call && json_next_item(&reader, &call)) {
        struct reply_event event = {.kind = REPLY_TOOL_CALL};
        process_call_read(call, arena, &event.tool, &event.args);
        process->calls++;
        give(process, &event);
    }
    if (process->call) end_reply(process, PROCESS_HELD);
}

static void on_ask(struct process *process, const struct process_line *line) {
    struct reply_event event = {.kind = REPLY_APPROVAL, .text = line->text, .args = STR("{}")};
    process->calls++;
    give(process, &event);
    if (process->call) end_reply(process, PROCESS_HELD);
}

static void process_worker_on_usage(struct process *process, const struct process_line *line) {
    answer_count(&process->call->answer, &line->usage, line->model);
}

static void process_worker_on_error(struct process *process, const struct process_line *line) {
    struct err e;
    struct str said = str_head(line->text, ERROR_MAX_BYTES);
    err_set(&e, line->code, "the agent '" STR_FMT "' failed%s" STR_FMT, STR_ARG(process->name),
            said.len ? ": " : "", STR_ARG(said));
    struct reply_event failed = reply_event_failed(&e, STR(AGENT_FAILED));
    process_move(process, PROCESS_IDLE);
    process_worker_end_call(process, &failed);
}

static void process_worker_act(struct process *process, const struct process_line *line,
                               struct arena *arena) {
    switch (line->kind) {
    case PROCESS_TEXT: process_worker_on_text(process, line, REPLY_TEXT); return;
    case PROCESS_THINKING: process_worker_on_text(process, line, REPLY_THINKING); return;
    case PROCESS_STEP: process_worker_on_text(process, line, REPLY_NOTE); return;
    case PROCESS_CALL: on_calls(process, line, arena); return;
    case PROCESS_ASK: on_ask(process, line); return;
    case PROCESS_USAGE: process_worker_on_usage(process, line); return;
    case PROCESS_DONE: end_reply(process, PROCESS_IDLE); return;
    case PROCESS_ERROR: process_worker_on_error(process, line); return;
    }
}

/* Lines of a dropped turn are ignored, except its end. */
static void process_worker_take(struct process *process, const struct process_line *line,
                                struct arena *arena) {
    bool ours = str_equal(line->turn, str_from(process->turn));
    bool ends = line->kind == PROCESS_DONE || line->kind == PROCESS_ERROR;
    if (process->state == PROCESS_BUSY && ours) {
        timer_start(&process->timer, process->stall_ms);
        process_worker_act(process, line, arena);
    } else if (process->state == PROCESS_DRAINING && ours && ends) {
        process_move(process, PROCESS_IDLE);
    } else if (process->state == PROCESS_BUSY || process->state == PROCESS_IDLE) {
        break_inside(process, ERR_INTERNAL, AGENT_PROTOCOL,
                     STR("wrote a line outside of its turn"));
    }
}

static void process_worker_take_line(struct process *process, struct str text) {
    struct arena *arena = arena_new(2 * text.len + KIB);
    struct process_line line;
    struct err e;
    if (process_line_read(text, arena, &line, &e)) {
        process_worker_take(process, &line, arena);
    } else {
        struct buf why;
        buf_init(&why, KIB);
        buf_printf(&why, "wrote a line that is not part of the protocol: %s", e.text);
        break_inside(process, ERR_INTERNAL, AGENT_PROTOCOL, buf_str(&why));
        buf_done(&why);
    }
    arena_free(arena);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool may_read(const struct process *process) {
    if (!process->child || process->state == PROCESS_HELD) return false;
    return !process->call || !process->call->answer.gate.closed;
}

static void read_lines(struct process *process) {
    struct str line;
    while (may_read(process)) {
        enum lines_found found = lines_next(&process->lines, &line);
        if (found == LINES_NONE) return;
        if (found == LINES_TOO_LONG) {
            break_inside(process, ERR_INTERNAL, AGENT_PROTOCOL,
                         STR("wrote a line that is too long"));
            return;
        }
        process_worker_take_line(process, line);
    }
}

void process_read(struct process *process) {
    process_enter(process);
    if (process->call) (void)answer_release(&process->call->answer);
    read_lines(process);
    if (process->child) { /* NOLINT(clang-analyzer-unix.Malloc): `inside` kept it */
        bool full = !may_read(process) && lines_waiting(&process->lines) > UNREAD_MAX_BYTES;
        child_hold(process->child, full);
    }
    process_leave(process);
}

static void process_worker_on_output(struct str bytes, void *ctx) {
    struct process *process = ctx;
    if (!lines_feed(&process->lines, bytes)) {
        process_break(process, ERR_INTERNAL, AGENT_PROTOCOL,
                      STR("wrote more than anybody can read"));
        return;
    }
    process_read(process);
}

/* Log its standard error for the operator. */
static void process_worker_on_complaint(struct str bytes, void *ctx) {
    const struct process *process = ctx;
    struct str said = str_trim(bytes);
    if (said.len)
        log_info("agent " STR_FMT ": " STR_FMT, STR_ARG(process->name),
                 STR_ARG(str_head(said, KIB)));
}

/* --- turns -------------------------------------------------------------------------------- */

static bool send_turn(struct process *process, const struct provider_request *request,
                      struct buf *out) {
    struct process_place *place = process->place;
    snprintf(process->turn, sizeof(process->turn), "%llu-%llu",
             (unsigned long long)request->run, (unsigned long long)++place->turns);
    process->run = request->run;
    process->calls = process_turn_calls(request);
    return process_turn_append(request, str_from(process->turn), out) &&
           child_write(process->child, buf_str(out));
}

static bool send_results(struct process *process, const struct provider_request *request,
                         struct buf *out) {
    return process_turn_results(request, str_from(process->turn), process->results, out) &&
           child_write(process->child, buf_str(out));
}

/* No process could be given this turn, so the one that was to have it goes on. One that waits for
 * results must drop its turn. */
static void refuse_turn(struct process *process, bool goes_on) {
    struct provider_call *call = process->call;
    struct err e;
    err_set(&e, ERR_INVALID_ARGUMENT,
            "the agent '" STR_FMT
            "' cannot be given more than %d MiB in one line: what the turn's "
            "messages, config and metadata are together",
            STR_ARG(process->name), (int)(TURN_MAX_BYTES / MIB));
    struct reply_event failed = reply_event_failed(&e, STR(MODEL_CANNOT_CARRY));
    process->call = NULL;
    if (goes_on) {
        process_drop(process);
    } else {
        process_move(process, PROCESS_IDLE);
    }
    process_call_end(call, &failed);
}

/* It has not read its turn, so the turn can go to another process. A held process may have
 * died. */
static void try_another(struct process *process) {
    struct provider_call *call = process->call;
    if (++call->unsent >= UNSENT_MAX) {
        process_break(process, ERR_UNAVAILABLE, AGENT_ENDED, STR("does not read its turn"));
        return;
    }
    struct process_place *place = process->place;
    process->call = NULL;
    call->process = NULL;
    list_prepend(&place->waiting, &call->link);
    process_kill(process);
    process_place_serve(place);
}

void process_take(struct process *process, struct provider_call *call) {
    struct buf out;
    buf_init(&out, TURN_MAX_BYTES);
    bool goes_on = process->state == PROCESS_HELD;
    call->process = process;
    process->call = call;
    process_move(process, PROCESS_BUSY);
    bool sent = goes_on ? send_results(process, call->request, &out)
                        : send_turn(process, call->request, &out);
    bool fits = buf_ok(&out);
    buf_done(&out);
    if (!fits) {
        refuse_turn(process, goes_on);
        return;
    }
    process->results = process->calls;
    if (!sent) {
        try_another(process);
        return;
    }
    if (lines_waiting(&process->lines)) loop_defer(process->place->loop, &call->task);
}

void process_drop(struct process *process) {
    struct buf out;
    if (process->state != PROCESS_BUSY && process->state != PROCESS_HELD) return;
    buf_init(&out, KIB);
    process_move(process, PROCESS_DRAINING);
    bool sent = process_turn_cancel(str_from(process->turn), &out) &&
                child_write(process->child, buf_str(&out));
    buf_done(&out);
    if (sent) {
        process_read(process);
    } else {
        process_kill(process);
    }
}

bool process_start(struct process_place *place, const struct process_provider *of,
                   struct process **ret, struct err *e) {
    static const struct child_sink sink = {.on_output = process_worker_on_output,
                                           .on_end = process_worker_on_end,
                                           .on_complaint = process_worker_on_complaint};
    const struct child_options options = {.path = of->path,
                                          .args = of->args,
                                          .environment = of->environment,
                                          .input = STR_EMPTY,
                                          .talks = true,
                                          .guard = CHILD_GUARD_SELF};
    struct process *process = MEM_NEW(struct process);
    if (!child_start(place->loop, &options, &sink, process, &process->child, e)) {
        free(process);
        return err_add(e, "agent '" STR_FMT "'", STR_ARG(of->name));
    }
    buf_init(&process->texts, MIB);
    buf_append(&process->texts, of->key);
    buf_append(&process->texts, of->name);
    process->key = str_head(buf_str(&process->texts), of->key.len);
    process->name = str_skip(buf_str(&process->texts), of->key.len);
    process->place = place;
    process->stall_ms = of->stall_ms;
    process->state = PROCESS_IDLE;
    timer_init(&process->timer, place->loop, process_worker_on_timer, process);
    lines_init(&process->lines, LINE_MAX_BYTES);
    list_append(&place->processes, &process->link);
    *ret = process;
    return true;
}
