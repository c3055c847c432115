/* Agents on a real store: a change is made with what is stored then, whole or not at all. */
#include "fixture.h"
#include "helper/assert_str.h"
#include "store/agents.h"

/* A change of the tests: add a letter, and tell of it. '!' is refused, '.' changes nothing, and
 * '#' ends the agent. */
static bool add_letter(struct str before, struct agent_after *after, const void *ctx,
                       struct err *e) {
    char letter = *(const char *)ctx;
    if (letter == '!') return err_set(e, ERR_FAILED_PRECONDITION, "not this one");
    if (letter == '.') return true;
    after->changed = true;
    after->ended = letter == '#';
    after->status = letter == '#' ? 5 : 2;
    buf_append(after->body, before);
    buf_append_byte(after->body, letter);
    after->events[after->event_count++] =
        (struct event_log_entry){.label = STR("l"), .bytes = str_of(ctx, 1)};
    return true;
}

struct seen {
    struct fixture *f;
    struct buf text;
    size_t waits;
    bool more, changed;
    int64_t last_us;
    char last[64];
};

static void on_answer(const struct agents_answer *answer, const struct err *failed, void *ctx) {
    struct seen *seen = ctx;
    seen->f->failed.code = ERR_NONE;
    if (failed) seen->f->failed = *failed;
    if (--seen->waits == 0) loop_stop(seen->f->loop);
    if (failed) return;
    seen->more = answer->more;
    seen->changed = answer->changed;
    for (size_t i = 0; i < answer->count; i++) {
        const struct agent_item *item = &answer->items[i];
        buf_printf(&seen->text, STR_FMT "=" STR_FMT ";", STR_ARG(item->name),
                   STR_ARG(item->body));
        seen->last_us = item->made_us;
        snprintf(seen->last, sizeof(seen->last), STR_FMT, STR_ARG(item->name));
    }
}

static struct agent_where agent(const char *subject, const char *name) {
    return (struct agent_where){{STR("app"), str_from(subject)}, str_from(name)};
}

static void begin_change(struct seen *seen, struct agent_where at, const char *letter) {
    const struct agents_change change = {
        .fn = add_letter, .ctx = (void *)(uintptr_t)letter, .operation = STR("test")};
    seen->waits++;
    agents_change_start(seen->f->store, seen->f->loop, &at, &change, on_answer, seen);
}

static void assert_change(struct fixture *f, struct agent_where at, const char *letter,
                          const char *expected) {
    struct seen seen = {.f = f};
    buf_init(&seen.text, MIB);
    begin_change(&seen, at, letter);
    loop_run(f->loop);
    assert_str(buf_str(&seen.text), expected);
    buf_done(&seen.text);
}

static void assert_agent(struct fixture *f, struct agent_where at, const char *expected) {
    struct seen seen = {.f = f, .waits = 1};
    buf_init(&seen.text, MIB);
    agents_get_start(f->store, f->loop, &at, on_answer, &seen);
    loop_run(f->loop);
    assert_str(buf_str(&seen.text), expected);
    buf_done(&seen.text);
}

static void on_told(const struct event_log_page *page, const struct err *failed, void *ctx) {
    struct seen *seen = ctx;
    if (failed) fail_msg("%s", failed->text);
    for (size_t i = 0; i < page->count; i++)
        buf_printf(&seen->text, "%llu" STR_FMT " ",
                   (unsigned long long)page->events[i].sequence,
                   STR_ARG(page->events[i].bytes));
    loop_stop(seen->f->loop);
}

static void assert_told(struct fixture *f, struct agent_where at, const char *expected) {
    const struct event_log_key key = {EVENT_LOG_AGENT, at.owner, at.name};
    struct seen seen = {.f = f};
    buf_init(&seen.text, MIB);
    event_log_read_start(f->store, f->loop, &key, 0, MIB, on_told, &seen);
    loop_run(f->loop);
    assert_str(buf_str(&seen.text), expected);
    buf_done(&seen.text);
}

static void a_change_is_made_whole_or_not_at_all(void **state) {
    struct fixture *f = *state;
    struct agent_where ada = agent("anna", "ada");
    assert_change(f, ada, "a", "ada=a;");
    assert_change(f, ada, ".", "ada=a;");
    assert_change(f, ada, "!", "");
    assert_int_equal(f->failed.code, ERR_FAILED_PRECONDITION);
    assert_change(f, ada, "b", "ada=ab;");
    assert_agent(f, ada, "ada=ab;");
    assert_told(f, ada, "1a 2b ");
    assert_agent(f, agent("ben", "ada"), "");
    assert_int_equal(f->failed.code, ERR_NOT_FOUND);
    assert_told(f, agent("ben", "ada"), "");
    fixture_close(f);
    fixture_open(f);
    assert_change(f, ada, "c", "ada=abc;");
    assert_told(f, ada, "1a 2b 3c ");
}

/* They share a transaction; one of them fails, and fails no other. */
static void changes_at_once_are_made_one_after_the_other(void **state) {
    struct fixture *f = *state;
    struct seen seen = {.f = f};
    buf_init(&seen.text, MIB);
    for (const char *letters = "ab!cd.e"; *letters; letters++)
        begin_change(&seen, agent("anna", "ada"), letters);
    loop_run(f->loop);
    buf_done(&seen.text);
    assert_agent(f, agent("anna", "ada"), "ada=abcde;");
    assert_told(f, agent("anna", "ada"), "1a 2b 3c 4d 5e ");
}

static void pages_of_a_list_join(void **state) {
    struct fixture *f = *state;
    char name[16];
    const struct store_owner owner = {STR("app"), STR("anna")};
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(f->failed.code, ERR_NONE);
        struct seen seen = {.f = f};
        buf_init(&seen.text, KIB);
        begin_change(&seen, agent("anna", name), i == 3 ? "#" : "a");
        loop_run(f->loop);
        buf_done(&seen.text);
    }
    fixture_close(f);
    fixture_sql(f, "UPDATE agent SET made_us = id / 3"); /* several of one time */
    fixture_open(f);
    for (size_t size = 1; size <= 8; size++) {
        struct agents_query by = {.autonomous = -1, .limit = size, .max_bytes = MIB};
        struct buf all;
        char last[64];
        buf_init(&all, KIB);
        for (bool more = true; more;) {
            struct seen seen = {.f = f, .waits = 1};
            buf_init(&seen.text, KIB);
            agents_list_start(f->store, f->loop, &owner, &by, on_answer, &seen);
            loop_run(f->loop);
            buf_append(&all, buf_str(&seen.text));
            more = seen.more;
            memcpy(last, seen.last, sizeof(last));
            by.after_us = seen.last_us;
            by.after_name = str_from(last);
            buf_done(&seen.text);
        }
        assert_str(buf_str(&all), "n5=a;n6=a;n2=a;n3=#;n4=a;n0=a;n1=a;");
        buf_done(&all);
    }
    struct agents_query by = {.status = 5, .autonomous = 0, .limit = 10, .max_bytes = MIB};
    struct seen seen = {.f = f, .waits = 1};
    buf_init(&seen.text, KIB);
    agents_list_start(f->store, f->loop, &owner, &by, on_answer, &seen);
    loop_run(f->loop);
    assert_str(buf_str(&seen.text), "n3=#;");
    buf_done(&seen.text);
}

static int setup(void **state) {
    fixture_setup(state);
    struct fixture *f = *state;
    f->durability = STORE_OFF;
    fixture_open(f);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_change_is_made_whole_or_not_at_all),
        TEST(changes_at_once_are_made_one_after_the_other),
        TEST(pages_of_a_list_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
