#include "orchestrator/usage_writer.h"

#include "base/log.h"
#include "orchestrator/query.h"
#include "orchestrator/usage_event.h"
#include "orchestrator/usage_stream.h"

#define BATCH_MAX_BYTES (8 * MIB)
#define TIMEOUT_MS 30000

/* --- a loop of its own ------------------------------------------------------------------------ */

struct usage_session {
    struct loop *loop;
    struct queries database;
    struct err failed;
};

static void usage_writer_on_closed(void *ctx) {
    struct usage_session *session = ctx;
    loop_stop(session->loop);
}

static void usage_session_open(struct usage_session *session,
                               const struct orchestrator_options *options) {
    session->loop = loop_new();
    queries_open(&session->database, session->loop,
                 &(struct postgres_options){.loop = session->loop,
                                            .url = options->database,
                                            .schema = options->schema,
                                            .timeout_ms = TIMEOUT_MS});
}

static bool usage_session_end(struct usage_session *session, struct err *e) {
    loop_run(session->loop);
    loop_free(session->loop);
    if (session->failed.code == ERR_FAILED_PRECONDITION)
        (void)err_add(&session->failed, "run weir orchestrate --migrate first");
    if (session->failed.code) *e = session->failed;
    return session->failed.code == ERR_NONE;
}

static void usage_session_close(struct usage_session *session, const struct err *failed) {
    if (failed) session->failed = *failed;
    queries_close(&session->database, usage_writer_on_closed, session);
}

/* --- writing ------------------------------------------------------------------------------------ */

/* clang-format off */
#define TEXTS                                                                                  \
    "user_id, workspace_id, conversation_id, message_id, agent_id, agent_db_id, model, "       \
    "provider, turn_id, session_id"
#define COUNTS                                                                                 \
    "prompt_tokens, completion_tokens, total_tokens, tool_use_prompt_tokens, "                 \
    "thoughts_tokens, cached_tokens, cost_usd"
#define SUM(column) ", sum(" column ") AS " column
#define SUMS                                                                                   \
    SUM("prompt_tokens") SUM("completion_tokens") SUM("total_tokens")                          \
    SUM("tool_use_prompt_tokens") SUM("thoughts_tokens") SUM("cached_tokens") SUM("cost_usd")
#define ADD(column) ", " column " = d." column " + excluded." column
#define ADDED                                                                                  \
    ADD("prompt_tokens") ADD("completion_tokens") ADD("total_tokens")                          \
    ADD("tool_use_prompt_tokens") ADD("thoughts_tokens") ADD("cached_tokens") ADD("cost_usd")
#define KEY "day, user_id, workspace_id, agent_id, model"

/* In the order of the key, so that two writers cannot wait for each other. */
static const char insert_batch[] =
    "WITH batch AS (SELECT DISTINCT ON (event_id) * FROM jsonb_to_recordset($1::jsonb) AS "
    "r(event_id text, event_time timestamptz, user_id text, workspace_id text, "
    "conversation_id text, message_id text, agent_id text, agent_db_id text, model text, "
    "provider text, turn_id text, session_id text, prompt_tokens bigint, "
    "completion_tokens bigint, total_tokens bigint, tool_use_prompt_tokens bigint, "
    "thoughts_tokens bigint, cached_tokens bigint, call_sequence bigint, cost_usd numeric) "
    "ORDER BY event_id), "
    "taken AS (INSERT INTO llm_usage (event_id, event_time, call_sequence, " TEXTS ", " COUNTS ") "
    "SELECT event_id, event_time, call_sequence, " TEXTS ", " COUNTS " FROM batch "
    "ON CONFLICT (event_id) DO NOTHING RETURNING *), "
    "daily AS (INSERT INTO llm_usage_daily AS d (" KEY ", calls, " COUNTS ") "
    "SELECT (event_time AT TIME ZONE 'UTC')::date AS day, user_id, workspace_id, agent_id, "
    "model, count(*)" SUMS " FROM taken GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5 "
    "ON CONFLICT (" KEY ") DO UPDATE SET calls = d.calls + excluded.calls" ADDED ") "
    "SELECT count(*) FROM taken";
/* clang-format on */

#define FORGET_ROWS 10000 /* of one statement */
#define FORGET_EVERY_MS (60 * 60 * 1000)

/* How many it forgot. */
static const char forget_events[] =
    "WITH old AS (DELETE FROM llm_usage WHERE event_id IN (SELECT event_id FROM llm_usage "
    "WHERE "
    "event_time < now() - interval '13 months' ORDER BY event_time LIMIT $1::bigint) "
    "RETURNING 1) SELECT count(*) FROM old";
static const char forget_days[] =
    "DELETE FROM llm_usage_daily WHERE day < (now() - interval '25 months')::date";

/* Fetching blocks, so the loop's time is old after it. What comes next is another turn of the
 * loop: deadlines of queries count from a time that is now. */
struct usage_writer {
    struct usage_session session;
    struct timer fetch, put; /* the next fetch; what was fetched is written */
    struct usage_stream *stream;
    bool follow;
    struct usage_writer_result written;
    struct str messages[USAGE_BATCH_MAX];
    size_t taken; /* of this batch */
    uint64_t forgot_ms;
};

static void writer_end(struct usage_writer *writer, const struct err *failed) {
    timer_stop(&writer->fetch);
    timer_stop(&writer->put);
    usage_stream_close(writer->stream);
    usage_session_close(&writer->session, failed);
}

static void on_batch(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct usage_writer *writer = ctx;
    if (failed) { /* they are delivered again */
        writer_end(writer, failed);
        return;
    }
    writer->written.taken += writer->taken;
    writer->written.counted += (uint64_t)postgres_number(postgres_rows(rows, 0), 0, 0);
    usage_stream_done(writer->stream);
    timer_start(&writer->fetch, 0);
}

static size_t put_batch(struct usage_writer *writer, struct buf *out) {
    size_t kept = 0;
    buf_append_byte(out, '[');
    for (size_t i = 0; i < writer->taken; i++) {
        size_t before = out->len;
        struct err e;
        if (kept) buf_append_byte(out, ',');
        if (usage_event_copy(writer->messages[i], out, &e)) {
            kept++;
            continue;
        }
        out->len = before;
        writer->written.skipped++;
        log_often(LOG_WARNING, "a message of the usage stream is left out: %s", e.text);
    }
    buf_append_byte(out, ']');
    return kept;
}

static void usage_writer_put(void *ctx) {
    struct usage_writer *writer = ctx;
    struct buf batch;
    struct query *query = query_new();
    buf_init(&batch, BATCH_MAX_BYTES);
    (void)put_batch(writer, &batch);
    QUERY_STEP(query, insert_batch, postgres_text(buf_str(&batch)));
    /* It notices what it has counted already. */
    query_ask(query, &writer->session.database,
              writer->follow ? QUERY_STEADFAST : QUERY_REPEATABLE, on_batch, writer);
    buf_done(&batch);
}

static void forget(struct usage_writer *writer);

static void on_forgotten(const struct postgres_request *rows, const struct err *failed,
                         void *ctx) {
    struct usage_writer *writer = ctx;
    if (failed) {
        writer_end(writer, failed);
    } else if (postgres_number(postgres_rows(rows, 0), 0, 0) >= FORGET_ROWS) {
        forget(writer);
    } else {
        writer->forgot_ms = loop_now_ms(writer->session.loop);
        timer_start(&writer->fetch, 0);
    }
}

static void forget(struct usage_writer *writer) {
    struct query *query = query_new();
    QUERY_STEP(query, forget_events, postgres_int(FORGET_ROWS));
    query_step(query, forget_days, NULL, 0);
    query_ask(query, &writer->session.database,
              writer->follow ? QUERY_STEADFAST : QUERY_REPEATABLE, on_forgotten, writer);
}

static void fetch(void *ctx) {
    struct usage_writer *writer = ctx;
    struct err e;
    bool read = false;
    if (loop_now_ms(writer->session.loop) - writer->forgot_ms > FORGET_EVERY_MS) {
        forget(writer);
    } else if (!usage_stream_take(writer->stream, writer->messages, &writer->taken, &e) ||
               (!writer->taken && !writer->follow &&
                !usage_stream_is_read(writer->stream, &read, &e))) {
        writer_end(writer, &e);
    } else if (read) {
        writer_end(writer, NULL);
    } else {
        timer_start(writer->taken ? &writer->put : &writer->fetch, 0);
    }
}

bool usage_writer_run(const struct orchestrator_options *options, bool follow,
                      struct usage_writer_result *ret, struct err *e) {
    struct usage_writer writer = {.follow = follow};
    if (!usage_stream_open(orchestrator_nats(options), &writer.stream, e)) return false;
    usage_session_open(&writer.session, options);
    timer_init(&writer.fetch, writer.session.loop, fetch, &writer);
    timer_init(&writer.put, writer.session.loop, usage_writer_put, &writer);
    forget(&writer);
    bool good = usage_session_end(&writer.session, e);
    *ret = writer.written;
    return good;
}

/* --- asking -------------------------------------------------------------------------------- */

/* clang-format off */
#define PART(bit, name, column)                                                                \
    "CASE WHEN $1::bigint & " bit " > 0 THEN " column " END AS " name

/* With one line more than may be, to tell that there are more. */
static const char select_usage[] =
    "WITH days AS (SELECT coalesce($6::text::date, date_trunc('month', now() AT TIME ZONE "
    "'UTC')::date) AS since, coalesce($7::text::date, (now() AT TIME ZONE 'UTC')::date) AS "
    "until), "
    "lines AS (SELECT " PART("1", "day", "d.day") ", " PART("2", "user_id", "user_id") ", "
    PART("4", "workspace_id", "workspace_id") ", " PART("8", "agent_id", "agent_id") ", "
    PART("16", "model", "model") ", sum(calls) AS calls" SUMS " FROM llm_usage_daily d, days "
    "WHERE d.day BETWEEN since AND until AND ($2::text IS NULL OR user_id = $2) AND "
    "($3::text IS NULL OR workspace_id = $3) AND ($4::text IS NULL OR agent_id = $4) AND "
    "($5::text IS NULL OR model = $5) GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5 "
    "LIMIT $8::bigint) "
    "SELECT json_build_object('usage', coalesce(json_agg(json_strip_nulls(row_to_json(lines)) "
    "ORDER BY day, user_id, workspace_id, agent_id, model), '[]'::json), 'total', "
    "json_build_object('calls', coalesce(sum(calls), 0), 'prompt_tokens', "
    "coalesce(sum(prompt_tokens), 0), 'completion_tokens', coalesce(sum(completion_tokens), "
    "0), 'total_tokens', coalesce(sum(total_tokens), 0), 'cost_usd', coalesce(sum(cost_usd), "
    "0)))::text, count(*) FROM lines";
/* clang-format on */

struct usage_reading {
    struct usage_session session;
    struct buf *out;
};

static void usage_writer_on_usage(const struct postgres_request *rows, const struct err *failed,
                                  void *ctx) {
    struct usage_reading *reading = ctx;
    struct err e;
    if (!failed && postgres_number(postgres_rows(rows, 0), 0, 1) > USAGE_LINES_MAX) {
        err_set(&e, ERR_RESOURCE_EXHAUSTED,
                "there are more than %d lines: ask for fewer days, or sum by less",
                USAGE_LINES_MAX);
        failed = &e;
    }
    if (!failed) buf_append(reading->out, postgres_content(postgres_rows(rows, 0), 0, 0));
    usage_session_close(&reading->session, failed);
}

bool usage_writer_ask(const struct orchestrator_options *options,
                      const struct usage_writer_question *question, struct buf *out,
                      struct err *e) {
    struct usage_reading reading = {.out = out};
    struct query *query = query_new();
    usage_session_open(&reading.session, options);
    QUERY_STEP(query, select_usage, postgres_int(question->by),
               query_text_or_null(question->user), query_text_or_null(question->workspace),
               query_text_or_null(question->agent), query_text_or_null(question->model),
               query_text_or_null(question->since), query_text_or_null(question->until),
               postgres_int(USAGE_LINES_MAX + 1));
    query_ask(query, &reading.session.database, QUERY_REPEATABLE, usage_writer_on_usage,
              &reading);
    return usage_session_end(&reading.session, e);
}
