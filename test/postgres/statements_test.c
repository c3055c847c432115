#include "postgres/statements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void a_statement_is_prepared_once(void **state) {
    (void)state;
    struct statements statements = {0};
    bool is_new;
    static const char first[] = "SELECT 1", second[] = "SELECT 2";
    assert_int_equal(statements_number(&statements, first, 0, &is_new), 1);
    assert_true(is_new);
    assert_int_equal(statements_number(&statements, first, 0, &is_new), 1);
    assert_false(is_new);
    assert_int_equal(statements_number(&statements, second, 0, &is_new), 2);
    assert_true(is_new);
    assert_int_equal(statements_number(&statements, first, 1, &is_new), 3);
    assert_true(is_new); /* its values have other types */
    statements_done(&statements);
}

static void a_statement_whose_preparation_failed_gets_a_new_number(void **state) {
    (void)state;
    struct statements statements = {0};
    bool is_new;
    static const char sql[] = "SELECT 1";
    unsigned number = statements_number(&statements, sql, 0, &is_new);
    statements_forget(&statements, number);
    assert_int_not_equal(statements_number(&statements, sql, 0, &is_new), number);
    assert_true(is_new);
    statements_done(&statements);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_statement_is_prepared_once),
        cmocka_unit_test(a_statement_whose_preparation_failed_gets_a_new_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
