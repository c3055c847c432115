#include "orchestrator/talks.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "orchestrator/talks_inner.h"

#include <assert.h>
#include <stdlib.h>

#define TEXT_MAX_BYTES (8 * MIB)
#define SWEEP_MS 60000
#define ALIVE_MAX_BYTES (4 * MIB)

/* --- text ------------------------------------------------------------------------------------- */

static bool is_mentioned(uint64_t at, const struct talk_mention *mentions, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (at >= mentions[i].offset && at - mentions[i].offset < mentions[i].length)
            return true;
    }
    return false;
}

void talk_without_mentions(struct str text, const struct talk_mention *mentions, size_t count,
                           struct buf *out) {
    size_t begin = out->len;
    bool blank = true; /* before it, so that none begins the text */
    for (uint64_t at = 0; text.len; at++) {
        size_t len = utf8_head(text, 1);
        struct str character = str_head(text, len);
        text = str_skip(text, len);
        if (is_mentioned(at, mentions, count)) continue;
        bool space = str_equal(character, STR(" ")) || str_equal(character, STR("\t"));
        if (!space || !blank) buf_append(out, character);
        blank = space;
    }
    while (out->len > begin && (out->at[out->len - 1] == ' ' || out->at[out->len - 1] == '\t'))
        out->len--;
}

/* --- the end of a talk -------------------------------------------------------------------------- */

void talk_query(struct talk *talk, struct query *query, enum query_kind kind,
                query_done_fn *done) {
    talk->refs++;
    query_ask(query, talk->talks->options.database, kind, done, talk);
}

/* For queries whose failure was logged and changes nothing. */
void talk_ignore(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    (void)rows;
    (void)failed;
    talk_unref(ctx);
}

static void talk_tell(struct talk *talk, const struct shown_message *answer,
                      const struct talk_failure *failure) {
    const struct talk_sink *sink = talk->sink;
    talk->sink = NULL;
    if (sink) sink->on_over(answer, failure, talk->ctx);
}

static void talk_over(struct talk *talk, const struct shown_message *answer,
                      const struct talk_failure *failure) {
    struct list *link;
    talk->over = true;
    talk_tell(talk, answer, failure);
    while ((link = list_pop(&talk->joined))) {
        struct talk *other = CONTAINER_OF(link, struct talk, joining);
        talk_tell(other, answer, failure);
        talk_unref(other);
    }
    talk_unref(talk);
}

/* --- the answer ----------------------------------------------------------------------------------- */

static const struct talk_failure internal = {500, "INT0001", "Something went wrong"};
static const struct talk_failure starting = {503, "RTM0001", "Assistant is still starting"};
static const struct talk_failure quota = {429, "QTA0001", "monthly token quota exceeded"};
static const struct talk_failure unknown_yet = {503, "RTM0001",
                                                "The answer is not known yet; ask again"};
static const struct talk_failure other_words = {409, "REQ0002",
                                                "another message was sent with this local_id"};
static const struct talk_failure silent = {500, "INT0001", "No agent has answered"};

/* The first agent's message, or the first that any has. */
static const struct talk_turn *answering_turn(const struct talk *talk) {
    const struct talk_turn *first = &talk->turns[0];
    for (size_t i = 0; i < talk->turn_count; i++) {
        if (!turn_part_at(talk->turns[i].turn, 0)->dropped) return &talk->turns[i];
    }
    return first;
}

static void answer(struct talk *talk) {
    const struct talk_turn *turn = answering_turn(talk);
    const struct turn_part *part = turn_part_at(turn->turn, 0);
    struct shown_message message;
    struct buf content;
    if (turn->unopened) {
        talk_over(talk, NULL, &starting);
        return;
    }
    if (turn->unstored) {
        talk_over(talk, NULL, &internal);
        return;
    }
    if (part->dropped && talk->turn_count > 1) {
        talk_over(talk, NULL, &silent);
        return;
    }
    buf_init(&content, TEXT_MAX_BYTES);
    talk_show_part(turn, part, &content, &message);
    talk_over(talk, &message, NULL);
    buf_done(&content);
}

void talk_turn_over(struct talk *talk) {
    for (size_t i = 0; i < talk->turn_count; i++) {
        if (!talk->turns[i].over) return;
    }
    answer(talk);
}

/* --- the user's message ---------------------------------------------------------------------------- */

static void emit_user_message(struct talk *talk, int64_t created_us) {
    struct buf content, json;
    buf_init(&content, TEXT_MAX_BYTES);
    buf_init(&json, 4 * TEXT_MAX_BYTES);
    shown_text_content(&content, text_str(talk->text));
    const struct shown_message message = {.id = text_str(talk->message),
                                          .conversation = talk->workspace->conversation,
                                          .role = STR("user"),
                                          .status = STR("sent"),
                                          .local_id = text_str(talk->local_id),
                                          .content = buf_str(&content),
                                          .attachments = text_str(talk->attachments),
                                          .created_us = created_us,
                                          .updated_us = created_us};
    shown_message_event(&json, &message);
    talk_emit(talk, "message.new", buf_str(&json));
    buf_done(&json);
    buf_done(&content);
}

static void begin_turns(struct talk *talk) {
    talk->begun = true;
    talk->refs++;
    for (size_t i = 0; i < talk->turn_count; i++) talk_turn_begin(&talk->turns[i]);
    talk_unref(talk);
}

/* The talk whose turns answer the same message now; NULL: none of this process. */
static struct talk *talk_about(const struct talk *talk) {
    LIST_EACH(&talk->talks->all, link) {
        struct talk *other = CONTAINER_OF(link, struct talk, link);
        if (other != talk && other->begun && !other->over && !other->cancelled &&
            str_equal(text_str(other->message), text_str(talk->message)))
            return other;
    }
    return NULL;
}

static void answer_from_row(struct talk *talk, const struct rows_stored *row) {
    const struct workspace *workspace = talk->workspace;
    size_t agent = workspace_agent(workspace, row->answer.agent);
    const struct shown_message message = {
        .id = row->answer.id,
        .conversation = workspace->conversation,
        .role = STR("agent"),
        .status = row->answer.status,
        .content = row->answer.content,
        .agent = agent < workspace->agent_count ? &workspace->agents[agent] : NULL,
        .agent_status = AGENT_ONLINE,
        .created_us = row->answer.created_us,
        .updated_us = row->answer.updated_us};
    talk_over(talk, &message, NULL);
}

/* It was sent before, by a client that had no answer. It is answered once: by the turn that runs,
 * by the one that has ended, or now, if its sender left before one began. */
static void answer_again(struct talk *talk, const struct rows_stored *row) {
    struct talk *other = talk_about(talk);
    talk->answers = other;
    if (other)
        list_append(&other->joined, &talk->joining);
    else if (str_equal(row->answer.status, STR("pending"))) /* it is written, or has no owner */
        talk_over(talk, NULL, &unknown_yet);
    else if (row->answer.id.len)
        answer_from_row(talk, row);
    else
        begin_turns(talk);
}

static void stored(struct talk *talk, const struct rows_stored *row) {
    bool twice = row->twice && !str_equal(row->id, text_str(talk->message));
    text_done(&talk->message);
    talk->message = text_copy(row->id);
    if (twice && !row->same) {
        talk_over(talk, NULL, &other_words);
        return;
    }
    if (talk->sink && talk->sink->on_stored) talk->sink->on_stored(row->id, twice, talk->ctx);
    if (!twice) emit_user_message(talk, row->created_us);
    if (talk->cancelled)
        talk_over(talk, NULL, &internal); /* no caller waits; sent again, it is answered */
    else if (twice)
        answer_again(talk, row);
    else
        begin_turns(talk);
}

static void on_user_message(const struct postgres_request *rows, const struct err *failed,
                            void *ctx) {
    struct talk *talk = ctx;
    if (failed) {
        talk_over(talk, NULL, &internal);
    } else {
        struct rows_stored row = rows_read_stored(rows);
        if (row.allowed && row.id.len)
            stored(talk, &row);
        else
            talk_over(talk, NULL, row.allowed ? &internal : &quota);
    }
    talk_unref(talk);
}

static void store_user_message(struct talk *talk) {
    struct buf content;
    buf_init(&content, TEXT_MAX_BYTES);
    shown_text_content(&content, text_str(talk->text));
    const struct rows_user_message row = {.id = text_str(talk->message),
                                          .user = talk->workspace->user,
                                          .conversation = talk->workspace->conversation,
                                          .local_id = text_str(talk->local_id),
                                          .content = buf_str(&content),
                                          .attachments = text_str(talk->attachments)};
    /* With its own id, a repetition finds itself. */
    talk_query(talk, rows_user_message(&row), QUERY_REPEATABLE, on_user_message);
    buf_done(&content);
}

/* --- who answers -------------------------------------------------------------------------------------- */

static void add_turn(struct talk *talk, size_t agent) {
    if (agent >= talk->workspace->agent_count || talk->turn_count == TALK_AGENTS_MAX) return;
    for (size_t i = 0; i < talk->turn_count; i++) {
        if (talk->turns[i].agent == agent) return;
    }
    talk_turn_init(&talk->turns[talk->turn_count++], talk, agent);
}

/* An agent's own conversation is its; else those who are mentioned; else the Manager. */
static void route(struct talk *talk, const struct talk_request *request) {
    const struct workspace *workspace = talk->workspace;
    if (!workspace->swarm) {
        add_turn(talk, workspace_agent(workspace, workspace->agent));
    } else {
        for (size_t i = 0; i < request->mention_count; i++)
            add_turn(talk, request->mentions[i].agent);
    }
    if (talk->turn_count == 0) add_turn(talk, workspace_manager(workspace));
}

static void no_agent(void *ctx) {
    talk_over(ctx, NULL, &internal);
}

/* What the agents are asked. A message of mentions alone is asked as it stands, because a
 * runtime takes no empty message. */
static void append_asked(const struct talk_request *request, struct buf *out) {
    if (request->mention_count)
        talk_without_mentions(request->text, request->mentions, request->mention_count, out);
    if (!str_trim(buf_str(out)).len) {
        buf_clear(out);
        buf_append(out, str_trim(request->text));
    }
}

struct talk *talk_start(struct talks *talks, const struct talk_request *request,
                        const struct talk_sink *sink, void *ctx) {
    struct talk *talk = MEM_NEW(struct talk);
    struct uuid id = uuid_new();
    struct buf asked;
    buf_init(&asked, TEXT_MAX_BYTES);
    append_asked(request, &asked);
    *talk = (struct talk){.talks = talks,
                          .refs = 1,
                          .workspace = workspace_ref(request->workspace),
                          .message = text_copy(uuid_str(&id)),
                          .text = text_copy(request->text),
                          .asked = text_copy(buf_str(&asked)),
                          .local_id = text_copy(request->local_id),
                          .attachments = text_copy(request->attachments),
                          .sink = sink,
                          .ctx = ctx};
    buf_done(&asked);
    list_append(&talks->all, &talk->link);
    list_init(&talk->joined);
    list_init(&talk->joining);
    task_init(&talk->task, no_agent, talk);
    route(talk, request);
    if (talk->turn_count)
        store_user_message(talk);
    else
        loop_defer(talks->options.loop, &talk->task);
    return talk;
}

/* It waits for the turns of another talk. They end with the last one that waits for them. */
static void leave_joined(struct talk *talk) {
    struct talk *other = talk->answers;
    list_remove(&talk->joining);
    talk_unref(talk);
    bool awaited = other->sink || !list_empty(&other->joined);
    if (!awaited && !other->over && !other->cancelled) talk_cancel(other);
}

void talk_cancel(struct talk *talk) {
    talk->sink = NULL;
    if (list_linked(&talk->joining)) {
        leave_joined(talk);
        return;
    }
    if (!list_empty(&talk->joined)) return; /* they wait for its turns */
    talk->cancelled = true;
    talk->refs++;
    for (size_t i = 0; i < talk->turn_count; i++) talk_turn_cancel(&talk->turns[i]);
    talk_unref(talk);
}

void talk_release(struct talk *talk) {
    talk_unref(talk);
}

/* --- places ------------------------------------------------------------------------------------------- */

struct talks_place *talks_place_of(struct talks *talks, struct str workspace) {
    struct talks_place *place = map_find(talks->places, workspace);
    if (place) return place;
    place = MEM_NEW(struct talks_place);
    list_init(&place->waiting);
    (void)map_put(talks->places, workspace, place);
    return place;
}

void talks_leave_place(struct talks *talks, struct str workspace) {
    struct talks_place *place = map_find(talks->places, workspace);
    place->taken--;
    if (!list_empty(&place->waiting)) {
        struct list *first = list_pop(&place->waiting);
        place->taken++;
        talk_turn_enter(CONTAINER_OF(first, struct talk_turn, waiting));
    } else if (place->taken == 0) {
        (void)map_remove(talks->places, workspace);
        free(place);
    }
}

/* --- the living and the dead ---------------------------------------------------------------------------- */

static void on_alive(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct talks *talks = ctx;
    (void)rows;
    (void)failed;
    talks->asking--;
    talks_check_stopped(talks);
}

static void tell_alive(struct talks *talks) {
    struct buf ids;
    buf_init(&ids, ALIVE_MAX_BYTES);
    LIST_EACH(&talks->all, link) {
        const struct talk *talk = CONTAINER_OF(link, struct talk, link);
        for (size_t i = 0; i < talk->turn_count; i++) {
            if (!talk->turns[i].turn || talk->turns[i].over) continue;
            if (ids.len) buf_append_byte(&ids, ',');
            buf_append(&ids, uuid_str(&talk->turns[i].id));
        }
    }
    if (ids.len) {
        talks->asking++;
        query_ask(rows_alive(buf_str(&ids)), talks->options.database, QUERY_REPEATABLE,
                  on_alive, talks);
    }
    buf_done(&ids);
}

static void show_dead(struct talks *talks, struct postgres_rows rows, size_t row) {
    struct buf json;
    buf_init(&json, 64 * KIB);
    struct json_writer writer = json_writer(&json);
    json_open_object(&writer);
    json_member_str(&writer, "message_id", postgres_content(rows, row, 0));
    json_member_str(&writer, "conversation_id", postgres_content(rows, row, 1));
    json_member_str(&writer, "agent_id", postgres_content(rows, row, 3));
    json_member_str(&writer, "status", postgres_content(rows, row, 4));
    json_close(&writer);
    talks->options.emit(postgres_content(rows, row, 2), "message.done", buf_str(&json),
                        talks->options.ctx);
    buf_done(&json);
}

static void on_swept(const struct postgres_request *answer, const struct err *failed,
                     void *ctx) {
    struct talks *talks = ctx;
    struct postgres_rows rows = {0};
    if (!failed) rows = postgres_rows(answer, 0);
    if (rows.count)
        log_warning("%zu messages were left unfinished by a process that has ended",
                    rows.count);
    for (size_t i = 0; i < rows.count; i++) show_dead(talks, rows, i);
    if (rows.count >= ROWS_SWEEP_MAX && !talks->stopped) timer_start(&talks->sweep, 0);
    talks->asking--;
    talks_check_stopped(talks);
}

/* Our own are touched three times before they could be taken for dead. */
static void on_sweep(void *ctx) {
    struct talks *talks = ctx;
    uint64_t every_ms = talks->options.stale_ms / 4;
    timer_start(&talks->sweep, every_ms < SWEEP_MS ? every_ms : SWEEP_MS);
    tell_alive(talks);
    talks->asking++;
    query_ask(rows_sweep((int64_t)talks->options.stale_ms), talks->options.database,
              QUERY_REPEATABLE, on_swept, talks);
}

/* --- all of them ------------------------------------------------------------------------------------------ */

struct talks *talks_new(const struct talks_options *options) {
    struct talks *talks = MEM_NEW(struct talks);
    talks->options = *options;
    talks->places = map_new();
    list_init(&talks->all);
    timer_init(&talks->sweep, options->loop, on_sweep, talks);
    timer_start(&talks->sweep, 0);
    return talks;
}

void talks_check_stopped(struct talks *talks) {
    if (!talks->stopped || talks->asking || !list_empty(&talks->all)) return;
    task_fn *stopped = talks->stopped;
    talks->stopped = NULL;
    stopped(talks->stopped_ctx);
}

bool talks_idle(const struct talks *talks) {
    return list_empty(&talks->all);
}

/* Before the others, which would end these in the middle of the list. */
static void drop_joined(struct talks *talks) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    LIST_EACH(&talks->all, link) {
        struct talk *talk = CONTAINER_OF(link, struct talk, link);
        if (!list_linked(&talk->joining)) continue;
        list_remove(&talk->joining);
        talk_tell(talk, NULL, &internal);
        talk_unref(talk);
    }
}

void talks_stop(struct talks *talks, task_fn *done, void *ctx) {
    timer_stop(&talks->sweep);
    talks->asking++;
    talks->stopped = done;
    talks->stopped_ctx = ctx;
    drop_joined(talks);
    LIST_EACH(&talks->all, link) talk_cancel(CONTAINER_OF(link, struct talk, link));
    talks->asking--;
    talks_check_stopped(talks);
}

void talks_free(struct talks *talks) {
    if (!talks) return;
    assert(list_empty(&talks->all));
    timer_stop(&talks->sweep);
    map_free(talks->places);
    free(talks);
}

/* --- which turn a tool call comes from: runtimes say what an agent asks before they ask it --- */

static bool talk_claim_is_of(const struct talk *talk, const struct workspace *workspace) {
    return str_equal(talk->workspace->id, workspace->id) &&
           str_equal(talk->workspace->conversation, workspace->conversation);
}

static bool claim(struct talk *talk, struct str slug, struct str message,
                  struct talk_asker *ret, bool *ret_turns) {
    for (size_t i = 0; i < talk->turn_count; i++) {
        struct talk_turn *turn = &talk->turns[i];
        if (!turn->turn || turn_ended(turn->turn)) continue;
        *ret_turns = true;
        const struct turn_part *part = turn_claim(turn->turn, slug, message);
        if (!part) continue;
        *ret = (struct talk_asker){part->agent->slug, part->id, text_str(talk->message)};
        return true;
    }
    return false;
}

bool talks_claim(struct talks *talks, const struct workspace *workspace, struct str slug,
                 struct str message, struct talk_asker *ret, bool *ret_turns) {
    *ret_turns = false;
    LIST_EACH(&talks->all, link) {
        struct talk *talk = CONTAINER_OF(link, struct talk, link);
        if (talk_claim_is_of(talk, workspace) && claim(talk, slug, message, ret, ret_turns))
            return true;
    }
    return false;
}
