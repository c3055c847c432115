#include "turn/long_reply.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/store.h"
#include "turn/turn.h"

#include <assert.h>
#include <stdlib.h>

#define PIECE_MAX_BYTES (256 * KIB)

const struct state long_reply_states[LONG_REPLY_STATE_COUNT] = {
    /* clang-format off */
    [LONG_REPLY_HELD]    = {"held",    TO(LONG_REPLY_STORED)},
    [LONG_REPLY_STORED]  = {"stored",  TO(LONG_REPLY_WAITING)},
    [LONG_REPLY_WAITING] = {"waiting", TO(LONG_REPLY_READING)},
    [LONG_REPLY_READING] = {"reading", TO(LONG_REPLY_HELD)},
    /* clang-format on */
};

/* A reply that is being read back. */
struct reply_read {
    struct run *run;  /* a reference */
    struct list link; /* in the host's line, while it waits */
    struct store_load load;
    struct reply_text text;
    uint64_t read_to;
    struct event end; /* appended once the text is in memory; kind 0: none */
    struct buf end_texts;
};

/* The only function that writes reply->state. */
static void long_reply_move(struct long_reply *reply, enum long_reply_state next) {
    assert(states_allow(long_reply_states, reply->state, next));
    reply->state = next;
}

/* --- dropping ----------------------------------------------------------------------------- */

void run_drop_reply(struct run *run, uint64_t seq) {
    struct long_reply *reply = &run->long_reply;
    size_t len = conversation_reply_len(&run->conversation);
    bool wanted = run->model_round.held || mem_scarce();
    if (!wanted || len < LONG_REPLY_BYTES || run->record.in_memory) return;
    if (seq < journal_appended(run->record.journal) || reply->read) return;
    if (reply->state == LONG_REPLY_HELD) long_reply_move(reply, LONG_REPLY_STORED);
    reply->last_seq = seq;
    reply->stored_bytes += len;
    conversation_drop_reply(&run->conversation);
}

/* --- reading back ------------------------------------------------------------------------- */

static void long_reply_read_piece(struct reply_read *read);

static void read_next(struct run_host *host) {
    if (host->reply_reads == LONG_REPLY_READS_MAX) return;
    struct list *first = list_pop(&host->replies);
    if (!first) return;
    struct reply_read *read = CONTAINER_OF(first, struct reply_read, link);
    host->reply_reads++;
    long_reply_move(&read->run->long_reply, LONG_REPLY_READING);
    long_reply_read_piece(read);
}

static void end_of_read(struct run *run, const struct event *end, const struct err *failed) {
    if (end->kind) {
        struct event event = *end;
        struct str said = conversation_reply(&run->conversation);
        if (event.kind == EVENT_FAILED) event.failed.said = said;
        if (event.kind == EVENT_CANCELLED) event.cancelled.said = said;
        run_append(run, &event);
    } else if (failed) {
        run_fail(run, ERR_UNAVAILABLE, STR("STORE_UNAVAILABLE"),
                 STR("the reply could not be read back from the store; try again"));
    } else {
        run_end_reply(run);
    }
}

/* If the text could not be read, the last event does not repeat it; the log has it in the text
 * events. */
static void read_over(struct reply_read *read, const struct err *failed) {
    struct run *run = read->run;
    struct run_host *host = run->record.host;
    struct long_reply *reply = &run->long_reply;
    if (failed)
        log_error("run %llu: its reply cannot be read back: %s",
                  (unsigned long long)record_id(&run->record), failed->text);
    conversation_restore_reply(&run->conversation, failed ? NULL : &read->text);
    *reply = (struct long_reply){.state = reply->state};
    long_reply_move(reply, LONG_REPLY_HELD);
    end_of_read(run, &read->end, failed);
    reply_text_clear(&read->text);
    buf_done(&read->end_texts);
    free(read);
    keeper_expect_no_more(host->keeper);
    host->reply_reads--;
    read_next(host);
    run_unref(run);
}

/* False: the section is damaged. */
static bool read_section(struct reply_read *read, const struct store_section *section,
                         struct err *e) {
    struct str rest = section->events;
    struct event event = {0};
    uint64_t last_seq = read->run->long_reply.last_seq;
    for (uint64_t seq = section->first_seq; rest.len && seq <= last_seq; seq++) {
        if (!event_decode(&rest, &event, e)) return false;
        read->read_to = seq;
        if (event.kind == EVENT_TEXT && !reply_text_append(&read->text, event.text.text))
            return err_set(e, ERR_DATA_LOSS, "the store has more of it than was written");
    }
    return true;
}

static bool read_sections(struct reply_read *read, const struct store_load *load,
                          struct err *e) {
    for (size_t i = 0; i < load->section_count; i++) {
        if (!read_section(read, &load->sections[i], e)) return false;
    }
    return true;
}

static bool is_read(const struct reply_read *read, struct err *e) {
    if (read->text.len == read->run->long_reply.stored_bytes) return true;
    return err_set(e, ERR_DATA_LOSS, "the store has %zu bytes of it, and %zu were written",
                   read->text.len, read->run->long_reply.stored_bytes);
}

static void long_reply_on_piece(struct store_load *load, const struct err *failed, void *ctx) {
    struct reply_read *read = ctx;
    uint64_t before = read->read_to;
    struct err e;
    bool ok = !failed && read_sections(read, load, &e);
    arena_free(load->arena);
    bool more = ok && read->read_to < read->run->long_reply.last_seq && read->read_to > before;
    if (more) {
        long_reply_read_piece(read);
        return;
    }
    ok = ok && is_read(read, &e);
    read_over(read, ok ? NULL : failed ? failed : &e);
}

static void long_reply_read_piece(struct reply_read *read) {
    struct run *run = read->run;
    read->load = (struct store_load){.question = STORE_RUN,
                                     .run = record_id(&run->record),
                                     .after_seq = read->read_to,
                                     .max_bytes = PIECE_MAX_BYTES,
                                     .home = run->record.host->loop,
                                     .on_loaded = long_reply_on_piece,
                                     .ctx = read};
    store_load(session_table_store(run->record.engine->sessions), &read->load);
}

bool run_bring_reply(struct run *run) {
    struct long_reply *reply = &run->long_reply;
    struct run_host *host = run->record.host;
    if (reply->state == LONG_REPLY_HELD) return true;
    if (reply->read) return false;
    struct reply_read *read = reply->read = MEM_NEW(struct reply_read);
    read->run = run_ref(run);
    read->read_to = reply->first_seq - 1;
    reply_text_init(&read->text, reply->stored_bytes);
    list_init(&read->link);
    long_reply_move(reply, LONG_REPLY_WAITING);
    keeper_expect(host->keeper);
    list_append(&host->replies, &read->link);
    read_next(host);
    return false;
}

bool run_end_later(struct run *run, const struct event *event) {
    if (run_bring_reply(run)) return false;
    struct reply_read *read = run->long_reply.read;
    struct event *end = &read->end;
    bool failed = event->kind == EVENT_FAILED;
    assert(failed || event->kind == EVENT_CANCELLED);
    struct buf texts = read->end_texts;
    *end = *event;
    struct str *of_failed[] = {&end->failed.reason, &end->failed.message};
    struct str *of_cancelled[] = {&end->cancelled.message};
    buf_keep_texts(&read->end_texts, failed ? of_failed : of_cancelled, failed ? 2 : 1);
    buf_done(&texts);
    return true;
}
