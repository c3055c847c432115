/* The life of a record: who finds it when, what the disk does to its end, and how long it
 * stays. */
#include "record/record.h"

#include "fake/provider_fake.h"
#include "fake/store_fake.h"
#include "helper/moves.h"
#include "turn/fixture.h"

/* Every pair of states, against the drawing in the header. */
static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "fresh live",  "fresh ending",     "fresh over",  "live ending",    "live over",
        "ending live", "ending lingering", "ending over", "lingering over",
    };
    assert_moves(record_states, RECORD_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- an owner that writes down its callbacks ---------------------------------------------- */

struct owner {
    struct fixture f;
    struct record record;
    struct turn reader; /* only its cursor and what it has seen */
    struct buf reported;
};

static void on_durable(uint64_t seq, void *ctx) {
    buf_printf(&((struct owner *)ctx)->reported, "durable(%llu) ", (unsigned long long)seq);
}

static void fail_it(struct owner *owner, const char *reason) {
    struct event event = {.kind = EVENT_FAILED,
                          .failed = {.code = ERR_UNAVAILABLE, .reason = str_from(reason)}};
    record_append(&owner->record, &event);
}

static void on_lost(const struct err *why, void *ctx) {
    struct owner *owner = ctx;
    buf_printf(&owner->reported, "lost(%s%s) ", err_kinds[why->code].name,
               owner->record.unsure ? " unsure" : "");
    fail_it(owner, "GONE");
}

static void on_over(void *ctx) {
    buf_append(&((struct owner *)ctx)->reported, STR("over "));
}

static void on_leave(struct leaving leaving, struct str why, void *ctx) {
    (void)leaving;
    buf_printf(&((struct owner *)ctx)->reported, "leave(" STR_FMT ") ", STR_ARG(why));
}

static const struct record_events events = {
    .on_durable = on_durable, .on_lost = on_lost, .on_over = on_over, .leave = on_leave};

static const struct session_name name = {STR_INIT("app"), STR_INIT("anna"), STR_INIT("s")};

static struct record_options options_of(struct owner *owner) {
    return (struct record_options){.what = "test",
                                   .host = &owner->f.host,
                                   .engine = &owner->f.engine,
                                   .window_max_bytes = KIB,
                                   .agent = STR("manager"),
                                   .events = &events,
                                   .ctx = owner};
}

enum where { IN_MEMORY, ON_DISK };

static void owner_init(struct owner *owner, enum where where) {
    *owner = (struct owner){.reported = {0}};
    fixture_init(&owner->f, where == ON_DISK);
    buf_init(&owner->reported, KIB);
}

static void owner_start(struct owner *owner, enum where where) {
    owner_init(owner, where);
    struct record_options options = options_of(owner);
    record_init(&owner->record, &options);
    owner->reader.f = &owner->f;
    follow(&owner->reader, owner->record.journal, 0);
    record_enter(&owner->record, &name, RUN_WORKING);
    struct event started = record_started(&owner->record, STR("hi"), STR("test"));
    record_append(&owner->record, &started);
}

static void owner_end(struct owner *owner) {
    cursor_close(owner->reader.cursor);
    buf_done(&owner->reader.seen);
    buf_done(&owner->reported);
    record_leave(&owner->record);
    record_done(&owner->record);
    fixture_done(&owner->f);
}

static int setup(void **state) {
    struct owner *owner = MEM_NEW(struct owner);
    owner_start(owner, ON_DISK);
    *state = owner;
    return 0;
}

static int teardown(void **state) {
    struct owner *owner = *state;
    owner_end(owner);
    free(owner);
    return 0;
}

static void note(struct owner *owner) {
    struct event event = {.kind = EVENT_ITEM, .item = {STR("t"), STR("b")}};
    record_append(&owner->record, &event);
}

static void finish(struct owner *owner) {
    struct event event = {.kind = EVENT_DONE, .done = {STR("m"), STR_EMPTY}};
    record_append(&owner->record, &event);
}

static void assert_reported(struct owner *owner, const char *expected) {
    turns(&owner->f);
    assert_str(buf_str(&owner->reported), expected);
}

/* What a finder sees: an enum run_state, or -1. */
static int shown(struct owner *owner) {
    struct live_view view;
    struct directory *directory = session_table_directory(owner->f.engine.sessions);
    if (!directory_find(directory, record_id(&owner->record), &view)) return -1;
    int state = view.state;
    live_view_done(&view);
    return state;
}

/* --- its end ------------------------------------------------------------------------------ */

static void its_end_counts_when_the_disk_has_it(void **state) {
    struct owner *owner = *state;
    fake_store_ask_me(owner->f.store);
    finish(owner);
    assert_true(record_is_ending(&owner->record));
    assert_reported(owner, "");
    assert_int_equal(shown(owner), RUN_WORKING); /* the end was not shown yet */
    assert_str(buf_str(&owner->reader.seen), "started(hi)");
    fake_store_commit(owner->f.store, 0);
    assert_reported(owner, "over ");
    assert_int_equal(shown(owner), -1);
    assert_str(buf_str(&owner->reader.seen), "started(hi) done(m)");
}

static void an_end_that_the_store_refuses_is_replaced_by_what_is_true(void **state) {
    struct owner *owner = *state;
    fake_store_always_lose(owner->f.store, ERR_UNAVAILABLE);
    finish(owner);
    assert_reported(owner, "lost(UNAVAILABLE) over ");
    assert_int_equal(owner->record.ending, RUN_FAILED);
    assert_str(buf_str(&owner->reader.seen), "started(hi) failed(UNAVAILABLE GONE)");
}

static void whether_it_was_kept_may_be_unknown(void **state) {
    struct owner *owner = *state;
    fake_store_always_lose(owner->f.store, ERR_OUTCOME_UNKNOWN);
    finish(owner);
    assert_reported(owner, "lost(UNAVAILABLE unsure) over ");
}

static void one_that_is_lost_on_its_way_ends(void **state) {
    struct owner *owner = *state;
    fake_store_always_lose(owner->f.store, ERR_UNAVAILABLE);
    note(owner);
    record_gate(&owner->record);
    assert_reported(owner, "lost(UNAVAILABLE) over ");
    assert_str(buf_str(&owner->reader.seen), "started(hi) failed(UNAVAILABLE GONE)");
}

static void what_was_dropped_leaves_an_end_that_needs_no_disk(void **state) {
    struct owner *owner = *state;
    fake_store_ask_me(owner->f.store);
    record_retract(&owner->record);
    finish(owner);
    assert_reported(owner, "over ");
    assert_int_equal(fake_store_sent(owner->f.store), 0);
}

/* --- without a disk ----------------------------------------------------------------------- */

static void in_memory_the_same_calls_come_at_the_end_of_the_turn(void **state) {
    (void)state;
    struct owner owner;
    owner_start(&owner, IN_MEMORY);
    note(&owner);
    record_gate(&owner.record);
    assert_str(buf_str(&owner.reported), "");
    assert_reported(&owner, "durable(2) ");
    finish(&owner);
    assert_str(buf_str(&owner.reported), "durable(2) ");
    assert_reported(&owner, "durable(2) over ");
    owner_end(&owner);
}

static void one_that_lingers_is_found_until_its_time_is_over(void **state) {
    struct owner *owner = *state;
    owner->record.linger_ms = 1000;
    fake_store_always_lose(owner->f.store, ERR_UNAVAILABLE);
    finish(owner);
    assert_reported(owner, "lost(UNAVAILABLE) ");
    assert_int_equal(shown(owner), RUN_FAILED); /* as it ended, not as it was about to */
    loop_advance(owner->f.loop, 999);
    assert_int_equal(shown(owner), RUN_FAILED);
    loop_advance(owner->f.loop, 1);
    assert_reported(owner, "lost(UNAVAILABLE) over ");
    assert_int_equal(shown(owner), -1);
}

static void one_that_is_stored_does_not_linger(void **state) {
    struct owner *owner = *state;
    owner->record.linger_ms = 1000;
    finish(owner);
    assert_reported(owner, "over ");
}

static void a_record_in_memory_alone_is_not_stored(void **state) {
    (void)state;
    struct owner owner;
    owner_init(&owner, ON_DISK);
    struct record_options options = options_of(&owner);
    options.in_memory = true;
    record_init(&owner.record, &options);
    finish(&owner);
    assert_int_equal(shown(&owner), -1);
    assert_reported(&owner, "over ");
    assert_int_equal(fake_store_sent(owner.f.store), 0);
    record_done(&owner.record);
    buf_done(&owner.reported);
    fixture_done(&owner.f);
}

/* --- who finds it ------------------------------------------------------------------------- */

static void a_finder_sees_what_it_does_and_may_have_it_left(void **state) {
    struct owner *owner = *state;
    assert_int_equal(shown(owner), RUN_WORKING);
    record_show(&owner->record, RUN_WAITING);
    assert_int_equal(shown(owner), RUN_WAITING);
    struct directory *directory = session_table_directory(owner->f.engine.sessions);
    assert_true(directory_cancel(directory, record_id(&owner->record), STR("enough")));
    assert_reported(owner, "leave(enough) ");
}

/* The next process takes it up; this one hears no more of it. */
static void a_record_that_was_left_has_no_callback(void **state) {
    struct owner *owner = *state;
    fake_store_ask_me(owner->f.store);
    finish(owner);
    turns(&owner->f);
    record_leave(&owner->record);
    assert_int_equal(shown(owner), -1);
    fake_store_commit(owner->f.store, 0);
    assert_reported(owner, "");
}

static void a_later_life_goes_on_counting(void **state) {
    (void)state;
    struct owner owner;
    owner_init(&owner, ON_DISK);
    struct record_options options = options_of(&owner);
    options.run = 77;
    options.after_seq = 5;
    record_init(&owner.record, &options);
    owner.record.before_ms = 100;
    owner.reader.f = &owner.f;
    follow(&owner.reader, owner.record.journal, 5);
    loop_advance(owner.f.loop, 20);
    struct event event = {.kind = EVENT_ITEM, .item = {STR("t"), STR("b")}};
    assert_int_equal(record_append(&owner.record, &event), 6);
    assert_int_equal(event.at_ms, 120);
    assert_str(event.agent, "manager");
    assert_int_equal(record_id(&owner.record), 77);
    owner_end(&owner);
}

/* --- its key ------------------------------------------------------------------------------ */

static struct claim_view look(struct owner *owner) {
    struct claim_view view;
    const struct claim_name key = {STR("app"), STR("anna"), STR("k")};
    idempotency_claims_look(session_table_claims(owner->f.engine.sessions), &key, &view);
    return view;
}

static void its_key_stands_for_it_until_it_is_over(void **state) {
    struct owner *owner = *state;
    struct err e;
    uint64_t mark = look(owner).mark;
    owner->record.claim.name = (struct claim_name){STR("app"), STR("anna"), STR("k")};
    assert_true(record_claim(&owner->record, mark, &e));
    record_claimed(&owner->record, true);
    assert_int_equal(look(owner).run, record_id(&owner->record));
    assert_false(record_claim(&owner->record, mark, &e));
    assert_int_equal(e.code, ERR_ALREADY_EXISTS);
    record_give_back_key(&owner->record);
    assert_int_equal(look(owner).run, 0);
    assert_int_equal(look(owner).given_back, record_id(&owner->record));
    finish(owner);
    assert_reported(owner, "over ");
    assert_int_equal(look(owner).given_back, 0);
}

static void one_that_was_not_started_has_no_key(void **state) {
    struct owner *owner = *state;
    struct err e;
    owner->record.claim.name = (struct claim_name){STR("app"), STR("anna"), STR("k")};
    assert_true(record_claim(&owner->record, look(owner).mark, &e));
    record_claimed(&owner->record, false);
    assert_int_equal(look(owner).run, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Whatever the clock says: the newest run of the store was another replica's, an hour ahead. */
static void a_replica_counts_on_from_the_newest_run_in_its_own_slot(void **state) {
    struct owner *owner = *state;
    struct engine *engine = &owner->f.engine;
    const uint64_t slot_mask = 255, other_slot = 5;
    fake_store_share(owner->f.store);
    uint64_t ahead = (record_new_id(engine) + ((uint64_t)3600000 << 20)) | other_slot;
    record_continue_after(engine, ahead);
    uint64_t first = record_new_id(engine);
    assert_true(first > ahead);
    assert_int_equal(first & slot_mask, store_slot(owner->f.store));
    record_continue_after(engine, ahead - 1000); /* an older one changes nothing */
    assert_int_equal(record_new_id(engine), first + slot_mask + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        TEST(its_end_counts_when_the_disk_has_it),
        TEST(an_end_that_the_store_refuses_is_replaced_by_what_is_true),
        TEST(whether_it_was_kept_may_be_unknown),
        TEST(one_that_is_lost_on_its_way_ends),
        TEST(what_was_dropped_leaves_an_end_that_needs_no_disk),
        cmocka_unit_test(in_memory_the_same_calls_come_at_the_end_of_the_turn),
        TEST(one_that_lingers_is_found_until_its_time_is_over),
        TEST(one_that_is_stored_does_not_linger),
        cmocka_unit_test(a_record_in_memory_alone_is_not_stored),
        TEST(a_finder_sees_what_it_does_and_may_have_it_left),
        TEST(a_record_that_was_left_has_no_callback),
        cmocka_unit_test(a_later_life_goes_on_counting),
        TEST(a_replica_counts_on_from_the_newest_run_in_its_own_slot),
        TEST(its_key_stands_for_it_until_it_is_over),
        TEST(one_that_was_not_started_has_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
