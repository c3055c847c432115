/* The id of an event says where its call goes on, and nothing else is such an id. */
#include "toolserver/cursor.h"

#include "helper/assert_str.h"

static struct arena *arena;

static int setup(void **state) {
    (void)state;
    arena = arena_new(1 * MIB);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

static void write_cursor(const struct toolserver_cursor *cursor, struct buf *out) {
    buf_init(out, TOOLSERVER_CURSOR_MAX_BYTES);
    assert_true(toolserver_cursor_write(cursor, out));
}

static void what_was_written_reads_the_same(void **state) {
    (void)state;
    static const char *const ids[] = {"7", "-1", "\"q\"", "\"a.b-c_\\u00e9\"",
                                      "9007199254740993"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        for (size_t with = 0; with < 2; with++) {
            struct toolserver_cursor read,
                cursor = {.run = UINT64_MAX, .seq = i, .id = json_of(str_from(ids[i]))};
            if (with) cursor.token = json_of(STR("\"t\""));
            struct buf text;
            write_cursor(&cursor, &text);
            assert_true(toolserver_cursor_read(buf_str(&text), arena, &read));
            assert_true(read.run == cursor.run && read.seq == cursor.seq);
            assert_str(read.id.raw, ids[i]);
            assert_int_equal(read.token.kind, with ? JSON_STRING : JSON_NONE);
            buf_done(&text);
        }
    }
}

static void an_id_that_is_cut_is_none(void **state) {
    (void)state;
    const struct toolserver_cursor cursor = {.run = 12,
                                             .seq = 40,
                                             .id = json_of(STR("\"seven\"")),
                                             .token = json_of(STR("\"tok\""))};
    struct toolserver_cursor read;
    struct buf text;
    write_cursor(&cursor, &text);
    for (size_t len = 0; len < text.len; len++) {
        struct str cut = exact_copy(str_head(buf_str(&text), len));
        bool known = toolserver_cursor_read(cut, arena, &read);
        /* Without its token it is the id of a call that wants no progress. */
        assert_int_equal(known, str_equal(cut, STR("12.40.InNldmVuIg")));
        free((char *)(uintptr_t)cut.at);
    }
    buf_done(&text);
}

static void what_we_never_wrote_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",         "1",
                                        "1.2",      "1.2.",
                                        "0.1.Nw",   "01.1.Nw",
                                        "1.02.Nw",  "1.-1.Nw",
                                        "1.1.Nw=",  "1.1.Nx",
                                        "1.1.e30",  "1.1.bnVsbA",
                                        "1.1.Nw.",  "1.1.Nw.Nw.Nw",
                                        "1.1.MS41", "1.1.IDc",
                                        "1.1.!!",   "18446744073709551616.1.Nw"};
    struct toolserver_cursor read;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (toolserver_cursor_read(str_from(wrong[i]), arena, &read)) fail_msg("%s", wrong[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_reads_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_that_is_cut_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(what_we_never_wrote_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
