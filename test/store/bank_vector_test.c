/* Vectors of banks on a real store, against scores that are worked out here. */
#include "fixture.h"
#include "helper/assert_str.h"
#include "store/bank_vector.h"

#include <math.h>
#include <string.h>

#define DIMENSION 5
#define MANY 300

struct seen {
    struct fixture *f;
    size_t count;
    bool made, more, wants_vector;
    int64_t space;
    char names[BANK_ANSWER_MAX][16];
    double scores[BANK_ANSWER_MAX];
    unsigned by[BANK_ANSWER_MAX];
};

static void on_answer(const struct bank_answer *answer, const struct err *failed, void *ctx) {
    struct seen *seen = ctx;
    seen->f->failed.code = ERR_NONE;
    if (failed) seen->f->failed = *failed;
    loop_stop(seen->f->loop);
    if (failed) return;
    seen->count = answer->count;
    seen->made = answer->made;
    seen->more = answer->more;
    seen->wants_vector = answer->wants_vector;
    seen->space = answer->space;
    for (size_t i = 0; i < answer->count; i++) {
        snprintf(seen->names[i], sizeof(seen->names[i]), STR_FMT,
                 STR_ARG(answer->items[i].name));
        seen->scores[i] = answer->items[i].score;
        seen->by[i] = answer->items[i].by;
    }
}

static const struct bank_event plain = {STR_INIT("l"), STR_INIT("e")};

static struct bank_where place(void) {
    return (struct bank_where){{STR("app"), STR("anna")}, STR("w")};
}

static void create(struct fixture *f, size_t dimension) {
    struct seen seen = {.f = f};
    const struct bank_where at = place();
    bank_create_start(f->store, f->loop, &at, STR("B"), STR("body"), dimension, &plain,
                      on_answer, &seen);
    loop_run(f->loop);
    assert_true(seen.made);
}

static void retain(struct fixture *f, const char *name, const char *words, int kind) {
    struct seen seen = {.f = f};
    const struct bank_where at = place();
    const struct bank_record record = {.name = str_from(name),
                                       .body = str_from(words),
                                       .words = str_from(words),
                                       .kind = kind,
                                       .event = str_from(name)};
    bank_retain_start(f->store, f->loop, &at, &record, 1, STR("l"), NULL, on_answer, &seen);
    loop_run(f->loop);
    assert_int_equal(f->failed.code, ERR_NONE);
}

static void forget(struct fixture *f, const char *name) {
    struct seen seen = {.f = f};
    const struct bank_where at = place();
    const struct str names[] = {str_from(name)};
    bank_forget_start(f->store, f->loop, &at, names, 1, &plain, on_answer, &seen);
    loop_run(f->loop);
    assert_int_equal(seen.count, 1);
}

static void drop(struct fixture *f) {
    struct seen seen = {.f = f};
    const struct bank_where at = place();
    bank_delete_start(f->store, f->loop, &at, &plain, on_answer, &seen);
    loop_run(f->loop);
    do {
        bank_prune_start(f->store, f->loop, on_answer, &seen);
        loop_run(f->loop);
    } while (seen.more);
}

/* --- what is behind ------------------------------------------------------------------------- */

struct behind {
    struct fixture *f;
    struct bank_behind is;
    int64_t numbers[BANK_BEHIND_MAX];
    struct buf words; /* each with ";" */
};

static void on_behind(const struct bank_behind *behind, const struct err *failed, void *ctx) {
    struct behind *to = ctx;
    loop_stop(to->f->loop);
    if (failed) fail_msg("%s", failed->text);
    to->is = *behind;
    to->is.owner = (struct store_owner){STR("app"), STR("anna")};
    for (size_t i = 0; i < behind->count; i++) {
        to->numbers[i] = behind->records[i].number;
        buf_printf(&to->words, STR_FMT ";", STR_ARG(behind->records[i].words));
    }
}

static struct behind behind(struct fixture *f) {
    struct behind to = {.f = f};
    buf_init(&to.words, MIB);
    bank_behind_start(f->store, f->loop, 0, on_behind, &to);
    loop_run(f->loop);
    return to;
}

/* A vector that depends on the first byte of the words alone. */
static void vector_of(const char *words, float *ret) {
    for (size_t i = 0; i < DIMENSION; i++)
        ret[i] = sinf((float)words[0] * (float)(i + 1)) + (float)i / 10;
}

/* Make what is missing, in as many rounds as it takes. Returns how many vectors those were. */
static size_t embed(struct fixture *f) {
    size_t made = 0;
    for (;;) {
        struct behind to = behind(f);
        struct bank_vector vectors[BANK_BEHIND_MAX];
        float values[BANK_BEHIND_MAX][DIMENSION];
        const char *at = to.words.len ? to.words.at : "";
        struct seen seen = {.f = f};
        for (size_t i = 0; i < to.is.count; i++) {
            vector_of(at, values[i]);
            vectors[i] = (struct bank_vector){to.numbers[i], values[i]};
            at = strchr(at, ';') + 1;
        }
        buf_done(&to.words);
        if (!to.is.bank) return made;
        made += to.is.count;
        bank_embedded_start(f->store, f->loop, &to.is, vectors, to.is.count, to.is.upto,
                            on_answer, &seen);
        loop_run(f->loop);
        assert_int_equal(f->failed.code, ERR_NONE);
    }
}

/* --- recall --------------------------------------------------------------------------------- */

static struct bank_query query(const char *words) {
    return (struct bank_query){.kinds = BANK_ANY,
                               .classes = BANK_ANY,
                               .from_us = INT64_MIN,
                               .to_us = INT64_MAX,
                               .limit = BANK_ANSWER_MAX,
                               .max_bytes = MIB,
                               .words = str_from(words)};
}

static struct seen recall(struct fixture *f, struct bank_query by) {
    struct seen seen = {.f = f};
    const struct bank_where at = place();
    bank_recall_start(f->store, f->loop, &at, &by, on_answer, &seen);
    loop_run(f->loop);
    assert_int_equal(f->failed.code, ERR_NONE);
    return seen;
}

/* With the vector of these words. */
static struct seen recall_near(struct fixture *f, struct bank_query by) {
    struct seen asked = recall(f, by);
    float vector[DIMENSION];
    char words[256];
    assert_true(asked.wants_vector);
    assert_string_equal(asked.names[0], "B");
    snprintf(words, sizeof(words), STR_FMT, STR_ARG(by.words));
    vector_of(words, vector);
    by.vector = vector;
    by.dimension = DIMENSION;
    by.space = asked.space;
    return recall(f, by);
}

static double cosine_of(const char *one, const char *other) {
    float a[DIMENSION], b[DIMENSION];
    double ab = 0, aa = 0, bb = 0;
    vector_of(one, a);
    vector_of(other, b);
    for (size_t i = 0; i < DIMENSION; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return ab / sqrt(aa * bb);
}

static double distance_of(const char *one, const char *other) {
    float a[DIMENSION], b[DIMENSION];
    double sum = 0;
    vector_of(one, a);
    vector_of(other, b);
    for (size_t i = 0; i < DIMENSION; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

static size_t place_of(const struct seen *seen, const char *name) {
    for (size_t i = 0; i < seen->count; i++) {
        if (strcmp(seen->names[i], name) == 0) return i;
    }
    return SIZE_MAX;
}

static void assert_near(double one, double other) {
    if (fabs(one - other) > 1e-9) fail_msg("%.17g is not %.17g", one, other);
}

/* Of the closed store, which is opened again. */
static void assert_rows(struct fixture *f, const char *sql, int64_t expected) {
    struct database db;
    struct err e;
    int64_t count = -1;
    fixture_close(f);
    fixture_database(f, &db);
    if (!database_number(&db, sql, &count, &e)) fail_msg("%s", e.text);
    database_close(&db);
    assert_int_equal(count, expected);
    fixture_open(f);
}

/* --- the tests ------------------------------------------------------------------------------ */

static void a_bank_without_a_dimension_needs_no_vectors(void **state) {
    struct fixture *f = *state;
    create(f, 0);
    retain(f, "r", "weir", 1);
    struct seen seen = recall(f, query("weir"));
    assert_false(seen.wants_vector);
    assert_int_equal(seen.count, 1);
    assert_int_equal(embed(f), 0);
}

static void a_score_has_both_parts(void **state) {
    struct fixture *f = *state;
    create(f, DIMENSION);
    retain(f, "a", "alpha", 1);
    retain(f, "c", "common alpha", 1);
    retain(f, "g", "gamma", 1);
    retain(f, "d", "delta", 1); /* points away */
    assert_int_equal(embed(f), 4);
    retain(f, "late", "alpha", 1); /* has no vector yet */
    struct seen seen = recall_near(f, query("alpha"));
    assert_int_equal(seen.by[place_of(&seen, "a")], BANK_BY_WORDS | BANK_BY_VECTOR);
    assert_int_equal(seen.by[place_of(&seen, "g")], BANK_BY_VECTOR);
    assert_int_equal(seen.by[place_of(&seen, "late")], BANK_BY_WORDS);
    /* Of one word the text part is f (k1 + 1) / (f + norm) / (k1 + 1). */
    double text = 1 / (1 + 1.2 * (0.25 + 0.75 * 1 / (6.0 / 5)));
    double long_text = 1 / (1 + 1.2 * (0.25 + 0.75 * 2 / (6.0 / 5)));
    assert_near(seen.scores[place_of(&seen, "a")], (1 + text) / 2);
    assert_near(seen.scores[place_of(&seen, "c")],
                (cosine_of("alpha", "common") + long_text) / 2);
    assert_near(seen.scores[place_of(&seen, "g")], cosine_of("alpha", "gamma") / 2);
    assert_true(cosine_of("alpha", "delta") < 0 && place_of(&seen, "d") == SIZE_MAX);
    assert_near(seen.scores[place_of(&seen, "late")], text / 2);
    struct bank_query by_words = query("alpha");
    by_words.by_words = true;
    seen = recall(f, by_words);
    assert_int_equal(seen.count, 3);
    for (size_t i = 0; i < seen.count; i++) assert_int_equal(seen.by[i], BANK_BY_WORDS);
}

static void a_distance_counts_where_it_is_asked_for(void **state) {
    struct fixture *f = *state;
    create(f, DIMENSION);
    retain(f, "d", "delta", 1);
    embed(f);
    struct bank_query by = query("alpha");
    by.by_distance = true;
    struct seen seen = recall_near(f, by);
    assert_int_equal(seen.count, 1);
    assert_near(seen.scores[0], 1 / (1 + distance_of("alpha", "delta")) / 2);
}

static void words_without_a_letter_are_found_by_their_vector(void **state) {
    struct fixture *f = *state;
    create(f, DIMENSION);
    retain(f, "q", "?!", 1);
    embed(f);
    struct seen seen = recall_near(f, query("?!"));
    assert_int_equal(seen.count, 1);
    assert_near(seen.scores[0], 0.5);
}

/* More than a batch of records, and more than one block of vectors. */
static void many_are_ranked_as_one_by_one(void **state) {
    struct fixture *f = *state;
    char name[16], words[32];
    create(f, DIMENSION);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "r%03d", i);
        snprintf(words, sizeof(words), "%c%d %s", 'a' + i % 26, i, i % 3 ? "weir" : "mill");
        retain(f, name, words, i % 2);
    }
    assert_int_equal(embed(f), MANY);
    struct bank_query by = query("kappa weir");
    struct seen seen = recall_near(f, by);
    assert_true(seen.more);
    assert_int_equal(seen.count, BANK_ANSWER_MAX);
    for (size_t i = 1; i < seen.count; i++) assert_true(seen.scores[i - 1] >= seen.scores[i]);
    for (size_t i = 0; i < seen.count; i++) {
        int number = atoi(seen.names[i] + 1);
        snprintf(words, sizeof(words), "%c", 'a' + number % 26);
        double rest = seen.scores[i] - cosine_of("kappa", words) / 2;
        assert_true(number % 3 ? rest > 0.01 : fabs(rest) < 1e-9);
    }
    struct seen few = {.f = f};
    by.limit = 7;
    few = recall_near(f, by);
    assert_int_equal(few.count, 7);
    for (size_t i = 0; i < 7; i++) assert_string_equal(few.names[i], seen.names[i]);
    by.kinds = 1u << 1;
    by.limit = BANK_ANSWER_MAX;
    struct seen odd = recall_near(f, by);
    for (size_t i = 0; i < odd.count; i++) assert_int_equal(atoi(odd.names[i] + 1) % 2, 1);
    assert_true(odd.count > 50);
}

static void what_is_forgotten_has_no_vector(void **state) {
    struct fixture *f = *state;
    create(f, DIMENSION);
    retain(f, "a", "alpha", 1);
    retain(f, "b", "beta", 1);
    embed(f);
    forget(f, "a");
    struct seen seen = recall_near(f, query("alpha"));
    assert_true(place_of(&seen, "a") == SIZE_MAX);
    assert_rows(f, "SELECT count(*) FROM bank_vector", 1);
}

/* The record goes while its vector is made. */
static void a_vector_that_comes_too_late_is_dropped(void **state) {
    struct fixture *f = *state;
    float values[DIMENSION] = {1};
    struct seen seen = {.f = f};
    create(f, DIMENSION);
    retain(f, "a", "alpha", 1);
    retain(f, "b", "beta", 1);
    struct behind to = behind(f);
    assert_str(buf_str(&to.words), "alpha;beta;");
    buf_done(&to.words);
    forget(f, "a");
    const struct bank_vector vectors[] = {{to.numbers[0], values}, {to.numbers[1], NULL}};
    bank_embedded_start(f->store, f->loop, &to.is, vectors, 2, to.is.upto, on_answer, &seen);
    loop_run(f->loop);
    struct behind after = behind(f);
    assert_int_equal(after.is.bank, 0);
    buf_done(&after.words);
    struct seen found = recall_near(f, query("alpha"));
    assert_int_equal(found.count, 0);
}

static void all_vectors_are_made_anew_in_another_space(void **state) {
    struct fixture *f = *state;
    const struct bank_where at = place();
    struct seen seen = {.f = f};
    create(f, DIMENSION - 1); /* of another model */
    retain(f, "a", "alpha", 1);
    struct behind old = behind(f);
    buf_done(&old.words);
    bank_reindex_start(f->store, f->loop, &at, STR("other"), STR("new"), DIMENSION, on_answer,
                       &seen);
    loop_run(f->loop);
    struct seen asked = recall(f, query("alpha"));
    assert_int_equal(asked.space, old.is.space); /* the bank of that name is gone */
    bank_reindex_start(f->store, f->loop, &at, STR("B"), STR("new"), DIMENSION, on_answer,
                       &seen);
    loop_run(f->loop);
    float values[DIMENSION] = {1};
    const struct bank_vector late = {old.numbers[0], values};
    bank_embedded_start(f->store, f->loop, &old.is, &late, 1, old.is.upto, on_answer, &seen);
    loop_run(f->loop);
    assert_int_equal(embed(f), 1); /* what came for the old space did not count */
    struct seen found = recall_near(f, query("alpha"));
    assert_near(found.scores[0], (1 + 1 / (1 + 1.2)) / 2);
    /* A query of the old space counts by its words. */
    struct bank_query by = query("alpha");
    by.vector = values;
    by.dimension = DIMENSION;
    by.space = old.is.space;
    found = recall(f, by);
    assert_int_equal(found.by[0], BANK_BY_WORDS);
}

static void a_deleted_bank_leaves_no_vector(void **state) {
    struct fixture *f = *state;
    create(f, DIMENSION);
    for (int i = 0; i < 3; i++) retain(f, (char[]){(char)('a' + i), 0}, "weir", 1);
    embed(f);
    retain(f, "behind", "weir", 1);
    drop(f);
    struct behind after = behind(f);
    assert_int_equal(after.is.bank, 0);
    buf_done(&after.words);
    assert_rows(f, "SELECT count(*) FROM bank_vector", 0);
    assert_rows(f, "SELECT count(*) FROM bank_space", 0);
}

static void what_is_behind_is_known_to_the_next_process(void **state) {
    struct fixture *f = *state;
    create(f, DIMENSION);
    retain(f, "a", "alpha", 1);
    embed(f);
    retain(f, "b", "beta", 1);
    fixture_close(f);
    fixture_open(f);
    struct behind to = behind(f);
    assert_str(buf_str(&to.words), "beta;");
    buf_done(&to.words);
}

static int setup(void **state) {
    fixture_setup(state);
    struct fixture *f = *state;
    f->durability = STORE_OFF;
    fixture_open(f);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_bank_without_a_dimension_needs_no_vectors),
        TEST(a_score_has_both_parts),
        TEST(a_distance_counts_where_it_is_asked_for),
        TEST(words_without_a_letter_are_found_by_their_vector),
        TEST(many_are_ranked_as_one_by_one),
        TEST(what_is_forgotten_has_no_vector),
        TEST(a_vector_that_comes_too_late_is_dropped),
        TEST(all_vectors_are_made_anew_in_another_space),
        TEST(a_deleted_bank_leaves_no_vector),
        TEST(what_is_behind_is_known_to_the_next_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
