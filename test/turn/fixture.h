/* fixture: three agents, two tools, and a scripted model and store.
 *
 * say() starts a turn and adds a reader that records every event as one word, so a test
 * compares sentences.
 */
#ifndef WEIR_TEST_TURN_FIXTURE_H
#define WEIR_TEST_TURN_FIXTURE_H

#include "base/mem.h"
#include "fake/provider_fake.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "session/waiting.h"
#include "turn/run.h"

#include <stdio.h>
#include <stdlib.h>

#define FRESH __attribute__((unused)) static

struct fixture {
    struct loop *loop;
    struct store *store;   /* NULL: in memory */
    struct keeper *keeper; /* NULL: in memory */
    struct provider *model;
    struct tool *search, *write;
    struct agent agents[3];
    struct tool *tools[2];
    struct engine engine;
    struct run_host host;
};

FRESH const struct str to_wally[] = {STR_INIT("wally")};

FRESH void fixture_init(struct fixture *f, bool with_store) {
    *f = (struct fixture){.loop = loop_new_fake(), .model = fake_provider_new()};
    f->search = f->tools[0] = fake_tool_new("search");
    f->write = f->tools[1] = fake_tool_new("write");
    if (with_store) {
        f->store = fake_store_new();
        fake_store_always_commit(f->store);
        f->keeper = keeper_new(f->loop, f->store);
    }
    f->agents[0] = (struct agent){.slug = STR("manager"),
                                  .system = STR("You manage."),
                                  .model = STR("m-1"),
                                  .provider = f->model,
                                  .delegates = to_wally,
                                  .delegate_count = 1};
    f->agents[1] = (struct agent){.slug = STR("wally"), .provider = f->model};
    f->agents[2] = (struct agent){.slug = STR("eve"), .provider = f->model};
    f->engine = (struct engine){.agents = f->agents,
                                .agent_count = 3,
                                .tools = f->tools,
                                .tool_count = 2,
                                .sessions = session_table_new(f->store),
                                .limits = run_limits_default,
                                .refs = 1};
    run_host_init(&f->host, &f->engine, f->loop, f->keeper);
}

/* Turns until mail, commits and loads have settled. */
FRESH void turns(struct fixture *f) {
    for (size_t i = 0; i < 12; i++) {
        while (f->store && fake_store_loads(f->store)) fake_store_answer(f->store, 0);
        loop_turn(f->loop);
    }
}

FRESH void fixture_kept(void *ctx) {
    *(bool *)ctx = true;
}

FRESH void fixture_done(struct fixture *f) {
    if (f->keeper) {
        bool kept = false;
        fake_store_always_commit(f->store);
        while (fake_store_writes(f->store)) fake_store_commit(f->store, 0);
        keeper_flush(f->keeper, fixture_kept, &kept);
        turns(f);
        assert_true(kept);
    }
    turns(f);
    assert_int_equal(f->host.run_count, 0);
    run_host_done(&f->host);
    assert_int_equal(f->engine.refs, 1); /* no run keeps it */
    session_table_free(f->engine.sessions);
    keeper_free(f->keeper);
    fake_store_free(f->store);
    provider_free(f->model);
    tool_free(f->search);
    tool_free(f->write);
    loop_free(f->loop);
}

FRESH int fixture_setup_with(void **state, bool stored) {
    struct fixture *f = MEM_NEW(struct fixture);
    fixture_init(f, stored);
    *state = f;
    return 0;
}

FRESH int fixture_setup(void **state) {
    return fixture_setup_with(state, false);
}

FRESH int fixture_setup_stored(void **state) {
    return fixture_setup_with(state, true);
}

FRESH int fixture_teardown(void **state) {
    struct fixture *f = *state;
    fixture_done(f);
    free(f);
    return 0;
}

#define TURN_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define STORED_TURN_TEST(name)                                                                 \
    cmocka_unit_test_setup_teardown(name, fixture_setup_stored, fixture_teardown)

/* --- events and messages as words --------------------------------------------------------- */

FRESH void write_done(struct buf *out, const struct event *event) {
    buf_printf(out, "done(" STR_FMT, STR_ARG(event->done.model));
    struct str rest = event->done.turns;
    struct event_turn turn;
    while (event_turn_next(&rest, &turn)) {
        buf_printf(out, " " STR_FMT "=" STR_FMT, STR_ARG(turn.agent), STR_ARG(turn.text));
    }
    buf_append(out, STR(")"));
}

FRESH void write_event(struct buf *out, const struct event *event) {
    if (out->len) buf_append_byte(out, ' ');
    switch (event->kind) {
    case EVENT_STARTED:
        buf_printf(out, "started(" STR_FMT ")", STR_ARG(event->started.text));
        break;
    case EVENT_TEXT: buf_printf(out, "text(" STR_FMT ")", STR_ARG(event->text.text)); break;
    case EVENT_THINKING:
        buf_printf(out, "thinking(" STR_FMT ")", STR_ARG(event->thinking.text));
        break;
    case EVENT_TOOL_CALL:
        buf_printf(out, "call(" STR_FMT " " STR_FMT " " STR_FMT ")",
                   STR_ARG(event->tool_call.call_id), STR_ARG(event->tool_call.tool),
                   STR_ARG(event->tool_call.args));
        break;
    case EVENT_TOOL_RESULT:
        buf_printf(out, "result(" STR_FMT " " STR_FMT "%s)",
                   STR_ARG(event->tool_result.call_id), STR_ARG(event->tool_result.result),
                   event->tool_result.error ? " !" : "");
        break;
    case EVENT_USAGE:
        buf_printf(out, "usage(%lld %lld)", (long long)event->usage.call_sequence,
                   (long long)event->usage.prompt);
        break;
    case EVENT_APPROVAL:
        buf_printf(out, "approval(" STR_FMT " " STR_FMT ")", STR_ARG(event->approval.call_id),
                   STR_ARG(event->approval.question));
        break;
    case EVENT_STEP:
        buf_printf(out, "step(" STR_FMT ")", STR_ARG(event->step.description));
        break;
    case EVENT_ITEM: buf_printf(out, "item(" STR_FMT ")", STR_ARG(event->item.type)); break;
    case EVENT_DONE: write_done(out, event); break;
    case EVENT_FAILED:
        buf_printf(out, "failed(%s " STR_FMT ")", err_kinds[event->failed.code].name,
                   STR_ARG(event->failed.reason));
        break;
    case EVENT_CANCELLED:
        buf_printf(out, "cancelled(" STR_FMT ")", STR_ARG(event->cancelled.message));
        break;
    default: buf_append(out, STR("?")); break;
    }
}

FRESH void write_message(struct buf *out, const struct message *message) {
    static const char *const roles[] = {"user", "agent", "call", "result", "opaque", "system"};
    if (out->len) buf_append_byte(out, ' ');
    buf_printf(out, "%s", roles[message->role]);
    if (message->role == MESSAGE_AGENT) buf_printf(out, "/" STR_FMT, STR_ARG(message->agent));
    if (message->role == MESSAGE_TOOL_CALL) {
        buf_printf(out, "/" STR_FMT, STR_ARG(message->tool));
    }
    buf_printf(out, "=" STR_FMT "%s", STR_ARG(message->text), message->error ? "!" : "");
}

/* --- turns -------------------------------------------------------------------------------- */

struct turn {
    struct fixture *f;
    struct run *run;
    struct cursor *cursor;
    struct buf seen;
};

FRESH void turn_ready(void *ctx) {
    struct turn *turn = ctx;
    struct event event = {0};
    while (cursor_next(turn->cursor, &event)) write_event(&turn->seen, &event);
}

FRESH struct run_request request_of(const char *text) {
    return (struct run_request){.name = {STR("w"), STR("u"), STR("s")},
                                .text = str_from(text),
                                .contract = STR("test")};
}

FRESH void follow(struct turn *turn, struct journal *journal, uint64_t after) {
    struct err e;
    buf_init(&turn->seen, MIB);
    assert_true(
        cursor_open(journal, after, turn->f->loop, turn_ready, turn, &turn->cursor, &e));
}

FRESH void start(struct turn *turn, struct fixture *f, const struct run_request *request) {
    struct err e;
    *turn = (struct turn){.f = f};
    if (!run_start(&f->host, request, &turn->run, &e)) fail_msg("%s", e.text);
    follow(turn, run_journal(turn->run), 0);
    turns(f);
}

FRESH void say(struct turn *turn, struct fixture *f, const char *text) {
    struct run_request request = request_of(text);
    start(turn, f, &request);
}

/* The call that the model answers now, the newest. */
FRESH struct provider_call *asked(struct fixture *f) {
    return fake_call(f->model, fake_calls(f->model) - 1);
}

FRESH void reply(struct fixture *f, const char *text) {
    assert_true(fake_text(asked(f), str_from(text)));
    fake_done(asked(f), "m-1");
    turns(f);
}

FRESH void assert_seen(struct turn *turn, const char *expected) {
    turns(turn->f);
    assert_str(buf_str(&turn->seen), expected);
}

FRESH void assert_asked(struct fixture *f, const char *expected) {
    const struct provider_request *request = fake_request(asked(f));
    struct buf out;
    buf_init(&out, MIB);
    for (size_t i = 0; i < request->message_count; i++) {
        write_message(&out, &request->messages[i]);
    }
    assert_str(buf_str(&out), expected);
    assert_int_equal(request->messages[request->turn_start].role, MESSAGE_USER);
    buf_done(&out);
}

FRESH void end(struct turn *turn) {
    turns(turn->f);
    cursor_close(turn->cursor);
    run_unref(turn->run);
    buf_done(&turn->seen);
}

/* The session's next message is a human's answer. */
FRESH void answer_as_human(struct turn *turn, struct fixture *f, const char *text) {
    struct session_name name = request_of("").name;
    struct journal *journal;
    uint64_t seq;
    *turn = (struct turn){.f = f};
    assert_true(session_has_pending(f->engine.sessions, &name));
    struct err e;
    assert_int_equal(
        session_answer_pending(f->engine.sessions, &name, str_from(text), &journal, &seq, &e),
        PENDING_TAKEN);
    follow(turn, journal, seq);
    journal_unref(journal);
    turns(f);
}

FRESH void lease_granted(void *ctx) {
    (void)ctx;
}

/* What the session remembers, as words. */
FRESH void write_history(struct fixture *f, struct buf *out) {
    static const struct lease_events events = {.granted = lease_granted};
    struct session_name name = request_of("").name;
    struct lease lease = {.loop = f->loop, .run = 1, .events = &events};
    struct err e;
    assert_int_not_equal(session_acquire(f->engine.sessions, &name, SESSION_QUEUE, &lease, &e),
                         SESSION_REFUSED);
    turns(f);
    assert_int_equal(lease.state, LEASE_HELD);
    struct message *messages = mem_zero(lease.history->message_count + 1, sizeof(*messages));
    history_messages(lease.history, messages);
    for (size_t i = 0; i < lease.history->message_count; i++) write_message(out, &messages[i]);
    session_release(&lease, NULL);
    free(messages);
}

FRESH void assert_history(struct fixture *f, const char *expected) {
    struct buf out;
    buf_init(&out, MIB);
    write_history(f, &out);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

#endif
