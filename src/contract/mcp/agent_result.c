/* agent_result: what a call of an agent brings: an answer, a question, or a failure.
 *
 * The text is for the client's model, the structured content for programs. Of an agent with a
 * schema the structured content is its answer alone, so a question of it has none: clients check
 * structured content against the schema. `_meta` names the run and the session in each case. */
#include "contract/event_id.h"
#include "contract/mcp/agent_call.h"
#include "wire/event_json.h"

#define TEXT_MAX_BYTES (64 * MIB)

const struct str agent_result_schema = STR_INIT(
    "{\"type\":\"object\",\"properties\":{"
    "\"status\":{\"type\":\"string\",\"enum\":[\"done\",\"waiting\"]},"
    "\"answer\":{\"type\":\"string\",\"description\":\"what the agent says; when done\"},"
    "\"session\":{\"type\":\"string\",\"description\":\"pass it to go on with this "
    "conversation\"},"
    "\"approval\":{\"type\":\"object\",\"description\":\"what a person must decide; when "
    "waiting\",\"properties\":{\"id\":{\"type\":\"string\"},\"question\":{\"type\":\"string\"},"
    "\"tool\":{\"type\":\"string\"},\"args\":{\"type\":\"object\"}},"
    "\"required\":[\"id\",\"question\"]}},"
    "\"required\":[\"status\",\"session\"]}");

/* --- parts -------------------------------------------------------------------------------- */

static void write_content(struct json_writer *w, struct str text) {
    json_member_array(w, "content");
    json_open_object(w);
    json_member_str(w, "type", STR("text"));
    json_member_str(w, "text", text);
    json_close(w);
    json_close(w);
}

static void write_question(struct json_writer *w, const char *key,
                           const struct pending_view *view) {
    json_member_object(w, key);
    event_id_write(w, "id", view->run, view->seq);
    json_member_str(w, "question", view->asked.question);
    if (view->asked.tool.len) json_member_str(w, "tool", view->asked.tool);
    if (view->asked.args.len) json_member_raw(w, "args", view->asked.args);
    json_close(w);
}

/* `waits` may be NULL. */
static void write_meta(const struct agent_call *agent_call, const struct pending_view *waits,
                       struct str reason, struct json_writer *w) {
    json_member_object(w, "_meta");
    if (agent_call->run_id) event_json_id(w, "weir/run", agent_call->run_id);
    if (agent_call->name.session.len)
        json_member_str(w, "weir/session", agent_call->name.session);
    if (waits) write_question(w, "weir/approval", waits);
    if (reason.len) json_member_str(w, "weir/reason", reason);
    json_close(w);
}

/* --- an answer ---------------------------------------------------------------------------- */

/* The final replies in order, with a blank line between two agents. The last one alone follows
 * the schema. */
static void join_turns(struct str turns, bool last_alone, struct buf *out) {
    struct event_turn turn;
    while (event_turn_next(&turns, &turn)) {
        if (last_alone) buf_clear(out);
        if (out->len) buf_append(out, STR("\n\n"));
        buf_append(out, turn.text);
    }
}

static void write_answer(const struct agent_call *agent_call, struct str answer,
                         struct json_writer *w) {
    json_member_object(w, "structuredContent");
    json_member_str(w, "status", STR("done"));
    json_member_str(w, "answer", answer);
    json_member_str(w, "session", agent_call->name.session);
    json_close(w);
}

void agent_result_done(const struct agent_call *agent_call, const struct event *event,
                       struct buf *out) {
    struct buf answer;
    struct json value;
    struct err e;
    bool schema = agent_call->schema.len > 0;
    buf_init(&answer, TEXT_MAX_BYTES);
    join_turns(event->done.turns, schema, &answer);
    bool fits = schema && json_read(buf_str(&answer), &value, &e) && value.kind == JSON_OBJECT;
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    write_content(&w, buf_str(&answer));
    if (fits) json_member_raw(&w, "structuredContent", value.raw);
    if (!schema) write_answer(agent_call, buf_str(&answer), &w);
    json_member_bool(&w, "isError", schema && !fits);
    write_meta(agent_call, NULL, STR_EMPTY, &w);
    json_close(&w);
    buf_done(&answer);
}

/* --- a question --------------------------------------------------------------------------- */

static void append_advice(const struct agent_call *agent_call, const struct pending_view *view,
                          struct buf *out) {
    buf_append(out, STR("The agent waits for a person's decision: "));
    buf_append(out, view->asked.question);
    if (view->asked.tool.len) {
        buf_append(out, STR("\nIt wants to call "));
        buf_append(out, view->asked.tool);
        buf_append(out, STR(" with "));
        buf_append(out, view->asked.args);
    }
    buf_append(out, STR("\nAsk the user. Then call this tool again with the session "));
    json_put_str(out, agent_call->name.session);
    buf_append(out, STR(", the approval \""));
    event_id_put(out, view->run, view->seq);
    buf_append(out, STR("\", and as the message \"yes\", \"no\", or the answer to the "
                        "question."));
}

static void write_waiting(const struct agent_call *agent_call, const struct pending_view *view,
                          struct json_writer *w) {
    json_member_object(w, "structuredContent");
    json_member_str(w, "status", STR("waiting"));
    json_member_str(w, "session", agent_call->name.session);
    write_question(w, "approval", view);
    json_close(w);
}

void agent_result_waiting(const struct agent_call *agent_call, const struct pending_view *view,
                          struct buf *out) {
    struct buf text;
    bool schema = agent_call->schema.len > 0;
    buf_init(&text, TEXT_MAX_BYTES);
    append_advice(agent_call, view, &text);
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    write_content(&w, buf_str(&text));
    if (!schema) write_waiting(agent_call, view, &w);
    json_member_bool(&w, "isError", schema); /* it has no answer that follows its schema */
    write_meta(agent_call, view, STR_EMPTY, &w);
    json_close(&w);
    buf_done(&text);
}

/* --- a failure ---------------------------------------------------------------------------- */

void agent_result_failed(const struct agent_call *agent_call, struct str reason,
                         struct str message, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    write_content(&w, message);
    json_member_bool(&w, "isError", true);
    write_meta(agent_call, NULL, reason, &w);
    json_close(&w);
}
