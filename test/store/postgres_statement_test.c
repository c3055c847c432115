#include "store/postgres_statement.h"

#include "helper/assert_str.h"

static void assert_translated(const char *sql, const char *expected) {
    struct buf out;
    buf_init(&out, 4 * KIB);
    postgres_statement_translate(str_from(sql), &out);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void places_are_numbered(void **state) {
    (void)state;
    assert_translated("VALUES(?, ?, ?)", "VALUES($1, $2, $3)");
    assert_translated("a = ?2 AND b = ?1", "a = $2 AND b = $1");
    assert_translated("a = ?3 AND b = ?", "a = $3 AND b = $4");
}

static void words_that_mean_something_else_there_are_changed(void **state) {
    (void)state;
    assert_translated("SELECT user, users FROM t", "SELECT \"user\", users FROM t");
    assert_translated("FROM run INDEXED BY run_unfinished WHERE", "FROM run  WHERE");
    assert_translated("BEGIN IMMEDIATE", "BEGIN ");
    assert_translated("body = x''", "body = ''::bytea");
    assert_translated("+workspace = a + 1", "workspace = a + 1");
}

static void text_in_quotation_marks_stays(void **state) {
    (void)state;
    assert_translated("SELECT 'user ? x'", "SELECT 'user ? x'");
    assert_translated("\"user\" = 'it''s ?'", "\"user\" = 'it''s ?'");
    assert_translated("'no end ?", "'no end ?");
    assert_translated("", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_numbered),
        cmocka_unit_test(words_that_mean_something_else_there_are_changed),
        cmocka_unit_test(text_in_quotation_marks_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
