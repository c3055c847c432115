/* Banks on a real store, against a model of what each owner should find. */
#include "fixture.h"
#include "helper/assert_str.h"
#include "helper/moves.h"
#include "store/bank.h"
#include "store/bank_search.h"

#define OWNERS 6
#define PLACES 2
#define RECORDS 24 /* of a bank of the model */
#define STEPS 1500

/* --- asking ------------------------------------------------------------------------------- */

struct seen {
    struct fixture *f;
    struct buf text; /* "name=body;" of each item */
    size_t count;
    bool more, made;
    double scores[BANK_ANSWER_MAX];
    int64_t last_us;
    char last[BANK_NAME_MAX_BYTES + 1];
};

static void on_answer(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct seen *seen = ctx;
    seen->f->failed.code = ERR_NONE;
    if (failed) seen->f->failed = *failed;
    loop_stop(seen->f->loop);
    if (failed) return;
    seen->count = answer->count;
    seen->more = answer->more;
    seen->made = answer->made;
    for (size_t i = 0; i < answer->count; i++) {
        const struct bank_item *item = &answer->items[i];
        buf_printf(&seen->text, STR_FMT "=" STR_FMT ";", STR_ARG(item->name),
                   STR_ARG(item->body));
        seen->scores[i] = item->score;
        seen->last_us = item->at_us;
        snprintf(seen->last, sizeof(seen->last), STR_FMT, STR_ARG(item->name));
    }
}

static struct seen seen_by(struct fixture *f) {
    struct seen seen = {.f = f};
    buf_init(&seen.text, MIB);
    return seen;
}

static struct bank_where where(const char *subject, const char *locator) {
    return (struct bank_where){{STR("app"), str_from(subject)}, str_from(locator)};
}

static const struct bank_event plain = {STR_INIT("l"), STR_INIT("e")};

static bool create(struct fixture *f, struct bank_where at, const char *name) {
    struct seen seen = seen_by(f);
    bank_create_start(f->store, f->loop, &at, str_from(name), str_from(name), 0, &plain,
                      on_answer, &seen);
    loop_run(f->loop);
    buf_done(&seen.text);
    return f->failed.code == ERR_NONE && seen.made;
}

static bool drop(struct fixture *f, struct bank_where at) {
    struct seen seen = seen_by(f);
    bank_delete_start(f->store, f->loop, &at, &plain, on_answer, &seen);
    loop_run(f->loop);
    buf_done(&seen.text);
    return f->failed.code == ERR_NONE;
}

static bool retain_at(struct fixture *f, struct bank_where at, const char *name,
                      const char *words, int64_t at_us) {
    struct seen seen = seen_by(f);
    const struct bank_record record = {.name = str_from(name),
                                       .body = str_from(words),
                                       .words = str_from(words),
                                       .kind = 1,
                                       .at_us = at_us,
                                       .event = str_from(name)};
    bank_retain_start(f->store, f->loop, &at, &record, 1, STR("l"), NULL, on_answer, &seen);
    loop_run(f->loop);
    buf_done(&seen.text);
    return f->failed.code == ERR_NONE;
}

static size_t forget(struct fixture *f, struct bank_where at, const char *name) {
    struct seen seen = seen_by(f);
    const struct str names[] = {str_from(name)};
    bank_forget_start(f->store, f->loop, &at, names, 1, &plain, on_answer, &seen);
    loop_run(f->loop);
    buf_done(&seen.text);
    return f->failed.code == ERR_NONE ? seen.count : 0;
}

static struct bank_query query(const char *words) {
    return (struct bank_query){.kinds = BANK_ANY,
                               .classes = BANK_ANY,
                               .from_us = INT64_MIN,
                               .to_us = INT64_MAX,
                               .limit = BANK_ANSWER_MAX,
                               .max_bytes = MIB,
                               .words = str_from(words)};
}

static struct seen find(struct fixture *f, struct bank_where at, struct bank_query by) {
    struct seen seen = seen_by(f);
    if (by.words.len) {
        bank_recall_start(f->store, f->loop, &at, &by, on_answer, &seen);
    } else {
        bank_history_start(f->store, f->loop, &at, &by, on_answer, &seen);
    }
    loop_run(f->loop);
    return seen;
}

static void assert_found(struct fixture *f, struct bank_where at, struct bank_query by,
                         const char *expected) {
    struct seen seen = find(f, at, by);
    if (f->failed.code) fail_msg("%s", f->failed.text);
    assert_str(buf_str(&seen.text), expected);
    buf_done(&seen.text);
}

/* --- the log ------------------------------------------------------------------------------ */

struct told {
    struct fixture *f;
    struct buf text; /* "sequence:bytes/body;" */
    uint64_t last, dropped, first;
    size_t count;
    bool more;
};

static void on_told(const struct event_log_page *page, const struct err *failed, void *ctx) {
    struct told *told = ctx;
    if (failed) fail_msg("%s", failed->text);
    told->last = page->last;
    told->dropped = page->dropped;
    told->first = page->first;
    told->count = page->count;
    told->more = page->more;
    for (size_t i = 0; i < page->count; i++)
        buf_printf(&told->text, "%llu:" STR_FMT "/" STR_FMT ";",
                   (unsigned long long)page->events[i].sequence, STR_ARG(page->events[i].bytes),
                   STR_ARG(page->events[i].body));
    loop_stop(told->f->loop);
}

static struct told tell(struct fixture *f, const char *subject, uint64_t after, size_t bytes) {
    const struct event_log_key key = {.kind = EVENT_LOG_MEMORY,
                                      .owner = {STR("app"), str_from(subject)}};
    struct told told = {.f = f};
    buf_init(&told.text, 4 * MIB);
    event_log_read_start(f->store, f->loop, &key, after, bytes, on_told, &told);
    loop_run(f->loop);
    return told;
}

static void assert_told(struct fixture *f, const char *subject, uint64_t after,
                        const char *expected) {
    struct told told = tell(f, subject, after, MIB);
    assert_str(buf_str(&told.text), expected);
    buf_done(&told.text);
}

/* --- banks and records -------------------------------------------------------------------- */

static void what_is_retained_is_found_by_time_and_by_words(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    assert_true(create(f, w, "B1"));
    assert_false(create(f, w, "B2")); /* it is there */
    assert_true(retain_at(f, w, "r1", "the weir holds", 30));
    assert_true(retain_at(f, w, "r2", "the mill turns", 10));
    assert_true(retain_at(f, w, "r3", "K\xc5\x8dto and the weir", 20));
    assert_found(f, w, query(""),
                 "r1=the weir holds;r3=K\xc5\x8dto and the weir;r2=the mill turns;");
    assert_found(f, w, query("KOTO"), "r3=K\xc5\x8dto and the weir;");
    assert_found(f, w, query("turns \"mill"), "r2=the mill turns;");
    assert_found(f, w, query("*"), "");
    assert_found(f, w, query("place b1"), ""); /* the index's own words cannot be asked for */
    struct bank_query between = query("");
    between.from_us = 10;
    between.to_us = 20;
    assert_found(f, w, between, "r3=K\xc5\x8dto and the weir;r2=the mill turns;");
    between.kinds = 1u << 2;
    assert_found(f, w, between, "");
    assert_int_equal(forget(f, w, "r3"), 1);
    assert_int_equal(forget(f, w, "r3"), 0);
    assert_found(f, w, query("koto"), "");
    assert_found(f, w, query("weir"), "r1=the weir holds;");
}

/* Its letters follow no pattern, so that no index makes it shorter. */
static void a_word_of_any_length_is_retained_and_found(void **state) {
    struct fixture *f = *state;
    struct bank_where at = where("anna", "place");
    char words[8 * KIB] = "ramen ", wanted[4 * KIB] = "";
    uint32_t letters = 1;
    for (size_t i = 6; i < sizeof(words) - 1; i++) {
        letters = letters * 1664525 + 1013904223;
        words[i] = "abcdefghijklmnopqrstuvwxyz234567"[letters >> 27];
        if (i < 6 + sizeof(wanted) - 1) wanted[i - 6] = words[i];
    }
    assert_true(create(f, at, "bank"));
    if (!retain_at(f, at, "long", words, 1)) fail_msg("%s", f->failed.text);
    words[6 + sizeof(wanted) - 1] = '\0';
    if (!retain_at(f, at, "asked", words, 2)) fail_msg("%s", f->failed.text);
    struct seen seen = find(f, at, query("ramen"));
    assert_int_equal(seen.count, 2);
    buf_done(&seen.text);
    seen = find(f, at, query(wanted));
    if (f->failed.code) fail_msg("%s", f->failed.text);
    if (fixture_postgres().len) { /* its index has the beginning, which is the same */
        assert_int_equal(seen.count, 2);
    } else {
        assert_int_equal(seen.count, 1);
        assert_true(str_starts(buf_str(&seen.text), STR("asked=")));
    }
    buf_done(&seen.text);
}

static void pages_of_history_join(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    struct buf all;
    char name[16];
    buf_init(&all, 4 * KIB);
    create(f, w, "B");
    for (int i = 0; i < 20; i++) { /* three of each time */
        snprintf(name, sizeof(name), "r%02d", i);
        retain_at(f, w, name, "x", 100 - i / 3);
        buf_printf(&all, "%s=x;", name);
    }
    for (size_t size = 1; size <= 21; size++) {
        struct buf joined;
        struct bank_query by = query("");
        char last[BANK_NAME_MAX_BYTES + 1];
        bool more = true;
        buf_init(&joined, 4 * KIB);
        by.limit = size;
        while (more) {
            struct seen seen = find(f, w, by);
            buf_append(&joined, buf_str(&seen.text));
            more = seen.more;
            memcpy(last, seen.last, sizeof(last));
            by.after_us = seen.last_us;
            by.after_name = str_from(last);
            buf_done(&seen.text);
        }
        assert_true(str_equal(buf_str(&joined), buf_str(&all)));
        buf_done(&joined);
    }
    struct bank_query by = query("");
    by.max_bytes = 9; /* two records of four bytes, and a bit */
    assert_found(f, w, by, "r00=x;r01=x;");
    by.max_bytes = 0;
    assert_found(f, w, by, "r00=x;");
    buf_done(&all);
}

/* The formula of bank.h, by hand. */
static void a_score_is_what_the_formula_says(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w"), other = where("ben", "w");
    create(f, w, "B");
    create(f, other, "C");
    retain_at(f, w, "a", "weir weir stone", 1);
    retain_at(f, w, "b", "weir", 2);
    retain_at(f, w, "c", "stone sea reed mill", 3);
    for (int i = 0; i < 20; i++) { /* what another has changes no score */
        char name[16];
        snprintf(name, sizeof(name), "o%d", i);
        retain_at(f, other, name, "weir weir weir weir", 1);
    }
    struct seen seen = find(f, w, query("weir weir"));
    assert_str(buf_str(&seen.text), "b=weir;a=weir weir stone;");
    double idf = 0.470003629, average = 8.0 / 3; /* ln(1 + 1.5 / 2.5) */
    double a = idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / average));
    double b = idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 / average));
    assert_true(seen.scores[0] > b - 1e-6 && seen.scores[0] < b + 1e-6);
    assert_true(seen.scores[1] > a - 1e-6 && seen.scores[1] < a + 1e-6);
    buf_done(&seen.text);
}

static void a_deleted_bank_leaves_nothing_behind(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    char name[16];
    create(f, w, "B");
    for (int i = 0; i < 450; i++) { /* more than two steps of pruning */
        snprintf(name, sizeof(name), "r%d", i);
        retain_at(f, w, name, "secret words", i);
    }
    assert_true(drop(f, w));
    assert_false(drop(f, w));
    assert_int_equal(f->failed.code, ERR_NOT_FOUND);
    create(f, w, "again");
    assert_found(f, w, query("secret"), "");
    struct told told = tell(f, "anna", 0, MIB);
    assert_true(str_find(buf_str(&told.text), STR("secret")) == told.text.len);
    assert_int_equal(told.count, 453);
    buf_done(&told.text);
    bool more = true;
    size_t steps = 0;
    for (; more; steps++) {
        struct seen seen = seen_by(f);
        bank_prune_start(f->store, f->loop, on_answer, &seen);
        loop_run(f->loop);
        more = seen.more;
        buf_done(&seen.text);
    }
    assert_true(steps > 3);
    fixture_close(f);
    assert_sql(f,
               "SELECT count(*) FROM bank_record; SELECT count(*) FROM bank WHERE state = 1;"
               "SELECT count(*) FROM bank_words WHERE bank_words MATCH 'secret'",
               "0 0 0 ");
    fixture_open(f);
}

static void an_owner_has_so_many_banks(void **state) {
    struct fixture *f = *state;
    char name[16];
    for (int i = 0; i < BANK_OWNER_BANKS_MAX; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        assert_true(create(f, where("anna", name), name));
    }
    assert_false(create(f, where("anna", "more"), "more"));
    assert_int_equal(f->failed.code, ERR_RESOURCE_EXHAUSTED);
    assert_true(create(f, where("ben", "more"), "more"));
    assert_true(drop(f, where("anna", "w3")));
    assert_true(create(f, where("anna", "more"), "more"));
}

/* --- its log ------------------------------------------------------------------------------ */

static void a_log_tells_each_change_once(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    create(f, w, "B");
    create(f, w, "B");
    retain_at(f, w, "r1", "one", 1);
    retain_at(f, w, "r2", "two", 1);
    forget(f, w, "r1");
    forget(f, w, "r1");
    retain_at(f, where("anna", "never"), "r3", "three", 1);
    drop(f, w);
    assert_told(f, "anna", 0, "1:e/B;2:r1/;3:r2/;4:e/r1\n;5:e/B;");
    assert_told(f, "anna", 3, "4:e/r1\n;5:e/B;");
    assert_told(f, "anna", 5, "");
    assert_told(f, "anna", INT64_MAX, "");
    assert_told(f, "ben", 0, "");
    fixture_close(f);
    fixture_open(f);
    create(f, w, "C");
    retain_at(f, w, "r4", "four", 1);
    assert_told(f, "anna", 4, "5:e/B;6:e/C;7:r4/four;");
}

static void a_page_of_a_log_has_so_many_bytes(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    create(f, w, "B");
    retain_at(f, w, "r1", "12345678", 1);
    retain_at(f, w, "r2", "12345678", 1);
    for (size_t bytes = 0; bytes < 30; bytes++) {
        uint64_t after = 0;
        for (bool more = true; more;) {
            struct told told = tell(f, "anna", after, bytes);
            assert_true(told.count > 0);
            after += told.count;
            more = told.more;
            buf_done(&told.text);
        }
        assert_true(after == 3);
    }
}

/* Filling it takes a while, so its rows are made by hand. */
static void a_log_keeps_the_newest(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    create(f, w, "B");
    fixture_close(f);
    fixture_sql(f, "WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
                   " INSERT INTO event_log_entry SELECT 1, i, 0, 100, x'', x'', x'' FROM n;"
                   "UPDATE event_log SET last = 10000, bytes = 1000000");
    fixture_open(f);
    retain_at(f, w, "r1", "one", 1);
    retain_at(f, w, "r2", "two", 1);
    struct told told = tell(f, "anna", 0, 100);
    assert_true(told.last == 10002 && told.dropped == 2 && told.first == 0);
    assert_true(str_starts(buf_str(&told.text), STR("3:/;")));
    buf_done(&told.text);
    fixture_close(f);
    fixture_sql(f, "UPDATE event_log SET bytes = 8 * 1024 * 1024 + 150");
    fixture_open(f);
    retain_at(f, w, "r3", "three", 1); /* its own bytes, and 150: three of 100 go */
    told = tell(f, "anna", 0, 100);
    assert_true(told.last == 10003 && told.dropped >= 4 && told.dropped <= 6);
    buf_done(&told.text);
}

/* --- many records ------------------------------------------------------------------------- */

#define MANY 2000

/* Record i says "word" once to seven times, so that many are equally good. */
static void fill(struct fixture *f, struct bank_where at) {
    static char names[MANY][8], words[MANY][64];
    static struct bank_record records[MANY];
    for (int i = 0; i < MANY; i++) {
        struct buf text = {.at = words[i], .room = 64, .max_bytes = 64};
        snprintf(names[i], sizeof(names[i]), "r%04d", i);
        for (int times = 0; times <= i * 31 % 7; times++) buf_append(&text, STR("word "));
        records[i] = (struct bank_record){.name = str_from(names[i]),
                                          .body = str_from(names[i]),
                                          .words = buf_str(&text),
                                          .at_us = i,
                                          .event = str_from(names[i])};
    }
    for (size_t i = 0; i < MANY; i += BANK_RETAIN_MAX) {
        struct seen seen = seen_by(f);
        bank_retain_start(f->store, f->loop, &at, records + i, BANK_RETAIN_MAX, STR("l"), NULL,
                          on_answer, &seen);
        loop_run(f->loop);
        assert_int_equal(f->failed.code, ERR_NONE);
        buf_done(&seen.text);
    }
}

static void the_best_are_the_same_however_many_are_asked_for(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    assert_true(create(f, w, "B"));
    fill(f, w);
    struct seen all = find(f, w, query("word"));
    assert_true(all.count == BANK_ANSWER_MAX && all.more);
    for (size_t i = 1; i < all.count; i++) assert_true(all.scores[i] <= all.scores[i - 1]);
    /* The best have 7 words, and among equals the newest comes first. */
    assert_true(str_starts(buf_str(&all.text), STR("r1997=r1997;r1990=r1990;")));
    static const size_t limits[] = {1, 2, 3, 10, 63, 64, 65, 199};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct bank_query by = query("word");
        by.limit = limits[i];
        struct seen some = find(f, w, by);
        assert_true(some.count == limits[i] && some.more);
        assert_true(str_starts(buf_str(&all.text), buf_str(&some.text)));
        buf_done(&some.text);
    }
    buf_done(&all.text);
}

static void a_search_that_is_given_up_is_answered_once(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    assert_true(create(f, w, "B"));
    fill(f, w);
    for (int i = 0; i < 50; i++) {
        struct seen seen = seen_by(f);
        struct bank_query by = query("word");
        struct bank_ask *ask = bank_recall_start(f->store, f->loop, &w, &by, on_answer, &seen);
        bank_give_up(ask);
        loop_run(f->loop);
        assert_true(f->failed.code == ERR_CANCELLED || f->failed.code == ERR_NONE);
        buf_done(&seen.text);
    }
}

/* The store is closed right after: what is left is answered, and nothing is lost. */
static void a_search_under_a_store_that_closes_is_answered(void **state) {
    struct fixture *f = *state;
    struct bank_where w = where("anna", "w");
    assert_true(create(f, w, "B"));
    fill(f, w);
    struct seen seen = seen_by(f);
    struct bank_query by = query("word");
    bank_recall_start(f->store, f->loop, &w, &by, on_answer, &seen);
    fixture_close(f);
    loop_run(f->loop);
    assert_true(f->failed.code == ERR_UNAVAILABLE || f->failed.code == ERR_NONE);
    buf_done(&seen.text);
    fixture_open(f);
}

/* --- a model ------------------------------------------------------------------------------ */

struct model {
    bool there;
    bool has[RECORDS];
    size_t events; /* of the owner; kept in the first place */
};

static uint32_t chance = 12345;

static uint32_t draw(uint32_t below) {
    chance = chance * 1664525 + 1013904223;
    return (chance >> 8) % below;
}

static void assert_model(struct fixture *f, const struct model *model, struct bank_where at,
                         const char *subject) {
    struct buf expected;
    buf_init(&expected, 4 * KIB);
    for (int i = RECORDS; i-- > 0;) {
        if (model->has[i]) buf_printf(&expected, "r%02d=%s;", i, subject);
    }
    struct seen seen = find(f, at, query(""));
    assert_int_equal(f->failed.code, model->there ? ERR_NONE : ERR_NOT_FOUND);
    assert_true(str_equal(buf_str(&seen.text), buf_str(&expected)));
    size_t count = seen.count;
    buf_done(&seen.text);
    seen = find(f, at, query(subject));
    assert_int_equal(seen.count, count);
    buf_done(&seen.text);
    seen = find(f, at, query("nobody"));
    assert_int_equal(seen.count, 0);
    buf_done(&seen.text);
    buf_done(&expected);
}

/* M1: what each owner finds, and how many events it is told of, is its own doing alone. */
static void owners_find_only_what_is_theirs(void **state) {
    struct fixture *f = *state;
    static struct model models[OWNERS][PLACES];
    size_t events[OWNERS] = {0};
    char subject[16], place[16], name[16];
    memset(models, 0, sizeof(models));
    for (int step = 0; step < STEPS; step++) {
        uint32_t o = draw(OWNERS), p = draw(PLACES), r = draw(RECORDS);
        struct model *model = &models[o][p];
        snprintf(subject, sizeof(subject), "owner%u", o);
        snprintf(place, sizeof(place), "w%u", p);
        snprintf(name, sizeof(name), "r%02u", r);
        struct bank_where at = where(subject, place);
        switch (draw(8)) {
        case 0:
            assert_int_equal(create(f, at, place), !model->there);
            events[o] += !model->there;
            model->there = true;
            break;
        case 1:
            if (draw(4)) break;
            assert_int_equal(drop(f, at), model->there);
            events[o] += model->there;
            *model = (struct model){.there = false};
            break;
        case 2:
        case 3:
        case 4:
            if (model->has[r]) break;
            assert_int_equal(retain_at(f, at, name, subject, r), model->there);
            events[o] += model->there;
            model->has[r] = model->there;
            break;
        case 5:
            assert_int_equal(forget(f, at, name), model->has[r]);
            events[o] += model->has[r];
            model->has[r] = false;
            break;
        default: assert_model(f, model, at, subject); break;
        }
    }
    for (unsigned o = 0; o < OWNERS; o++) {
        snprintf(subject, sizeof(subject), "owner%u", o);
        struct told told = tell(f, subject, 0, 10);
        assert_true(told.last == events[o] && told.dropped == 0);
        buf_done(&told.text);
        for (unsigned p = 0; p < PLACES; p++) {
            snprintf(place, sizeof(place), "w%u", p);
            assert_model(f, &models[o][p], where(subject, place), subject);
        }
    }
}

static int setup(void **state) {
    fixture_setup(state);
    struct fixture *f = *state;
    f->durability = STORE_OFF;
    fixture_open(f);
    return 0;
}

static void only_the_drawn_phases_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "finding weighing", "finding reading",  "finding over",  "weighing scoring",
        "weighing reading", "scoring fetching", "scoring over",  "reading merging",
        "merging reading",  "merging fetching", "fetching over",
    };
    assert_moves(bank_search_phases, BANK_SEARCH_PHASE_COUNT, drawn, ARRAY_LEN(drawn));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(only_the_drawn_phases_are_legal),
        TEST(what_is_retained_is_found_by_time_and_by_words),
        TEST(a_word_of_any_length_is_retained_and_found),
        TEST(pages_of_history_join),
        TEST(a_score_is_what_the_formula_says),
        TEST(the_best_are_the_same_however_many_are_asked_for),
        TEST(a_search_that_is_given_up_is_answered_once),
        TEST(a_search_under_a_store_that_closes_is_answered),
        TEST(a_deleted_bank_leaves_nothing_behind),
        TEST(an_owner_has_so_many_banks),
        TEST(a_log_tells_each_change_once),
        TEST(a_page_of_a_log_has_so_many_bytes),
        TEST(a_log_keeps_the_newest),
        TEST(owners_find_only_what_is_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
