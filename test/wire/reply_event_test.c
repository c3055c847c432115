#include "wire/reply_event.h"

#include "helper/assert_str.h"

/* One of each kind that a copy is made of. */
static const struct event_usage usage = {.model = STR_INIT("m-1"), .prompt = 5, .cached = 2};
static const struct reply_event events[] = {
    {REPLY_TEXT, .text = STR_INIT("Hi")},
    {REPLY_TEXT, .text = STR_INIT("")},
    {REPLY_TOOL_CALL, .call_id = STR_INIT("c"), .tool = STR_INIT("look"),
     .args = STR_INIT("{\"a\":1}")},
    {REPLY_APPROVAL, .call_id = STR_INIT("c"), .text = STR_INIT("May I?"),
     .tool = STR_INIT("look"), .args = STR_INIT("{}")},
    {REPLY_USAGE, .usage = &usage},
    {REPLY_DONE, .model = STR_INIT("m-1")},
    {REPLY_FAILED, .code = ERR_UNAVAILABLE, .reason = STR_INIT("WHY"), .text = STR_INIT("no")},
};

static void is_copied(const struct str *text, const struct str *copy) {
    assert_true(str_equal(*text, *copy));
    if (text->len) assert_ptr_not_equal(text->at, copy->at);
}

static void a_copy_has_all_that_the_event_borrowed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        const struct reply_event *event = &events[i];
        struct reply_copy *kept = reply_event_copy(event);
        const struct reply_event *copy = &kept->event;
        assert_int_equal(copy->kind, event->kind);
        assert_int_equal(copy->code, event->code);
        is_copied(&event->text, &copy->text);
        is_copied(&event->call_id, &copy->call_id);
        is_copied(&event->name, &copy->name);
        is_copied(&event->args, &copy->args);
        if (event->kind == REPLY_USAGE) {
            assert_ptr_not_equal(copy->usage, event->usage);
            is_copied(&event->usage->model, &copy->usage->model);
            assert_int_equal(copy->usage->prompt, 5);
            assert_int_equal(copy->usage->cached, 2);
        }
        reply_copy_free(kept);
    }
}

static void write_down(const struct reply_event *event, void *ctx) {
    struct buf *out = ctx;
    if (event->kind == REPLY_TEXT) assert_null(event->pieces);
    buf_printf(out, "%d(" STR_FMT ")", (int)event->kind, STR_ARG(event->text));
}

static void a_text_in_pieces_is_each_of_them_or_copied_as_one(void **state) {
    (void)state;
    static const uint32_t lens[] = {1, 0, 3};
    const struct reply_pieces pieces = {.lens = lens, .count = 3};
    const struct reply_event event = {REPLY_TEXT, .text = STR("abcd"), .pieces = &pieces};
    struct buf out;
    buf_init(&out, KIB);
    reply_event_each(&event, write_down, &out);
    assert_str(buf_str(&out), "0(a)0()0(bcd)");
    buf_clear(&out);
    reply_event_each(&events[3], write_down, &out);
    assert_str(buf_str(&out), "6(May I?)");
    struct reply_copy *copy = reply_event_copy(&event);
    assert_null(copy->event.pieces);
    assert_str(copy->event.text, "abcd");
    reply_copy_free(copy);
    buf_done(&out);
}

static void the_endings_are_known(void **state) {
    (void)state;
    for (int kind = 0; kind < REPLY_KIND_COUNT; kind++) {
        bool ends = kind == REPLY_DONE || kind == REPLY_FAILED || kind == REPLY_RESULT;
        assert_int_equal(reply_event_ends(&(struct reply_event){.kind = (enum reply_kind)kind}),
                         ends);
    }
}

static void on_note(const struct reply_event *event, void *ctx) {
    assert_str(event->text, "look");
    (*(unsigned *)ctx)++;
}

static void a_kind_without_a_handler_is_passed_over(void **state) {
    (void)state;
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {[REPLY_NOTE] = on_note};
    unsigned notes = 0;
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        reply_event_handle(handlers, &events[i], &notes);
    assert_int_equal(notes, 0);
    reply_event_handle(handlers, &(struct reply_event){REPLY_NOTE, .text = STR("look")},
                       &notes);
    assert_int_equal(notes, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_has_all_that_the_event_borrowed),
        cmocka_unit_test(a_text_in_pieces_is_each_of_them_or_copied_as_one),
        cmocka_unit_test(the_endings_are_known),
        cmocka_unit_test(a_kind_without_a_handler_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
