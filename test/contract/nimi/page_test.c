/* Pages: sizes, tokens that lead on, and tokens that do not belong here. */
#include "contract/nimi/page.h"

#include "helper/assert_str.h"

static const struct str filter[] = {STR_INIT("/Service/List"), STR_INIT("ab"), STR_INIT("c")};
static const struct str shifted[] = {STR_INIT("/Service/List"), STR_INIT("a"), STR_INIT("bc")};

static void a_page_has_50_entries_and_at_most_200(void **state) {
    (void)state;
    static const struct {
        int32_t asked;
        size_t size;
    } rows[] = {{0, 50}, {1, 1}, {200, 200}, {201, 200}, {INT32_MAX, 200}};
    struct page page;
    struct fault fault;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(page_begin(rows[i].asked, STR_EMPTY, filter, 3, &page, &fault));
        assert_int_equal(page.size, rows[i].size);
        assert_int_equal(page.cursor.len, 0);
    }
    for (int32_t size = -1; size < 0; size = size == -1 ? INT32_MIN : 0) {
        assert_false(page_begin(size, STR_EMPTY, filter, 3, &page, &fault));
        assert_int_equal(fault.reason, NIMI_PROTOCOL_ENVELOPE_INVALID);
    }
}

static void a_token_leads_on_where_the_page_ended(void **state) {
    (void)state;
    struct page page, next;
    struct fault fault;
    struct buf token;
    size_t index;
    buf_init(&token, PAGE_TOKEN_MAX_BYTES);
    assert_true(page_begin(0, STR_EMPTY, filter, 3, &page, &fault));
    page_next_index(&page, 50, &token);
    assert_true(page_begin(0, buf_str(&token), filter, 3, &next, &fault));
    assert_true(page_index(&next, &index, &fault));
    assert_int_equal(index, 50);
    buf_clear(&token);
    page_next(&page, STR("any \"text\""), &token);
    assert_true(page_begin(0, buf_str(&token), filter, 3, &next, &fault));
    assert_str(next.cursor, "any \"text\"");
    assert_false(page_index(&next, &index, &fault)); /* not an index */
    buf_done(&token);
}

static void a_token_cut_or_of_another_list_is_refused(void **state) {
    (void)state;
    struct page page;
    struct fault fault;
    struct buf token;
    buf_init(&token, PAGE_TOKEN_MAX_BYTES);
    assert_true(page_begin(0, STR_EMPTY, filter, 3, &page, &fault));
    page_next_index(&page, 50, &token);
    assert_false(page_begin(0, buf_str(&token), shifted, 3, &page, &fault));
    assert_int_equal(fault.reason, NIMI_PAGE_TOKEN_INVALID);
    for (size_t cut = 1; cut < token.len; cut++)
        assert_false(page_begin(0, str_head(buf_str(&token), cut), filter, 3, &page, &fault));
    assert_false(page_begin(0, STR("e30"), filter, 3, &page, &fault)); /* {} */
    assert_false(page_begin(0, STR("***"), filter, 3, &page, &fault));
    buf_done(&token);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_has_50_entries_and_at_most_200),
        cmocka_unit_test(a_token_leads_on_where_the_page_ended),
        cmocka_unit_test(a_token_cut_or_of_another_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
