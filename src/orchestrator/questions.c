/* ask_questions: a card of questions for the user. His answers come as message.answers, and reach
 * the runtime as his next message. */
#include "base/id.h"
#include "orchestrator/sockets.h"
#include "orchestrator/toolbox_inner.h"

#define CONTENT_MAX_BYTES (4 * MIB)
#define JSON_MAX_BYTES (8 * MIB)

/* Of the contract. */
enum {
    TURNS_MAX = 10,
    QUESTIONS_MAX = 20,
    OPTIONS_MIN = 2,
    OPTIONS_MAX = 26,
    PROMPT_MAX_BYTES = 2048,
    OPTION_MAX_BYTES = 256,
    LABEL_MAX_BYTES = 128,
};

/* --- the card --------------------------------------------------------------------------------- */

struct card {
    const struct tool_use *use;
    struct json_writer *writer;
    struct err *e;
};

static bool questions_put_text(struct card *card, const char *key, struct json value,
                               size_t max_bytes, bool needed) {
    struct str text = STR_EMPTY;
    bool given = value.kind == JSON_STRING;
    if (given && !json_str(value, card->use->arena, &text)) given = false;
    if ((needed && !str_trim(text).len) || (!given && value.kind != JSON_NONE))
        return err_set(card->e, ERR_INVALID_ARGUMENT, "%s must be a text", key);
    if (text.len > max_bytes)
        return err_set(card->e, ERR_INVALID_ARGUMENT, "%s is longer than %zu bytes", key,
                       max_bytes);
    if (str_find_byte(text, '\0') < text.len)
        return err_set(card->e, ERR_INVALID_ARGUMENT, "%s " NO_NUL, key);
    json_member_str(card->writer, key, text);
    return true;
}

static void put_id(struct card *card, const char *kind, size_t turn, size_t question,
                   size_t option) {
    struct buf id;
    buf_init(&id, 64);
    buf_printf(&id, "%s%zu-%zu", kind, turn + 1, question + 1);
    if (option) buf_printf(&id, "-%zu", option);
    json_member_str(card->writer, "id", buf_str(&id));
    buf_done(&id);
}

static bool questions_put_options(struct card *card, struct json options, size_t turn,
                                  size_t question) {
    struct json_reader reader = json_enter(options);
    struct json option;
    size_t count = options.kind == JSON_ARRAY ? json_count(options) : 0;
    if (count < OPTIONS_MIN || count > OPTIONS_MAX)
        return err_set(card->e, ERR_INVALID_ARGUMENT, "a question has %d to %d options",
                       OPTIONS_MIN, OPTIONS_MAX);
    json_member_array(card->writer, "options");
    for (size_t i = 1; json_next_item(&reader, &option); i++) {
        json_open_object(card->writer);
        put_id(card, "o", turn, question, i);
        if (!questions_put_text(card, "label", json_find(option, STR("label")),
                                OPTION_MAX_BYTES, true))
            return false;
        json_close(card->writer);
    }
    json_close(card->writer);
    return true;
}

static bool put_question(struct card *card, struct json question, size_t turn, size_t index) {
    struct json mode = json_find(question, STR("mode"));
    bool custom = false;
    if (!json_is(mode, STR("single")) && !json_is(mode, STR("multi")))
        return err_set(card->e, ERR_INVALID_ARGUMENT, "mode is \"single\" or \"multi\"");
    if (!json_bool(json_find(question, STR("allow_custom")), &custom)) custom = false;
    json_open_object(card->writer);
    put_id(card, "q", turn, index, 0);
    if (!questions_put_text(card, "prompt", json_find(question, STR("prompt")),
                            PROMPT_MAX_BYTES, true))
        return false;
    json_member_raw(card->writer, "mode", mode.raw);
    if (!questions_put_options(card, json_find(question, STR("options")), turn, index))
        return false;
    json_member_bool(card->writer, "allow_custom", custom);
    json_close(card->writer);
    return true;
}

static bool put_turn(struct card *card, struct json turn, size_t index) {
    struct json questions = json_find(turn, STR("questions")), question;
    struct json_reader reader = json_enter(questions);
    size_t count = questions.kind == JSON_ARRAY ? json_count(questions) : 0;
    if (count < 1 || count > QUESTIONS_MAX)
        return err_set(card->e, ERR_INVALID_ARGUMENT, "a turn has 1 to %d questions",
                       QUESTIONS_MAX);
    json_open_object(card->writer);
    json_member_u64(card->writer, "index", index);
    if (!questions_put_text(card, "label", json_find(turn, STR("label")), LABEL_MAX_BYTES,
                            false))
        return false;
    json_member_array(card->writer, "questions");
    for (size_t i = 0; json_next_item(&reader, &question); i++) {
        if (!put_question(card, question, index, i)) return false;
    }
    json_close(card->writer);
    json_close(card->writer);
    return true;
}

static bool put_card(const struct tool_use *use, struct buf *out, struct err *e) {
    struct json turns = json_find(use->view.arguments, STR("turns")), turn;
    struct json_reader reader = json_enter(turns);
    struct json_writer writer = json_writer(out);
    struct card card = {use, &writer, e};
    size_t count = turns.kind == JSON_ARRAY ? json_count(turns) : 0;
    if (count < 1 || count > TURNS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "there are 1 to %d turns", TURNS_MAX);
    json_open_object(&writer);
    json_member_str(&writer, "type", STR("questions"));
    json_member_str(&writer, "title", tool_use_text(use, "description"));
    json_member_array(&writer, "turns");
    for (size_t i = 0; json_next_item(&reader, &turn); i++) {
        if (!put_turn(&card, turn, i)) return false;
    }
    json_close(&writer);
    json_member_array(&writer, "answers");
    json_close(&writer);
    json_close(&writer);
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "the questions are too long");
}

/* --- storing and showing it ----------------------------------------------------------------------- */

static const struct turn_agent *asker(const struct tool_use *use) {
    const struct workspace *workspace = use->workspace;
    size_t agent = workspace_agent_named(workspace, tool_use_text(use, "agent_slug"));
    if (agent == workspace->agent_count)
        agent = workspace_agent(workspace, tool_use_text(use, "agent_id"));
    if (agent == workspace->agent_count) agent = workspace_manager(workspace);
    return agent < workspace->agent_count ? &workspace->agents[agent] : NULL;
}

static const char insert_card[] =
    "INSERT INTO messages (id, conversation_id, role, content, status, agent_id) "
    "VALUES ($1, $2, 'agent', $3::jsonb, 'delivered', $4) ON CONFLICT (id) DO NOTHING";
static const char read_card[] =
    "SELECT content::text, " ROWS_TIME("created_at") " FROM messages WHERE id = $1";

static void questions_show(const struct tool_use *use, struct postgres_rows rows) {
    const struct orchestrator *orchestrator = use->orchestrator;
    struct buf json;
    buf_init(&json, JSON_MAX_BYTES);
    int64_t created_us = postgres_number(rows, 0, 1);
    shown_message_event(&json,
                        &(struct shown_message){.id = use->id,
                                                .conversation = use->workspace->conversation,
                                                .role = STR("agent"),
                                                .status = STR("delivered"),
                                                .content = postgres_content(rows, 0, 0),
                                                .agent = asker(use),
                                                .agent_status = AGENT_ONLINE,
                                                .created_us = created_us,
                                                .updated_us = created_us});
    if (orchestrator->sockets)
        sockets_emit(orchestrator->sockets, use->workspace->id, "message.new", buf_str(&json));
    buf_done(&json);
}

static void on_stored(const struct postgres_request *rows, const struct err *failed,
                      void *ctx) {
    struct tool_use *use = ctx;
    struct buf result;
    /* Also when its caller has left: the card is there. */
    if (!failed && postgres_rows(rows, 1).count && use->workspace)
        questions_show(use, postgres_rows(rows, 1));
    if (failed && !tool_use_answered(use, failed)) return;
    buf_init(&result, KIB);
    struct json_writer writer = json_writer(&result);
    json_open_object(&writer);
    json_member_str(&writer, "message_id", use->id);
    json_member_str(&writer, "status", STR("sent"));
    json_close(&writer);
    tool_use_answer(use, buf_str(&result));
    buf_done(&result);
}

static void card_found(struct tool_use *use) {
    const struct turn_agent *agent = asker(use);
    struct uuid id = uuid_new();
    struct buf content;
    struct err e = {0};
    buf_init(&content, CONTENT_MAX_BYTES);
    bool good = put_card(use, &content, &e);
    if (good && !arena_str(use->arena, uuid_str(&id), &use->id))
        good = err_set(&e, ERR_TOO_LARGE, "the questions are too long");
    if (good) {
        struct query *query = query_new();
        QUERY_STEP(query, insert_card, postgres_text(use->id),
                   postgres_text(use->workspace->conversation), rows_json(&content),
                   query_text_or_null(agent ? agent->id : STR_EMPTY));
        QUERY_STEP(query, read_card, postgres_text(use->id));
        tool_use_ask(use, query, on_stored);
    } else {
        tool_use_fail(use, err_text(&e));
    }
    buf_done(&content);
}

void questions_ask(struct orchestrator_call *call, const struct orchestrator_call_view *view,
                   void *ctx) {
    if (id_ok(view->conversation))
        tool_use_start(call, view, ctx, view->conversation, card_found);
    else
        orchestrator_call_fail(call, STR("conversation_id is required"));
}
