/* Answers that must be JSON of a certain shape. */
#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"

#define SCHEMA                                                                                 \
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}"

static struct schema *shape_all(struct fixture *f) {
    struct schema *schema;
    struct err e;
    if (!schema_read(STR(SCHEMA), &schema, &e)) fail_msg("%s", e.text);
    f->agents[0].schema = schema;
    f->agents[0].schema_text = STR(SCHEMA);
    return schema;
}

static void a_good_answer_is_shown_when_it_is_whole(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    struct schema *schema = shape_all(&f);
    say(&turn, &f, "x");
    assert_str(fake_request(asked(&f))->schema, SCHEMA);
    fake_text(asked(&f), STR("```json\n{\"n\""));
    assert_seen(&turn, "started(x)");
    fake_text(asked(&f), STR(":1}\n```"));
    fake_done(asked(&f), "m-1");
    assert_seen(&turn, "started(x) usage(0 -1) text({\"n\":1}) done(m-1 manager={\"n\":1})");
    end(&turn);
    fixture_done(&f);
    schema_free(schema);
}

static void a_bad_answer_may_be_repaired_once(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    struct schema *schema = shape_all(&f);
    say(&turn, &f, "x");
    reply(&f, "{\"n\":\"one\"}");
    const struct provider_request *request = fake_request(asked(&f));
    assert_int_equal(request->message_count, 3);
    assert_str(request->messages[1].text, "{\"n\":\"one\"}");
    assert_true(str_find(request->messages[2].text, STR("/n: expected an integer")) <
                request->messages[2].text.len);
    reply(&f, "{\"n\":1}");
    assert_seen(
        &turn,
        "started(x) usage(0 -1) item(application/vnd.weir.repair) usage(1 -1) text({\"n\":1}) "
        "done(m-1 manager={\"n\":1})");
    end(&turn);
    /* What the model was shown stays as it was shown. */
    assert_history(&f,
                   "user=x agent/manager={\"n\":\"one\"} user=That is not the JSON that was "
                   "asked for: /n: expected an integer, got a string. Answer again with "
                   "nothing but JSON that follows the schema. agent/manager={\"n\":1}");
    fixture_done(&f);
    schema_free(schema);
}

static void a_second_bad_answer_fails_the_turn(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    struct schema *schema = shape_all(&f);
    say(&turn, &f, "x");
    reply(&f, "one");
    reply(&f, "");
    assert_seen(&turn, "started(x) usage(0 -1) item(application/vnd.weir.repair) usage(1 -1) "
                       "failed(INTERNAL OUTPUT_INVALID)");
    end(&turn);
    fixture_done(&f);
    schema_free(schema);
}

static void prose_before_tools_is_kept_from_the_answer(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    struct schema *schema = shape_all(&f);
    say(&turn, &f, "x");
    fake_text(asked(&f), STR("let me look"));
    fake_tool_call(asked(&f), "c", "search", "{}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    fake_tool_answer(f.search, 0, "{}");
    turns(&f);
    reply(&f, "{\"n\":2}");
    assert_seen(&turn, "started(x) usage(0 -1) call(c search {}) result(c {}) usage(1 -1) "
                       "text({\"n\":2}) done(m-1 manager={\"n\":2})");
    end(&turn);
    fixture_done(&f);
    schema_free(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_answer_is_shown_when_it_is_whole),
        cmocka_unit_test(a_bad_answer_may_be_repaired_once),
        cmocka_unit_test(a_second_bad_answer_fails_the_turn),
        cmocka_unit_test(prose_before_tools_is_kept_from_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
