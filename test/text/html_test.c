#include "text/html.h"

#include "helper/assert_str.h"

#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>

#define CASES "test/text/html/"

static const struct html_options options = {.url = STR_INIT("https://example.net/a/b")};

static struct buf text_of(struct str page) {
    struct err e;
    struct buf out;
    buf_init(&out, MIB);
    struct str copy = exact_copy(page);
    if (!html_text(copy, &options, &out, &e)) fail_msg("%s", e.text);
    free((void *)copy.at);
    return out;
}

static struct buf file_of(const char *folder, const char *name) {
    char path[512];
    struct err e;
    struct buf bytes;
    buf_init(&bytes, MIB);
    snprintf(path, sizeof path, CASES "%s/%s", folder, name);
    if (!file_read(str_from(path), &bytes, &e)) fail_msg("%s", e.text);
    return bytes;
}

static void every_page_of_the_corpus_reads_as_expected(void **state) {
    (void)state;
    struct dirent **entries;
    int count = scandir(CASES, &entries, NULL, alphasort);
    size_t seen = 0;
    assert_true(count > 2);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            struct buf input = file_of(entries[i]->d_name, "input");
            struct buf expect = file_of(entries[i]->d_name, "expect");
            struct buf text = text_of(buf_str(&input));
            buf_append(&text, STR("\n"));
            if (!str_equal(buf_str(&text), buf_str(&expect)))
                fail_msg("%s:\n" STR_FMT "---", entries[i]->d_name, STR_ARG(buf_str(&text)));
            buf_done(&text);
            buf_done(&expect);
            buf_done(&input);
            seen++;
        }
        free(entries[i]);
    }
    free(entries);
    assert_true(seen >= 10);
}

static void a_page_may_be_cut_anywhere(void **state) {
    (void)state;
    struct buf input = file_of("article", "input");
    for (size_t cut = 0; cut <= input.len; cut++) {
        struct buf text = text_of(str_head(buf_str(&input), cut));
        buf_done(&text);
    }
    buf_done(&input);
}

static struct buf repeated(const char *part, size_t times) {
    struct buf page;
    buf_init(&page, 16 * MIB);
    for (size_t i = 0; i < times; i++) buf_append(&page, str_from(part));
    return page;
}

struct patience {
    size_t questions;
};

static bool while_patient(void *ctx) {
    struct patience *patience = ctx;
    return patience->questions-- > 0;
}

static void a_hundred_thousand_tags_inside_each_other_are_read_without_recursion(void **state) {
    (void)state;
    static const char *const parts[] = {"<p>", "<table>", "<span>", "<q>", "<svg><g>"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct buf page = repeated(parts[i], 100000);
        struct buf text = text_of(buf_str(&page));
        assert_int_equal(text.len, 0);
        buf_done(&text);
        buf_done(&page);
    }
}

static void a_slow_page_ends_when_it_may_not_go_on(void **state) {
    (void)state;
    static const char *const parts[] = {"<div>", "<ul>", "<b>", "<a><b><i>"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct err e;
        struct buf out;
        struct patience patience = {.questions = 300};
        struct html_options hurried = {.go_on = while_patient, .ctx = &patience};
        struct buf page = repeated(parts[i], 100000);
        buf_init(&out, MIB);
        assert_false(html_text(buf_str(&page), &hurried, &out, &e));
        assert_int_equal(e.code, ERR_CANCELLED);
        assert_int_equal(out.len, 0);
        buf_done(&out);
        buf_done(&page);
    }
}

static void a_page_that_makes_more_of_itself_stays_within_its_memory(void **state) {
    (void)state;
    struct err e;
    struct buf page, out;
    buf_init(&page, MIB);
    buf_init(&out, MIB);
    buf_append(&page, STR("<p>"));
    for (int i = 0; i < 2000; i++) buf_printf(&page, "<b a%x>", i);
    buf_append(&page, STR("</p>"));
    for (int i = 0; i < 2000; i++) buf_append(&page, STR("<p>x</p>"));
    assert_false(html_text(buf_str(&page), &options, &out, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    buf_done(&out);
    buf_done(&page);
}

static void elements_nested_too_deep_are_left_out(void **state) {
    (void)state;
    struct buf page = repeated("<span>", 400);
    buf_append(&page, STR("near"));
    for (int i = 0; i < 200; i++) buf_append(&page, STR("<span>"));
    buf_append(&page, STR("far"));
    struct buf text = text_of(buf_str(&page));
    assert_str(buf_str(&text), "near");
    buf_done(&text);
    buf_done(&page);
}

static void the_text_stops_at_the_limit_of_its_buffer(void **state) {
    (void)state;
    struct str page = STR("<title>T</title><p>one two</p><ul><li>three</ul>");
    for (size_t limit = 0; limit < 32; limit++) {
        struct err e;
        struct buf out;
        buf_init(&out, limit);
        assert_true(html_text(page, &options, &out, &e));
        assert_true(out.len <= limit);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_page_of_the_corpus_reads_as_expected),
        cmocka_unit_test(a_page_may_be_cut_anywhere),
        cmocka_unit_test(a_hundred_thousand_tags_inside_each_other_are_read_without_recursion),
        cmocka_unit_test(a_slow_page_ends_when_it_may_not_go_on),
        cmocka_unit_test(a_page_that_makes_more_of_itself_stays_within_its_memory),
        cmocka_unit_test(elements_nested_too_deep_are_left_out),
        cmocka_unit_test(the_text_stops_at_the_limit_of_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
