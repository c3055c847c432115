/* Memories on a real store: what is put is listed and found, only in its workspace. */
#include "base/utf8.h"
#include "fixture.h"
#include "store/memory.h"

#include <stdint.h>

static int setup(void **state) {
    fixture_setup(state);
    struct fixture *f = *state;
    f->durability = STORE_NORMAL;
    fixture_open(f);
    return 0;
}

/* What came of the last question; entries as "category/key=content;" */
struct answer {
    struct fixture *f;
    struct buf text;
    size_t count;
    bool more, cut, timed;
    int64_t created_us, updated_us; /* of the last entry */
};

static void on_answer(const struct memory_answer *answer, const struct err *failed, void *ctx) {
    struct answer *seen = ctx;
    seen->f->failed.code = ERR_NONE;
    if (failed) seen->f->failed = *failed;
    loop_stop(seen->f->loop);
    if (failed) return;
    seen->count = answer->count;
    seen->more = answer->more;
    seen->cut = answer->cut;
    for (size_t i = 0; answer->entries && i < answer->count; i++) {
        const struct memory_entry *entry = &answer->entries[i];
        buf_append(&seen->text, entry->category);
        buf_append_byte(&seen->text, '/');
        buf_append(&seen->text, entry->key);
        buf_append_byte(&seen->text, '=');
        buf_append(&seen->text, entry->content);
        buf_append_byte(&seen->text, ';');
        seen->created_us = entry->created_us;
        seen->updated_us = entry->updated_us;
    }
}

static struct answer answer_for(struct fixture *f) {
    struct answer answer = {.f = f};
    buf_init(&answer.text, 64 * MIB);
    return answer;
}

static void wait_for(struct fixture *f) {
    loop_run(f->loop);
    if (f->failed.code) fail_msg("%s", f->failed.text);
}

static void put_of(struct fixture *f, struct str workspace, struct memory_entry entry) {
    struct answer answer = answer_for(f);
    memory_put_start(f->store, f->loop, AUDIT_NOBODY, workspace, &entry, on_answer, &answer);
    wait_for(f);
    assert_int_equal(answer.count, 1);
    buf_done(&answer.text);
}

static void put(struct fixture *f, const char *category, const char *key, const char *content) {
    put_of(f, STR("w"),
           (struct memory_entry){.category = str_from(category),
                                 .key = str_from(key),
                                 .content = str_from(content)});
}

static size_t take_out(struct fixture *f, struct str workspace, struct str key) {
    struct answer answer = answer_for(f);
    memory_remove_start(f->store, f->loop, AUDIT_NOBODY, workspace, key, on_answer, &answer);
    wait_for(f);
    buf_done(&answer.text);
    return answer.count;
}

static struct answer list(struct fixture *f, struct memory_query query) {
    struct answer answer = answer_for(f);
    if (!query.workspace.len) query.workspace = STR("w");
    if (!query.limit) query.limit = MEMORY_LIST_COMMON;
    if (!query.max_bytes) query.max_bytes = 4 * MIB;
    memory_list_start(f->store, f->loop, &query, on_answer, &answer);
    wait_for(f);
    return answer;
}

static void assert_list(struct fixture *f, struct memory_query query, const char *expected) {
    struct answer answer = list(f, query);
    buf_append_byte(&answer.text, '\0');
    assert_string_equal(answer.text.at, expected);
    buf_done(&answer.text);
}

/* Times in tests stand still: each entry is put a moment apart by hand. */
static void set_time(struct fixture *f, const char *key, int64_t us) {
    char sql[120];
    fixture_close(f);
    snprintf(sql, sizeof(sql), "UPDATE memory SET updated_us = %lld WHERE key = x'%02X'",
             (long long)us, (unsigned)key[0]);
    fixture_sql(f, sql);
    fixture_open(f);
}

static void the_newest_change_comes_first_and_then_the_key(void **state) {
    struct fixture *f = *state;
    put(f, "core", "c", "3");
    put(f, "core", "a", "1");
    put(f, "daily", "b", "2");
    set_time(f, "a", 10);
    set_time(f, "b", 20);
    set_time(f, "c", 10);
    assert_list(f, (struct memory_query){.limit = 0}, "daily/b=2;core/a=1;core/c=3;");
    assert_list(f, (struct memory_query){.category = STR("core")}, "core/a=1;core/c=3;");
    assert_list(f, (struct memory_query){.category = STR("Core")}, "");
    assert_list(f, (struct memory_query){.limit = 1, .offset = 1}, "core/a=1;");
    assert_list(f, (struct memory_query){.offset = 3}, "");
    assert_list(f, (struct memory_query){.offset = INT32_MAX}, "");
    assert_list(f, (struct memory_query){.workspace = STR("other")}, "");
}

/* Many come within a millisecond, and keys that sort the other way must not show. */
static void what_was_written_last_comes_first_however_fast(void **state) {
    struct fixture *f = *state;
    char key[8];
    for (int i = 0; i < 60; i++) {
        snprintf(key, sizeof(key), "k%02d", (i * 37) % 60);
        put(f, "core", key, "");
    }
    put(f, "core", "k30", "again");
    struct buf expected;
    buf_init(&expected, 4 * KIB);
    buf_append(&expected, STR("core/k30=again;"));
    for (int i = 59; i >= 0; i--) {
        if ((i * 37) % 60 != 30) buf_printf(&expected, "core/k%02d=;", (i * 37) % 60);
    }
    buf_append_byte(&expected, '\0');
    assert_list(f, (struct memory_query){.limit = 0}, expected.at);
    assert_list(f, (struct memory_query){.category = STR("core")}, expected.at);
    buf_done(&expected);
}

/* A step of the schema: times of before are what they were, and what comes is later. */
static void memories_of_an_earlier_version_keep_their_times(void **state) {
    struct fixture *f = *state;
    put(f, "core", "a", "1");
    fixture_close(f);
    fixture_sql(f, FIXTURE_BACK_TO_8
                "UPDATE memory SET created_ms = 1700000000123, updated_ms = 1700000000456;"
                "UPDATE meta SET value = 8 WHERE name = 'schema'");
    fixture_open(f);
    struct answer old = list(f, (struct memory_query){.limit = 1});
    assert_int_equal(old.created_us, INT64_C(1700000000123000));
    assert_int_equal(old.updated_us, INT64_C(1700000000456000));
    buf_done(&old.text);
    put(f, "core", "b", "2");
    assert_list(f, (struct memory_query){.limit = 0}, "core/b=2;core/a=1;");
}

/* K14 */
static void a_key_is_one_entry_in_each_category_and_is_removed_from_all(void **state) {
    struct fixture *f = *state;
    put(f, "core", "k", "1");
    put(f, "daily", "k", "2");
    put(f, "core", "k", "3");
    put(f, "core", "other", "4");
    assert_list(f, (struct memory_query){.category = STR("core"), .words = STR("k")},
                "core/k=3;");
    assert_list(f, (struct memory_query){.category = STR("daily")}, "daily/k=2;");
    assert_int_equal(take_out(f, STR("w2"), STR("k")), 0);
    assert_int_equal(take_out(f, STR("w"), STR("k")), 2);
    assert_int_equal(take_out(f, STR("w"), STR("k")), 0);
    assert_list(f, (struct memory_query){.limit = 0}, "core/other=4;");
}

static void replacing_keeps_when_it_was_made(void **state) {
    struct fixture *f = *state;
    put(f, "", "k", "");
    struct answer first = list(f, (struct memory_query){.limit = 1});
    assert_int_equal(first.created_us, first.updated_us);
    fixture_close(f);
    fixture_sql(f, "UPDATE memory SET created_us = 5, updated_us = 5");
    fixture_open(f);
    put(f, "", "k", "new");
    struct answer second = list(f, (struct memory_query){.limit = 1});
    assert_int_equal(second.created_us, 5);
    assert_true(second.updated_us >= first.updated_us);
    /* A clock that was set back. */
    fixture_close(f);
    fixture_sql(f, "UPDATE memory SET updated_us = 9000000000000000");
    fixture_open(f);
    put(f, "", "k", "newer");
    struct answer third = list(f, (struct memory_query){.limit = 1});
    assert_int_equal(third.updated_us, INT64_C(9000000000000001));
    buf_done(&first.text);
    buf_done(&second.text);
    buf_done(&third.text);
}

static void words_are_found_in_keys_and_contents_whatever_their_accents(void **state) {
    struct fixture *f = *state;
    put(f, "trip", "Kyōto", "two days, cheap; 300 EUR");
    put(f, "trip", "osaka", "one day near KYOTO");
    put(f, "food", "ramen", "Cheap and good");
    assert_list(f, (struct memory_query){.words = STR("kyoto")},
                "trip/Kyōto=two days, cheap; 300 EUR;trip/osaka=one day near KYOTO;");
    assert_list(f, (struct memory_query){.words = STR("cheap — Kyoto!")},
                "trip/Kyōto=two days, cheap; 300 EUR;");
    assert_list(f, (struct memory_query){.words = STR("cheap"), .category = STR("food")},
                "food/ramen=Cheap and good;");
    assert_list(f,
                (struct memory_query){.words = STR("good ramen 300"), .match = MEMORY_ANY_WORD},
                "food/ramen=Cheap and good;trip/Kyōto=two days, cheap; 300 EUR;");
    assert_list(f, (struct memory_query){.words = STR("good kyoto")}, "");
    assert_list(f, (struct memory_query){.words = STR("— !! …")}, "");
    put(f, "trip", "osaka", "nothing");
    assert_list(f, (struct memory_query){.words = STR("near")}, "");
    take_out(f, STR("w"), STR("ramen"));
    assert_list(f, (struct memory_query){.words = STR("good")}, "");
    assert_list(f, (struct memory_query){.words = STR("cheap"), .workspace = STR("v")}, "");
    /* Nor is the word that stands for a workspace one of its content. */
    assert_list(f, (struct memory_query){.words = STR("w77")}, "");
}

/* Text without spaces is one word: much of Chinese and Japanese, base64, a long address. */
static void a_word_of_any_length_is_kept(void **state) {
    struct fixture *f = *state;
    char content[MEMORY_CONTENT_MAX_BYTES + 1] = "ramen ";
    struct buf expected;
    for (size_t i = 6; i < MEMORY_CONTENT_MAX_BYTES - 6; i += 2) {
        content[i] = '\xc3';
        content[i + 1] = '\xa9';
    }
    memcpy(content + MEMORY_CONTENT_MAX_BYTES - 6, " kyoto", 7);
    buf_init(&expected, 32 * KIB);
    buf_printf(&expected, "core/k=%s;", content);
    buf_append_byte(&expected, '\0');
    put(f, "core", "k", content);
    assert_list(f, (struct memory_query){.words = STR("ramen kyoto")}, expected.at);
    assert_list(f, (struct memory_query){.words = STR("sushi")}, "");
    buf_done(&expected);
}

static void a_list_stops_at_its_limit_or_at_its_bytes_and_says_so(void **state) {
    struct fixture *f = *state;
    char content[1001];
    memset(content, 'x', 1000);
    content[1000] = '\0';
    for (int i = 0; i < 10; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        put(f, "", key, content);
    }
    struct answer all = list(f, (struct memory_query){.limit = 10});
    assert_int_equal(all.count, 10);
    assert_false(all.more);
    struct answer some = list(f, (struct memory_query){.limit = 9});
    assert_int_equal(some.count, 9);
    assert_true(some.more && !some.cut);
    struct answer cut = list(f, (struct memory_query){.limit = 10, .max_bytes = 3500});
    assert_int_equal(cut.count, 3);
    assert_true(cut.more && cut.cut);
    struct answer one = list(f, (struct memory_query){.limit = 10, .max_bytes = 1});
    assert_int_equal(one.count, 1);
    buf_done(&all.text);
    buf_done(&some.text);
    buf_done(&cut.text);
    buf_done(&one.text);
}

static void what_may_be_asked_is_bounded(void **state) {
    (void)state;
    struct err e;
    struct memory_query query = {.limit = 7};
    char long_text[MEMORY_CONTENT_MAX_BYTES + 1];
    memset(long_text, 'x', sizeof(long_text));
    struct str much = str_of(long_text, sizeof(long_text));
    assert_false(memory_page(&query, -1, 0, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_false(memory_page(&query, 0, -1, &e));
    assert_int_equal(query.limit, 7);
    assert_true(memory_page(&query, 0, 0, &e));
    assert_int_equal(query.limit, 100);
    assert_true(memory_page(&query, INT32_MAX, INT32_MAX, &e));
    assert_int_equal(query.limit, 1000);
    assert_false(memory_check_workspace(STR_EMPTY, &e));
    assert_string_equal(e.text, "memory: workspace_id is required");
    assert_false(memory_check_workspace(str_head(much, 1025), &e));
    assert_false(memory_check_key(STR_EMPTY, &e));
    assert_string_equal(e.text, "memory: key is required");
    assert_true(memory_check_key(str_head(much, 256), &e));
    assert_false(memory_check_key(str_head(much, 257), &e));
    struct memory_entry entry = {.key = STR("k"), .content = str_head(much, 16384)};
    assert_true(memory_check_entry(&entry, &e));
    entry.content = much;
    assert_false(memory_check_entry(&entry, &e));
    entry = (struct memory_entry){.key = STR("k"), .category = str_head(much, 257)};
    assert_false(memory_check_entry(&entry, &e));
    query.words = str_head(much, 1025);
    assert_false(memory_check_query(&query, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
}

/* Whatever the store is, since PostgreSQL's text holds none. */
static void no_text_may_have_a_nul(void **state) {
    (void)state;
    static const struct str nul = STR_INIT("a\0b");
    const struct memory_entry entries[] = {
        {.key = nul}, {.key = STR("k"), .category = nul}, {.key = STR("k"), .content = nul}};
    const struct memory_query queries[] = {{.category = nul}, {.words = nul}};
    struct err e = {0};
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        assert_false(memory_check_entry(&entries[i], &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
    for (size_t i = 0; i < ARRAY_LEN(queries); i++)
        assert_false(memory_check_query(&queries[i], &e));
    assert_false(memory_check_workspace(nul, &e));
    assert_false(memory_check_key(nul, &e));
    assert_string_equal(e.text, "memory: key has a NUL (U+0000) at byte 1, which a store of "
                                "texts cannot hold; leave it out");
}

/* T8 */
static void text_is_never_read_as_a_language(void **state) {
    struct fixture *f = *state;
    static const struct str texts[] = {
        STR_INIT("'; DROP TABLE memory; --"),
        STR_INIT("\" OR \"1\"=\"1"),
        STR_INIT("%' OR key LIKE '%"),
        STR_INIT("a\0b"),
        STR_INIT("place : \"w78\""),
        STR_INIT("NEAR(a b, 5)"),
        STR_INIT("a AND NOT b"),
        STR_INIT("* ^ ( ) { } : + -"),
        STR_INIT("key:a*"),
        STR_INIT("\xE2\x80\xAEright to left"),
        STR_INIT("\xF0\x9F\x8E\x89"),
        STR_INIT("?1 :name @name $name"),
        STR_INIT("\\'\\\"\\\\"),
        STR_INIT("\n\r\t\v"),
        STR_INIT("memory_words"),
        STR_INIT("\xFF\xFE not text"),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct str text = texts[i];
        bool is_text = utf8_valid(text) && str_find_byte(text, '\0') == text.len;
        if (f->schema[0] && !is_text) continue; /* PostgreSQL keeps text only */
        struct memory_entry entry = {.category = text, .key = text, .content = text};
        struct buf expected;
        buf_init(&expected, KIB);
        for (size_t part = 0; part < 3; part++) {
            static const struct str between[] = {STR_INIT("/"), STR_INIT("="), STR_INIT(";")};
            buf_append(&expected, text);
            buf_append(&expected, between[part]);
        }
        put_of(f, text, entry);
        struct answer all = list(f, (struct memory_query){.workspace = text});
        struct answer some =
            list(f, (struct memory_query){.workspace = text, .category = text});
        assert_true(str_equal(buf_str(&all.text), buf_str(&expected)));
        assert_true(str_equal(buf_str(&some.text), buf_str(&expected)));
        struct answer found =
            list(f, (struct memory_query){.workspace = text, .words = text, .category = text});
        assert_in_range(found.count, 0, 1);
        struct answer stranger = list(f, (struct memory_query){.words = text});
        assert_int_equal(stranger.count, 0);
        assert_int_equal(take_out(f, STR("w"), text), 0);
        assert_int_equal(take_out(f, text, text), 1);
        buf_done(&expected);
        buf_done(&all.text);
        buf_done(&some.text);
        buf_done(&found.text);
        buf_done(&stranger.text);
    }
    fixture_close(f);
    assert_sql(f, "SELECT count(*) FROM memory", "0 ");
    fixture_open(f);
}

static void a_question_without_a_waiting_caller_is_carried_out(void **state) {
    struct fixture *f = *state;
    struct memory_entry entry = {.key = STR("k"), .content = STR("v")};
    struct answer never = answer_for(f);
    memory_forget(
        memory_put_start(f->store, f->loop, AUDIT_NOBODY, STR("w"), &entry, on_answer, &never));
    memory_forget(NULL);
    assert_list(f, (struct memory_query){.limit = 0}, "/k=v;");
    assert_int_equal(never.count, 0);
}

/* --- against a model ---------------------------------------------------------------------- */

#define WORKSPACES 5
#define CATEGORIES 3
#define KEYS 12
#define STEPS 20000

static uint32_t seed = 20240607;

static uint32_t below(uint32_t bound) {
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed % bound;
}

struct model {
    uint32_t content[WORKSPACES][CATEGORIES][KEYS]; /* 0: there is none */
};

static const char *const workspaces[WORKSPACES] = {"w", "W", "w1", "w\xC3\xA9", "7"};
static const char *const categories[CATEGORIES] = {"core", "daily", "Core"};

static void model_put(struct fixture *f, struct model *model, uint32_t step) {
    uint32_t w = below(WORKSPACES), c = below(CATEGORIES), k = below(KEYS);
    char key[8], content[80];
    snprintf(key, sizeof(key), "k%u", k);
    snprintf(content, sizeof(content), "%s secret%u of n%u", workspaces[w], step, step % 7);
    model->content[w][c][k] = step;
    put_of(f, str_from(workspaces[w]),
           (struct memory_entry){.category = str_from(categories[c]),
                                 .key = str_from(key),
                                 .content = str_from(content)});
}

static void model_remove(struct fixture *f, struct model *model) {
    uint32_t w = below(WORKSPACES), k = below(KEYS);
    char key[8];
    size_t expected = 0;
    snprintf(key, sizeof(key), "k%u", k);
    for (int c = 0; c < CATEGORIES; c++) {
        expected += model->content[w][c][k] != 0;
        model->content[w][c][k] = 0;
    }
    assert_int_equal(take_out(f, str_from(workspaces[w]), str_from(key)), expected);
}

/* The order is by time, which a model does not know: each entry must be there, and no more. */
static void model_look(struct fixture *f, const struct model *model) {
    uint32_t w = below(WORKSPACES), c = below(CATEGORIES + 1), n = below(8);
    char word[8] = "";
    size_t expected = 0;
    if (n < 7) snprintf(word, sizeof(word), "n%u", n);
    struct answer answer =
        list(f, (struct memory_query){.workspace = str_from(workspaces[w]),
                                      .category =
                                          c < CATEGORIES ? str_from(categories[c]) : STR_EMPTY,
                                      .words = str_from(word)});
    for (uint32_t in = 0; in < CATEGORIES; in++) {
        for (uint32_t k = 0; k < KEYS && (c == CATEGORIES || c == in); k++) {
            uint32_t step = model->content[w][in][k];
            char entry[120];
            if (!step || (n < 7 && step % 7 != n)) continue;
            snprintf(entry, sizeof(entry), "%s/k%u=%s secret%u of n%u;", categories[in], k,
                     workspaces[w], step, step % 7);
            assert_true(str_find(buf_str(&answer.text), str_from(entry)) < answer.text.len);
            expected++;
        }
    }
    assert_int_equal(answer.count, expected);
    buf_done(&answer.text);
}

/* M1 */
static void workspaces_never_see_each_other_in_random_operations(void **state) {
    struct fixture *f = *state;
    struct model *model = MEM_NEW(struct model);
    for (uint32_t step = 1; step <= STEPS; step++) {
        uint32_t what = below(10);
        if (what < 3) model_put(f, model, step);
        if (what == 3) model_remove(f, model);
        if (what > 3) model_look(f, model);
    }
    fixture_close(f);
    assert_sql(f, "INSERT INTO memory_words(memory_words) VALUES('integrity-check')", "");
    assert_sql(f, "PRAGMA integrity_check", "ok ");
    fixture_open(f);
    for (int i = 0; i < 100; i++) model_look(f, model);
    free(model);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_newest_change_comes_first_and_then_the_key),
        TEST(what_was_written_last_comes_first_however_fast),
        TEST(memories_of_an_earlier_version_keep_their_times),
        TEST(a_key_is_one_entry_in_each_category_and_is_removed_from_all),
        TEST(replacing_keeps_when_it_was_made),
        TEST(words_are_found_in_keys_and_contents_whatever_their_accents),
        TEST(a_word_of_any_length_is_kept),
        TEST(a_list_stops_at_its_limit_or_at_its_bytes_and_says_so),
        cmocka_unit_test(what_may_be_asked_is_bounded),
        cmocka_unit_test(no_text_may_have_a_nul),
        TEST(text_is_never_read_as_a_language),
        TEST(a_question_without_a_waiting_caller_is_carried_out),
        TEST(workspaces_never_see_each_other_in_random_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
