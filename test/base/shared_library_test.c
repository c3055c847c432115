/* A library is loaded once, by as many threads as ask; what is missing is named. */
#include "base/shared_library.h"

#include "helper/assert_str.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

struct table {
    __typeof__(cos) *cos;
    void (*absent)(void);
};

static const struct shared_symbol cosine[] = {SHARED_SYMBOL(struct table, cos)};
static const struct shared_symbol both[] = {SHARED_SYMBOL(struct table, cos),
                                            SHARED_SYMBOL(struct table, absent)};

static struct shared_library library_of(const char *file, struct table *table) {
    return (struct shared_library){.file = file,
                                   .title = "libm",
                                   .needs = "trigonometry needs libm",
                                   .package = "libc6",
                                   .code = ERR_UNAVAILABLE,
                                   .symbols = cosine,
                                   .symbols_count = ARRAY_LEN(cosine),
                                   .table = table};
}

static void its_functions_are_in_the_table(void **state) {
    struct table table = {0};
    struct shared_library library = library_of("libm.so.6", &table);
    struct err e = {0};
    (void)state;
    assert_true(shared_library_load(&library, &e));
    assert_true(table.cos(0) == 1);
}

static void a_library_that_is_not_there_is_named_each_time(void **state) {
    struct table table = {0};
    struct shared_library library = library_of("libabsent.so.9", &table);
    struct err e = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        e = (struct err){0};
        assert_false(shared_library_load(&library, &e));
        assert_int_equal(e.code, ERR_UNAVAILABLE);
        assert_non_null(
            strstr(e.text, "trigonometry needs libm, and it cannot be loaded (lib"));
        assert_non_null(strstr(e.text, "): install the package libc6"));
    }
}

static void a_function_that_is_not_there_is_named(void **state) {
    struct table table = {0};
    struct shared_library library = library_of("libm.so.6", &table);
    struct err e = {0};
    (void)state;
    library.symbols = both;
    library.symbols_count = ARRAY_LEN(both);
    library.version = "weir needs 2 or later";
    assert_false(shared_library_load(&library, &e));
    assert_string_equal(e.text, "the installed libm has no absent(); weir needs 2 or later");
}

static int checks;

static bool refuse_it(struct err *e) {
    checks++;
    return err_set(e, ERR_UNAVAILABLE, "too old");
}

static void *load(void *ctx) {
    struct err e = {0};
    return !shared_library_load(ctx, &e) && strcmp(e.text, "too old") == 0 ? ctx : NULL;
}

static void threads_that_load_at_once_make_one_attempt(void **state) {
    struct table table = {0};
    struct shared_library library = library_of("libm.so.6", &table);
    pthread_t threads[8];
    void *same = NULL;
    (void)state;
    checks = 0;
    library.check = refuse_it;
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load, &library), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        pthread_join(threads[i], &same);
        assert_ptr_equal(same, &library);
    }
    assert_int_equal(checks, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_functions_are_in_the_table),
        cmocka_unit_test(a_library_that_is_not_there_is_named_each_time),
        cmocka_unit_test(a_function_that_is_not_there_is_named),
        cmocka_unit_test(threads_that_load_at_once_make_one_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
