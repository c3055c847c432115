/* assert_str: compare a view of bytes with a literal and show both when they differ. */
#ifndef WEIR_TEST_HELPER_ASSERT_STR_H
#define WEIR_TEST_HELPER_ASSERT_STR_H

#include "base/str.h"

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define assert_str(got, expected) assert_str_at((got), (expected), __FILE__, __LINE__)

static inline void assert_str_at(struct str got, const char *expected, const char *file,
                                 int line) {
    if (str_equal(got, str_from(expected))) return;
    print_error("got      \"" STR_FMT "\"\nexpected \"%s\"\n", STR_ARG(got), expected);
    _fail(file, line);
}

/* A copy in a block of exactly its size, so that a sanitizer sees any read beyond it. */
static inline struct str exact_copy(struct str bytes) {
    char *at = malloc(bytes.len ? bytes.len : 1);
    if (!at) abort();
    if (bytes.len) memcpy(at, bytes.at, bytes.len);
    return str_of(at, bytes.len);
}

#endif
