/* Small records: replaced, deleted, ordered, all or nothing, and there again after a
 * restart. */
#include "store/kept.h"

#include "fixture.h"

struct answer {
    struct fixture *f;
    struct buf words; /* "SPACE:KEY=BYTES " */
    bool failed;
};

static void on_answer(const struct kept_record *records, size_t count, const struct err *failed,
                      void *ctx) {
    struct answer *answer = ctx;
    answer->failed = failed != NULL;
    for (size_t i = 0; i < count; i++)
        buf_printf(&answer->words, "%d:" STR_FMT "=" STR_FMT " ", (int)records[i].space,
                   STR_ARG(records[i].key), STR_ARG(records[i].bytes));
    loop_stop(answer->f->loop);
}

static void write_all(struct fixture *f, const struct kept_record *records, size_t count) {
    struct answer answer = {.f = f};
    kept_write_start(f->store, f->loop, records, count, on_answer, &answer);
    loop_run(f->loop);
    assert_false(answer.failed);
}

static void assert_kept(struct fixture *f, enum kept_space first, enum kept_space last,
                        const char *expected) {
    struct answer answer = {.f = f};
    buf_init(&answer.words, MIB);
    kept_read_start(f->store, f->loop, first, last, on_answer, &answer);
    loop_run(f->loop);
    assert_false(answer.failed);
    assert_int_equal(answer.words.len, strlen(expected));
    if (answer.words.len) assert_memory_equal(answer.words.at, expected, answer.words.len);
    buf_done(&answer.words);
}

static const struct kept_record some[] = {
    {KEPT_ACCOUNT_EVENT, STR_INIT("b"), STR_INIT("2"), false},
    {KEPT_ACCOUNT, STR_INIT("x"), STR_INIT("anna"), false},
    {KEPT_ACCOUNT_EVENT, STR_INIT("a"), STR_INIT("1"), false},
};

static void records_are_found_in_order_also_after_a_restart(void **state) {
    struct fixture *f = *state;
    assert_kept(f, KEPT_ACCOUNT, KEPT_ACCOUNT_BINDING, "");
    write_all(f, some, ARRAY_LEN(some));
    for (int i = 0; i < 2; i++) {
        assert_kept(f, KEPT_ACCOUNT, KEPT_ACCOUNT_BINDING, "1:x=anna 2:a=1 2:b=2 ");
        assert_kept(f, KEPT_ACCOUNT_EVENT, KEPT_ACCOUNT_EVENT, "2:a=1 2:b=2 ");
        assert_kept(f, KEPT_ACCOUNT_BINDING, KEPT_ACCOUNT_BINDING, "");
        fixture_close(f);
        fixture_open(f);
    }
}

static void a_record_is_replaced_or_deleted_as_a_whole(void **state) {
    struct fixture *f = *state;
    const struct kept_record changes[] = {{KEPT_ACCOUNT, STR("x"), STR(""), false},
                                          {KEPT_ACCOUNT_EVENT, STR("a"), STR_EMPTY, true},
                                          {KEPT_ACCOUNT_EVENT, STR("never"), STR_EMPTY, true},
                                          {KEPT_ACCOUNT_EVENT, STR("b"), STR("a\nb"), false}};
    write_all(f, some, ARRAY_LEN(some));
    write_all(f, changes, ARRAY_LEN(changes));
    assert_kept(f, KEPT_ACCOUNT, KEPT_ACCOUNT_BINDING, "1:x= 2:b=a\nb ");
}

static void assert_keys(struct fixture *f, const char *from, const char *upto,
                        const char *expected) {
    struct answer answer = {.f = f};
    buf_init(&answer.words, MIB);
    kept_read_keys_start(f->store, f->loop, KEPT_WEBHOOK, str_from(from), str_from(upto),
                         on_answer, &answer);
    loop_run(f->loop);
    assert_false(answer.failed);
    assert_int_equal(answer.words.len, strlen(expected));
    if (answer.words.len) assert_memory_equal(answer.words.at, expected, answer.words.len);
    buf_done(&answer.words);
}

static void those_of_some_keys_are_read(void **state) {
    struct fixture *f = *state;
    const struct kept_record records[] = {{KEPT_WEBHOOK, STR("7-b"), STR("2"), false},
                                          {KEPT_WEBHOOK, STR("7-a"), STR("1"), false},
                                          {KEPT_WEBHOOK, STR("77-a"), STR("3"), false},
                                          {KEPT_WEBHOOK, STR("8-a"), STR("4"), false},
                                          {KEPT_WEBHOOK_SENT, STR("7-a"), STR("5"), false}};
    write_all(f, records, ARRAY_LEN(records));
    assert_keys(f, "7-", "7.", "4:7-a=1 4:7-b=2 ");
    assert_keys(f, "7-b", "8", "4:7-b=2 4:77-a=3 ");
    assert_keys(f, "9-", "9.", "");
}

/* What nobody waits for is written all the same, and the record was copied. */
static void a_write_needs_nobody_who_waits(void **state) {
    struct fixture *f = *state;
    char bytes[] = "first";
    struct kept_record record = {KEPT_ACCOUNT, STR("x"), str_from(bytes), false};
    struct answer never = {.f = f, .failed = true};
    kept_write_start(f->store, f->loop, &record, 1, NULL, NULL);
    kept_forget(kept_write_start(f->store, f->loop, &record, 1, on_answer, &never));
    memset(bytes, 'x', sizeof(bytes) - 1);
    assert_kept(f, KEPT_ACCOUNT, KEPT_ACCOUNT, "1:x=first ");
    assert_true(never.failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup_open, fixture_teardown)
        TEST(records_are_found_in_order_also_after_a_restart),
        TEST(a_record_is_replaced_or_deleted_as_a_whole),
        TEST(those_of_some_keys_are_read),
        TEST(a_write_needs_nobody_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
