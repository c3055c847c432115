#include "tool/command.h"

#include "base/mem.h"
#include "base/units.h"
#include "base/utf8.h"
#include "loop/child.h"
#include "loop/slots.h"

#include <stdatomic.h>
#include <stdlib.h>

#define WAITING_MAX 10000    /* calls that may wait */
#define TAIL_BYTES 320       /* of standard error, shown to the model */
#define VARIABLE_BYTES 4096  /* of a variable that names the caller */
#define ESCAPED_BYTES 6      /* the longest JSON escape of one byte */
#define RESULT_REST_BYTES 64 /* of a result, besides the output */

/* References: one of the tool, and one of each call, because the mail of a slot may arrive
 * late. */
struct command {
    struct tool base;
    atomic_uint refs;
    struct schema *schema;
    struct slots *slots;
    char *name, *description, *parameters, *path, *pick;
    const char **args, **environment; /* copies; each ends with NULL */
    size_t output_max_bytes;
    enum tool_output_form form;
};

/* Variables that name the caller. */
enum { CALLER_COUNT = 6 };

struct tool_call {
    struct command *command; /* a reference */
    struct loop *loop;
    struct slot slot;
    struct task begin;   /* starts the program, once it has a slot */
    struct child *child; /* NULL: not running */
    bool abandoned;      /* freed when the slot's mail arrives */
    char *args;          /* until the program runs */
    char *callers[CALLER_COUNT];
    struct buf output;
    struct buf tail; /* the end of standard error; at most twice TAIL_BYTES */
    tool_done_fn *done;
    void *ctx;
};

/* --- a list of texts ---------------------------------------------------------------------- */

/* One block: the pointers, then the texts. */
static const char **copy_list(const char *const *list) {
    size_t count = 0, bytes = 0;
    for (; list && list[count]; count++) bytes += strlen(list[count]) + 1;
    const char **copy = mem_zero(1, (count + 1) * sizeof(char *) + bytes);
    char *at = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(list[i]) + 1;
        copy[i] = memcpy(at, list[i], len);
        at += len;
    }
    return copy;
}

/* --- the end ------------------------------------------------------------------------------ */

static void command_unref(struct command *command) {
    if (atomic_fetch_sub(&command->refs, 1) != 1) return;
    schema_free(command->schema);
    slots_free(command->slots);
    free(command->name);
    free(command->description);
    free(command->parameters);
    free(command->path);
    free(command->pick);
    free(command->args);
    free(command->environment);
    free(command);
}

static void command_call_free(struct tool_call *call) {
    free(call->args);
    for (size_t i = 0; i < CALLER_COUNT; i++) free(call->callers[i]);
    buf_done(&call->output);
    buf_done(&call->tail);
    command_unref(call->command);
    free(call);
}

/* If the slot's mail is still to come, it frees the call. */
static void command_call_leave(struct tool_call *call) {
    call->abandoned = true;
    task_cancel(&call->begin);
    if (call->child) child_kill(call->child);
    call->child = NULL;
    if (slots_withdraw(&call->slot) || slots_leave(&call->slot)) command_call_free(call);
}

/* The call must not be touched after `done`. */
static void call_answer(struct tool_call *call, struct str result, const struct err *failed) {
    tool_done_fn *done = call->done;
    void *ctx = call->ctx;
    struct buf kept;
    buf_init(&kept, SIZE_MAX);
    buf_append(&kept, result);
    command_call_leave(call);
    done(failed ? STR_EMPTY : buf_str(&kept), failed, ctx);
    buf_done(&kept);
}

/* --- output ------------------------------------------------------------------------------- */

static void answer_too_long(struct tool_call *call) {
    struct err why;
    char room[32];
    struct buf limit = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    units_append_size(&limit, call->command->output_max_bytes);
    err_set(&why, ERR_EFFECT_UNKNOWN,
            "tool '%s' wrote more than " STR_FMT " and was ended; the setting tools.%s.output "
            "allows more",
            call->command->name, STR_ARG(buf_str(&limit)), call->command->name);
    call_answer(call, STR_EMPTY, &why);
}

static void command_on_output(struct str bytes, void *ctx) {
    struct tool_call *call = ctx;
    if (!buf_append(&call->output, bytes)) answer_too_long(call);
}

static void command_on_complaint(struct str bytes, void *ctx) {
    struct tool_call *call = ctx;
    if (bytes.len > TAIL_BYTES) bytes = str_skip(bytes, bytes.len - TAIL_BYTES);
    if (call->tail.len + bytes.len > (size_t)2 * TAIL_BYTES)
        buf_drop(&call->tail, call->tail.len - TAIL_BYTES);
    buf_append(&call->tail, bytes);
}

/* The last bytes, beginning at a character. */
static struct str tail_of(const struct tool_call *call) {
    struct str tail = str_trim(buf_str(&call->tail));
    if (tail.len > TAIL_BYTES) tail = str_skip(tail, tail.len - TAIL_BYTES);
    while (tail.len && ((unsigned char)tail.at[0] & 0xC0) == 0x80) tail = str_skip(tail, 1);
    return tail;
}

/* A guard exits with 128 plus the signal number if a signal ended the program. */
static bool say_failed(const struct tool_call *call, const struct child_end *end,
                       struct err *e) {
    int number = end->signal ? end->signal : end->exit_code - 128;
    struct str tail = tail_of(call);
    const char *between = tail.len ? ": " : "";
    struct buf shown;
    buf_init(&shown, 4 * TAIL_BYTES);
    utf8_append_repaired(&shown, tail);
    if (end->signal || end->exit_code > 128) {
        err_set(e, ERR_EFFECT_UNKNOWN, "tool '%s' was ended by signal %d%s" STR_FMT,
                call->command->name, number, between, STR_ARG(buf_str(&shown)));
    } else {
        err_set(e, ERR_UNKNOWN, "tool '%s' failed with status %d%s" STR_FMT,
                call->command->name, end->exit_code, between, STR_ARG(buf_str(&shown)));
    }
    buf_done(&shown);
    return false;
}

static bool command_write_result(const struct tool_call *call, const struct child_end *end,
                                 struct buf *out, struct err *e) {
    const struct command *command = call->command;
    if (end->exit_code != 0) return say_failed(call, end, e);
    return tool_output_write(buf_str(&call->output), command->form, str_from(command->pick),
                             out, e) ||
           err_add(e, "tool '%s'", command->name);
}

static void command_on_end(const struct child_end *end, void *ctx) {
    struct tool_call *call = ctx;
    struct buf result;
    struct err why;
    buf_init(&result, ESCAPED_BYTES * call->output.len + RESULT_REST_BYTES);
    call->child = NULL;
    bool done = command_write_result(call, end, &result, &why);
    call_answer(call, buf_str(&result), done ? NULL : &why);
    buf_done(&result);
}

/* --- starting ----------------------------------------------------------------------------- */

static void start_program(void *ctx) {
    static const struct child_sink sink = {command_on_output, command_on_end,
                                           command_on_complaint};
    struct tool_call *call = ctx;
    const struct command *command = call->command;
    struct err why;
    size_t count = 0;
    while (command->environment[count]) count++;
    const char **environment = mem_zero(count + CALLER_COUNT + 1, sizeof(char *));
    for (size_t i = 0; i < CALLER_COUNT; i++) environment[i] = call->callers[i];
    for (size_t i = 0; i < count; i++) environment[CALLER_COUNT + i] = command->environment[i];
    struct child_options options = {.path = command->path,
                                    .args = command->args,
                                    .environment = environment,
                                    .input = str_from(call->args),
                                    .reports = true,
                                    .guard = CHILD_GUARD_SELF};
    bool started = child_start(call->loop, &options, &sink, call, &call->child, &why);
    free(environment);
    if (started) return;
    err_add(&why, "tool '%s'", command->name);
    call_answer(call, STR_EMPTY, &why);
}

static void command_on_slot(void *ctx) {
    struct tool_call *call = ctx;
    if (call->abandoned) {
        command_call_free(call);
    } else {
        start_program(call);
    }
}

/* "NAME=value"; empty if the value contains a byte that no variable can hold. */
static char *variable(const char *name, struct str value) {
    struct buf text;
    bool fits = str_find_byte(value, '\0') == value.len;
    buf_init(&text, VARIABLE_BYTES);
    buf_printf(&text, "%s=", name);
    if (fits) buf_append(&text, value);
    char *kept = str_dup(buf_str(&text));
    buf_done(&text);
    return kept;
}

static void note_callers(struct tool_call *call, const struct tool_request *request) {
    char **callers = call->callers;
    callers[0] = variable("WEIR_TOOL", str_from(call->command->name));
    callers[1] = variable("WEIR_CALL_ID", request->id);
    callers[2] = variable("WEIR_AGENT", request->agent);
    callers[3] = variable("WEIR_WORKSPACE", request->workspace);
    callers[4] = variable("WEIR_USER", request->user);
    callers[5] = variable("WEIR_SESSION", request->session);
}

static void command_on_refused(void *ctx) {
    struct tool_call *call = ctx;
    struct err why;
    err_set(&why, ERR_RESOURCE_EXHAUSTED,
            "tool '%s' was not called: %d calls of it wait already", call->command->name,
            WAITING_MAX);
    call_answer(call, STR_EMPTY, &why);
}

static struct tool_call *command_start(struct tool *tool, struct loop *loop,
                                       const struct tool_request *request, tool_done_fn *done,
                                       void *ctx) {
    struct command *command = CONTAINER_OF(tool, struct command, base);
    struct tool_call *call = MEM_NEW(struct tool_call);
    atomic_fetch_add(&command->refs, 1);
    call->command = command;
    call->loop = loop;
    call->args = str_dup(request->args);
    call->done = done;
    call->ctx = ctx;
    call->slot = (struct slot){.loop = loop, .granted = command_on_slot, .ctx = call};
    buf_init(&call->output, command->output_max_bytes);
    buf_init(&call->tail, (size_t)2 * TAIL_BYTES);
    note_callers(call, request);
    enum slots_answer answer =
        slots_enter(command->slots, STR_EMPTY, SLOTS_NO_LIMIT, &call->slot);
    task_init(&call->begin, answer == SLOTS_FULL ? command_on_refused : start_program, call);
    if (answer != SLOTS_WAITING) loop_defer(loop, &call->begin);
    return call;
}

/* --- the tool ----------------------------------------------------------------------------- */

static void command_free(struct tool *tool) {
    command_unref(CONTAINER_OF(tool, struct command, base));
}

static const struct tool_kind kind = {.name = "command",
                                      .start = command_start,
                                      .cancel = command_call_leave,
                                      .free = command_free};

bool command_tool_new(const struct command_options *options, struct tool **ret, struct err *e) {
    struct command *command = MEM_NEW(struct command);
    atomic_init(&command->refs, 1);
    command->name = str_dup(options->name);
    command->description = str_dup(options->description);
    command->parameters = str_dup(options->parameters);
    command->path = str_dup(str_from(options->path));
    command->pick = str_dup(options->pick);
    command->args = copy_list(options->args);
    command->environment = copy_list(options->environment);
    command->output_max_bytes = options->output_max_bytes;
    command->form = options->form;
    command->slots =
        slots_new(&(struct slots_limits){.all = options->at_once, .queue_max = WAITING_MAX});
    command->base = (struct tool){.kind = &kind,
                                  .name = str_from(command->name),
                                  .description = str_from(command->description),
                                  .parameters = str_from(command->parameters),
                                  .idempotent = options->idempotent,
                                  .timeout_ms = options->timeout_ms};
    if (!schema_read(command->base.parameters, &command->schema, e)) {
        command_unref(command);
        return err_add(e, "parameters");
    }
    command->base.schema = command->schema;
    *ret = &command->base;
    return true;
}
