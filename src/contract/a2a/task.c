#include "contract/a2a/task.h"

#include "base/mem.h"
#include "contract/event_id.h"
#include "turn/guarded.h"

#include <stdlib.h>

#define ANSWER_MAX_BYTES (64 * MIB)
#define LINES_MAX 1000
#define LINES_MAX_BYTES (16 * MIB)

/* --- its life ----------------------------------------------------------------------------- */

void a2a_task_init(struct a2a_task *task, uint64_t run) {
    *task = (struct a2a_task){.run = run, .state = A2A_SUBMITTED};
    buf_init(&task->answer, ANSWER_MAX_BYTES);
}

static void line_done(struct a2a_line *line) {
    text_done(&line->id);
    text_done(&line->text);
    text_done(&line->data);
}

void a2a_task_done(struct a2a_task *task) {
    for (size_t i = 0; i < task->line_count; i++) line_done(&task->lines[i]);
    free(task->lines);
    line_done(&task->note);
    buf_done(&task->answer);
    text_done(&task->question_call);
    text_done(&task->session);
    text_done(&task->agent);
}

/* --- messages ----------------------------------------------------------------------------- */

static size_t line_bytes(const struct a2a_line *line) {
    return line->id.len + line->text.len + line->data.len;
}

static void forget_first(struct a2a_task *task) {
    task->line_bytes -= line_bytes(&task->lines[0]);
    line_done(&task->lines[0]);
    task->line_count--;
    memmove(task->lines, task->lines + 1, task->line_count * sizeof(*task->lines));
}

/* The newest message always stays. */
static void add_line(struct a2a_task *task, struct a2a_line line) {
    if (task->line_count == LINES_MAX) forget_first(task);
    task->lines = mem_resize(task->lines, (task->line_count + 1) * sizeof(*task->lines));
    task->lines[task->line_count++] = line;
    task->line_bytes += line_bytes(&line);
    while (task->line_bytes > LINES_MAX_BYTES && task->line_count > 1) forget_first(task);
}

void a2a_task_forget_lines(struct a2a_task *task) {
    while (task->line_count) forget_first(task);
}

static void set_note(struct a2a_task *task, uint64_t seq, struct str text, struct str data) {
    line_done(&task->note);
    task->note =
        (struct a2a_line){.seq = seq, .text = text_copy(text), .data = text_copy(data)};
}

static void move(struct a2a_task *task, enum a2a_state state, const struct event *event) {
    task->state = state;
    task->at_ms = event->at_ms;
}

/* --- the fold ----------------------------------------------------------------------------- */

/* The extras name the message as its sender does. */
static void add_request(struct a2a_task *task, struct str said, struct str extras) {
    struct json all = extras.len ? json_of(extras) : (struct json){.kind = JSON_NONE};
    struct json about = json_find(json_find(all, STR("metadata")), STR("a2a"));
    struct buf id;
    buf_init(&id, KIB);
    bool named = json_text(json_find(about, STR("messageId")), &id);
    add_line(task, (struct a2a_line){.by_user = true,
                                     .seq = 1,
                                     .id = text_copy(named ? buf_str(&id) : STR_EMPTY),
                                     .text = text_copy(said)});
    buf_done(&id);
}

static void note_started(struct a2a_task *task, const struct event *event) {
    text_done(&task->session);
    text_done(&task->agent);
    task->session = text_copy(event->started.session);
    task->agent = text_copy(event->agent);
    task->started_ms = event->started.unix_ms;
    add_request(task, event->started.text, event->started.extras);
    move(task, A2A_WORKING, event);
}

/* {"approval":"7-4","question":"...","tool":"pay","args":{...}} */
static void note_approval(struct a2a_task *task, const struct event *event, uint64_t seq) {
    struct buf data;
    buf_init(&data, 2 * ANSWER_MAX_BYTES);
    struct json_writer w = json_writer(&data);
    json_open_object(&w);
    event_id_write(&w, "approval", task->run, seq);
    json_member_str(&w, "question", event->approval.question);
    if (event->approval.tool.len) json_member_str(&w, "tool", event->approval.tool);
    if (event->approval.args.len) json_member_raw(&w, "args", event->approval.args);
    json_close(&w);
    struct str about = buf_ok(&data) ? buf_str(&data) : STR_EMPTY;
    set_note(task, seq, event->approval.question, about);
    add_line(task, (struct a2a_line){.seq = seq,
                                     .text = text_copy(event->approval.question),
                                     .data = text_copy(about)});
    buf_done(&data);
    text_done(&task->question_call);
    task->question_call = text_copy(event->approval.call_id);
    task->question = seq;
    move(task, A2A_INPUT_REQUIRED, event);
}

/* The result of the call that was asked about says what the human decided. */
static void note_result(struct a2a_task *task, const struct event *event, uint64_t seq) {
    bool answers =
        task->question && str_equal(event->tool_result.call_id, text_str(task->question_call));
    if (!answers) return;
    add_line(task, (struct a2a_line){.by_user = true,
                                     .seq = seq,
                                     .data = text_copy(event->tool_result.result)});
    task->question = 0;
    line_done(&task->note);
    move(task, A2A_WORKING, event);
}

static void add_text(struct a2a_task *task, struct str text, bool kept) {
    if (kept) buf_append(&task->answer, text);
    task->said += text.len;
}

/* A run whose texts were not streamed has them in its last event alone. */
static void note_done(struct a2a_task *task, const struct event *event) {
    struct str turns = event->done.turns;
    struct event_turn turn;
    bool streamed = task->said > 0;
    while (!streamed && event_turn_next(&turns, &turn)) {
        if (task->said) add_text(task, STR(SEAM_TEXT), true);
        add_text(task, turn.text, true);
    }
    line_done(&task->note);
    move(task, A2A_COMPLETED, event);
}

static void note_failure(struct a2a_task *task, const struct event *event, uint64_t seq) {
    bool failed = event->kind == EVENT_FAILED;
    bool blocked = failed && str_equal(event->failed.reason, STR(GUARDRAIL_BLOCKED));
    struct buf data;
    buf_init(&data, 64 * KIB);
    struct json_writer w = json_writer(&data);
    json_open_object(&w);
    json_member_str(&w, "reason", failed ? event->failed.reason : STR("CANCELLED"));
    json_close(&w);
    set_note(task, seq, failed ? event->failed.message : event->cancelled.message,
             buf_str(&data));
    buf_done(&data);
    move(task, blocked ? A2A_REJECTED : failed ? A2A_FAILED : A2A_CANCELED, event);
}

static bool note_text(struct a2a_task *task, struct str text, bool after_seam) {
    if (after_seam) add_text(task, STR(SEAM_TEXT), !task->passes_on);
    add_text(task, text, !task->passes_on);
    return after_seam;
}

bool a2a_task_note(struct a2a_task *task, const struct event *event, uint64_t seq) {
    bool seam = seam_before(&task->seam, event, SEAM_OF_STREAM);
    switch (event->kind) {
    case EVENT_STARTED: note_started(task, event); break;
    case EVENT_TEXT: return note_text(task, event->text.text, seam);
    case EVENT_APPROVAL: note_approval(task, event, seq); break;
    case EVENT_TOOL_RESULT: note_result(task, event, seq); break;
    case EVENT_USAGE:
        if (event->usage.total != TOKENS_UNKNOWN) task->tokens += event->usage.total;
        break;
    case EVENT_DONE: note_done(task, event); break;
    case EVENT_FAILED:
    case EVENT_CANCELLED: note_failure(task, event, seq); break;
    default: break;
    }
    return false;
}

void a2a_task_queued(struct a2a_task *task, struct str session, struct str said,
                     struct str extras) {
    text_done(&task->session);
    task->session = text_copy(session);
    if (said.len) add_request(task, said, extras);
}
