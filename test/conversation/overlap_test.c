#include "conversation/overlap.h"

#include "helper/assert_str.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Elements are letters. Of `held`, a capital may be missing in `brought`, and '?' matches any. */
struct words {
    const char *held, *brought;
    size_t compared;
};

static bool word_equals(size_t brought, size_t other, void *ctx) {
    struct words *words = ctx;
    words->compared++;
    return words->brought[brought] == words->brought[other];
}

static char small(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool word_matches(size_t held, size_t brought, void *ctx) {
    struct words *words = ctx;
    words->compared++;
    return words->held[held] == '?' || small(words->held[held]) == words->brought[brought];
}

static bool word_may_miss(size_t held, void *ctx) {
    const struct words *words = ctx;
    return words->held[held] >= 'A' && words->held[held] <= 'Z';
}

static size_t find(struct words *words, size_t held_count, size_t brought_count) {
    return overlap_find(&(struct overlap){.held_count = held_count,
                                          .brought_count = brought_count,
                                          .equals = word_equals,
                                          .matches = word_matches,
                                          .may_miss = word_may_miss,
                                          .ctx = words});
}

static size_t overlap_of(const char *held, const char *brought) {
    struct words words = {held, brought, 0};
    return find(&words, strlen(held), strlen(brought));
}

/* Each element with each: reached[k] says that `held` up to here ends with the first k. */
static size_t reference_of(const char *held, const char *brought) {
    bool reached[16] = {false};
    struct words words = {held, brought, 0};
    size_t count = strlen(brought);
    for (size_t i = 0; held[i]; i++) {
        reached[0] = true;
        for (size_t k = count; k-- > 0;) {
            bool matches = reached[k] && word_matches(i, k, &words);
            reached[k + 1] = matches || (word_may_miss(i, &words) && reached[k + 1]);
        }
    }
    while (count > 0 && !reached[count]) count--;
    return count;
}

static void the_end_of_one_is_the_beginning_of_the_other(void **state) {
    (void)state;
    assert_int_equal(overlap_of("", ""), 0);
    assert_int_equal(overlap_of("abc", ""), 0);
    assert_int_equal(overlap_of("", "abc"), 0);
    assert_int_equal(overlap_of("abcd", "cde"), 2);
    assert_int_equal(overlap_of("abcd", "abcd"), 4);
    assert_int_equal(overlap_of("abcd", "bc"), 0);
    assert_int_equal(overlap_of("aab", "aabaab"), 3);
    assert_int_equal(overlap_of("aaaa", "aab"), 2);
}

static void what_may_be_missing_is_passed_over_or_matched(void **state) {
    (void)state;
    assert_int_equal(overlap_of("aBc", "acd"), 2);
    assert_int_equal(overlap_of("aBc", "abcd"), 3);
    assert_int_equal(overlap_of("AAA", "ab"), 1);
    assert_int_equal(overlap_of("a?", "abx"), 2);
}

/* All pairs of words that random letters make; a mistake shows in short ones. */
static void it_finds_what_comparing_each_with_each_finds(void **state) {
    (void)state;
    static const char letters[] = "ab?ABab";
    unsigned seed = 1;
    for (int round = 0; round < 200000; round++) {
        char held[13] = "", brought[9] = "";
        for (size_t i = 0; i < sizeof(held) - 1; i++) {
            seed = seed * 1103515245u + 12345u;
            held[i] = letters[(seed >> 16) % (sizeof(letters) - 1)];
        }
        for (size_t i = 0; i < sizeof(brought) - 1; i++) {
            seed = seed * 1103515245u + 12345u;
            brought[i] = (char)('a' + (seed >> 16) % 2);
        }
        held[(seed >> 8) % sizeof(held)] = '\0';
        brought[(seed >> 20) % sizeof(brought)] = '\0';
        if (overlap_of(held, brought) != reference_of(held, brought))
            fail_msg("'%s' and '%s'", held, brought);
    }
}

/* A Fibonacci word has the most places that the table leads through. */
static char *fibonacci(size_t count) {
    char *word = mem_zero(count + 1, 1);
    size_t len = 2, before = 1;
    memcpy(word, "ab", 2);
    while (len < count) {
        size_t more = before < count - len ? before : count - len;
        memcpy(word + len, word, more);
        before = len;
        len += more;
    }
    return word;
}

static void assert_few_comparisons(const char *held, const char *brought, size_t count) {
    struct words words = {held, brought, 0};
    (void)find(&words, count, count);
    assert_true(words.compared <= 2 * count * OVERLAP_PLACES * 32);
}

static void the_comparisons_grow_with_the_sum_of_the_lengths(void **state) {
    (void)state;
    const size_t count = 20000;
    char *same = mem_zero(count + 1, 1), *last = mem_zero(count + 1, 1);
    char *missing = mem_zero(count + 1, 1), *word = fibonacci(count);
    memset(same, 'a', count);
    memset(last, 'a', count);
    last[count - 1] = 'b';
    for (size_t i = 0; i < count; i++) missing[i] = "AZ?a"[i % 4];
    const char *const words[] = {same, last, missing, word};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        for (size_t k = 0; k < ARRAY_LEN(words); k++)
            assert_few_comparisons(words[i], words[k], count);
    }
    struct words plain = {last, last, 0};
    assert_int_equal(find(&plain, count, count), count);
    assert_true(plain.compared <= 6 * count);
    free(same);
    free(last);
    free(missing);
    free(word);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_one_is_the_beginning_of_the_other),
        cmocka_unit_test(what_may_be_missing_is_passed_over_or_matched),
        cmocka_unit_test(it_finds_what_comparing_each_with_each_finds),
        cmocka_unit_test(the_comparisons_grow_with_the_sum_of_the_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
