/* The JSON of a task, its messages and its artifact. */
#include "contract/a2a/task.h"

#include "base/clock.h"
#include "contract/event_id.h"
#include "wire/event_json.h"
#include "wire/moment.h"

/* --- parts -------------------------------------------------------------------------------- */

static void open_part(enum a2a_dialect dialect, const char *kind, struct json_writer *w) {
    json_open_object(w);
    if (dialect == A2A_0_3) json_member_str(w, "kind", str_from(kind));
}

static void write_text_part(struct str text, enum a2a_dialect dialect, struct json_writer *w) {
    open_part(dialect, "text", w);
    json_member_str(w, "text", text);
    json_close(w);
}

static void write_data_part(struct str data, enum a2a_dialect dialect, struct json_writer *w) {
    open_part(dialect, "data", w);
    json_member_raw(w, "data", data);
    json_close(w);
}

void a2a_artifact_write(struct str text, enum a2a_dialect dialect, struct json_writer *w) {
    json_open_object(w);
    json_member_str(w, "artifactId", STR(A2A_ARTIFACT));
    json_member_str(w, "name", STR(A2A_ARTIFACT));
    json_member_array(w, "parts");
    write_text_part(text, dialect, w);
    json_close(w);
    json_close(w);
}

/* --- messages ----------------------------------------------------------------------------- */

static void write_message_id(const struct a2a_task *task, const struct a2a_line *line,
                             struct json_writer *w) {
    if (line->id.len) {
        json_member_str(w, "messageId", text_str(line->id));
    } else {
        event_id_write(w, "messageId", task->run, line->seq);
    }
}

static void open_message(const struct a2a_task *task, const struct a2a_line *line,
                         enum a2a_dialect dialect, struct json_writer *w) {
    bool old = dialect == A2A_0_3;
    json_open_object(w);
    if (old) json_member_str(w, "kind", STR("message"));
    write_message_id(task, line, w);
    a2a_task_write_names(task, w);
    if (line->by_user) {
        json_member_str(w, "role", old ? STR("user") : STR("ROLE_USER"));
    } else {
        json_member_str(w, "role", old ? STR("agent") : STR("ROLE_AGENT"));
    }
    json_member_array(w, "parts");
}

static void close_message(struct json_writer *w) {
    json_close(w);
    json_close(w);
}

static void write_message(const struct a2a_task *task, const struct a2a_line *line,
                          enum a2a_dialect dialect, struct json_writer *w) {
    open_message(task, line, dialect, w);
    if (line->text.len || !line->data.len) write_text_part(text_str(line->text), dialect, w);
    if (line->data.len) write_data_part(text_str(line->data), dialect, w);
    close_message(w);
}

/* --- status ------------------------------------------------------------------------------- */

void a2a_task_write_names(const struct a2a_task *task, struct json_writer *w) {
    event_json_id(w, "taskId", task->run);
    json_member_str(w, "contextId", text_str(task->session));
}

int64_t a2a_task_unix_ms(const struct a2a_task *task) {
    return task->started_ms ? task->started_ms + task->at_ms : clock_unix_ms();
}

/* "2026-03-01T12:00:00.250Z" */
static void write_time(const struct a2a_task *task, struct json_writer *w) {
    char room[40];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    int64_t ms = a2a_task_unix_ms(task);
    if (ms < 0 || !moment_put(&text, ms / 1000, 0)) return;
    text.len--; /* the Z */
    buf_printf(&text, ".%03dZ", (int)(ms % 1000));
    json_member_str(w, "timestamp", buf_str(&text));
}

static void open_status(const struct a2a_task *task, enum a2a_dialect dialect,
                        struct json_writer *w) {
    json_member_object(w, "status");
    json_member_str(w, "state", a2a_state_name(task->state, dialect));
    write_time(task, w);
}

void a2a_task_write_status(const struct a2a_task *task, enum a2a_dialect dialect,
                           struct json_writer *w) {
    open_status(task, dialect, w);
    if (task->note.text.len || task->note.data.len) {
        json_key(w, STR("message"));
        write_message(task, &task->note, dialect, w);
    }
    json_close(w);
}

void a2a_task_write_step(const struct a2a_task *task, enum a2a_dialect dialect, uint64_t seq,
                         struct str data, struct json_writer *w) {
    const struct a2a_line line = {.seq = seq};
    open_status(task, dialect, w);
    json_key(w, STR("message"));
    open_message(task, &line, dialect, w);
    write_data_part(data, dialect, w);
    close_message(w);
    json_close(w);
}

/* --- a task ------------------------------------------------------------------------------- */

static void write_history(const struct a2a_task *task, const struct a2a_view *view,
                          struct json_writer *w) {
    size_t count = task->line_count;
    if (view->history_max == 0) return;
    if (view->history_max > 0 && (uint64_t)view->history_max < count)
        count = (size_t)view->history_max;
    json_member_array(w, "history");
    for (size_t i = task->line_count - count; i < task->line_count; i++)
        write_message(task, &task->lines[i], view->dialect, w);
    json_close(w);
}

void a2a_task_write(const struct a2a_task *task, const struct a2a_view *view,
                    struct json_writer *w) {
    json_open_object(w);
    if (view->dialect == A2A_0_3) json_member_str(w, "kind", STR("task"));
    event_json_id(w, "id", task->run);
    json_member_str(w, "contextId", text_str(task->session));
    a2a_task_write_status(task, view->dialect, w);
    if (view->artifacts && task->answer.len) {
        json_member_array(w, "artifacts");
        a2a_artifact_write(buf_str(&task->answer), view->dialect, w);
        json_close(w);
    }
    write_history(task, view, w);
    if (task->agent.len) {
        json_member_object(w, "metadata");
        json_member_str(w, "weir/agent", text_str(task->agent));
        json_close(w);
    }
    json_close(w);
}

void a2a_task_write_flat(const struct a2a_task *task, struct json_writer *w) {
    struct str output =
        task->note.text.len ? text_str(task->note.text) : buf_str(&task->answer);
    event_json_id(w, "task_id", task->run);
    json_member_str(w, "status", a2a_state_name(task->state, A2A_BREEDER));
    json_member_str(w, "output", output);
    json_member_array(w, "artifacts");
    json_close(w);
    json_member_i64(w, "tokens", task->tokens);
    json_member_i64(w, "latency_ms", task->at_ms);
}
