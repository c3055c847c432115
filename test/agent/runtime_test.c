#include "agent/runtime.h"

#include "agent/kind.h"
#include "helper/assert_str.h"
#include "helper/reply_heard.h"
#include "provider/asking.h"

/* --- what is asked ------------------------------------------------------------------------ */

static const struct dialect_settings plain = {.base_url = STR_INIT("http://h")};

static void assert_asks(const struct dialect_settings *settings,
                        const struct provider_request *request, const char *url,
                        const char *body) {
    struct buf out, expected;
    struct err e;
    struct json json;
    buf_init(&out, MIB);
    buf_init(&expected, MIB);
    append_json(&expected, body);
    runtime_dialect.url(settings, request, &out);
    assert_str(buf_str(&out), url);
    buf_clear(&out);
    assert_true(runtime_dialect.body(settings, request, &out, &e));
    assert_true(json_read(buf_str(&out), &json, &e));
    assert_str(buf_str(&out), expected.at);
    struct buf small;
    buf_init(&small, out.len - 1);
    assert_false(runtime_dialect.body(settings, request, &small, &e));
    buf_done(&small);
    buf_done(&expected);
    buf_done(&out);
}

#define OF_S1                                                                                  \
    .workspace = STR_INIT("default"), .user = STR_INIT("anonymous"), .session = STR_INIT("s-1")

#define IDS "'thread_id':'s-1','config':{'thread_id':'s-1','user_id':'anonymous'},"

static void a_turn_has_its_words_and_its_session(void **state) {
    (void)state;
    static const struct message messages[] = {M_USER("earlier"), M_SAID("ann", "yes"),
                                              M_USER("say \"hi\"")};
    const struct provider_request *request = ASKING(messages, .turn_start = 2, OF_S1);
    const char *body = "{'input':'say \\'hi\\'','session_id':'s-1'," IDS
                       "'metadata':{}}"; /* \' is one quote */
    struct dialect_settings settings = plain;
    assert_asks(&settings, request, "http://h/stream", body);
    settings.whole = true;
    assert_asks(&settings, request, "http://h/invoke", body);
    settings.own = STR("{\"config\":{\"n\":1.50},\"metadata\":{\"a\\\"b\":[]},"
                       "\"history\":\"metadata\"}");
    assert_asks(&settings, request, "http://h/invoke",
                "{'input':'say \\'hi\\'','session_id':'s-1','thread_id':'s-1',"
                "'config':{'thread_id':'s-1','user_id':'anonymous','n':1.50},"
                "'metadata':{'a\\'b':[],'conversation_history':[{'role':'user','content':"
                "'earlier'},{'role':'assistant','content':'yes'}]}}");
    settings.own = STR("{\"history\":\"input\"}");
    assert_asks(&settings, request, "http://h/invoke",
                "{'input':'User: earlier\\n\\nAssistant: yes\\n\\nUser: say \\'hi\\'',"
                "'session_id':'s-1'," IDS "'metadata':{}}");
}

/* The settings count before the caller, who names no thread and no user but his own. */
static void what_the_caller_sends_along_goes_with_the_turn(void **state) {
    (void)state;
    static const struct message messages[] = {M_USER("hi")};
    struct dialect_settings settings = plain;
    settings.own =
        STR("{\"config\":{\"n\":1,\"user_id\":\"u\"},\"metadata\":{\"team\":\"t\"}}");
    assert_asks(
        &settings,
        ASKING(messages, OF_S1,
               .extras = STR_INIT("{\"config\":{\"n\":2,\"o\":[3],\"thread_id\":\"x\","
                                  "\"session_id\":\"x\",\"user_id\":\"x\","
                                  "\"configurable\":{\"user_id\":\"x\",\"p\":4}},"
                                  "\"metadata\":{\"team\":\"x\",\"user_id\":\"y\"}}")),
        "http://h/stream",
        "{'input':'hi','session_id':'s-1','thread_id':'s-1','config':{'thread_id':'s-1',"
        "'n':1,'user_id':'u','o':[3],'configurable':{'p':4}},"
        "'metadata':{'team':'t','user_id':'y'}}");
}

static void a_history_of_the_callers_does_not_stand_beside_ours(void **state) {
    (void)state;
    static const struct message messages[] = {M_USER("hi")};
    struct dialect_settings settings = plain;
    settings.own = STR("{\"history\":\"metadata\"}");
    assert_asks(&settings,
                ASKING(messages, OF_S1,
                       .extras = STR_INIT("{\"metadata\":{\"conversation\\u005fhistory\":[1],"
                                          "\"m\":2}}")),
                "http://h/stream",
                "{'input':'hi','session_id':'s-1'," IDS "'metadata':{'m':2,"
                "'conversation_history':[]}}");
}

static void an_input_that_is_no_text_goes_as_it_was_sent(void **state) {
    (void)state;
    static const struct message messages[] = {M_USER("hi\n\n{\"n\":1}")};
    struct dialect_settings settings = plain;
    const struct provider_request *request =
        ASKING(messages, OF_S1, .extras = STR_INIT("{\"input\":{\"message\":\"hi\",\"n\":1}}"));
    assert_asks(&settings, request, "http://h/stream",
                "{'input':{'message':'hi','n':1},'session_id':'s-1'," IDS "'metadata':{}}");
    settings.own = STR("{\"history\":\"input\"}");
    assert_asks(&settings, request, "http://h/stream",
                "{'input':'hi\\n\\n{\\\'n\\\':1}','session_id':'s-1'," IDS "'metadata':{}}");
}

static void pictures_stand_beside_the_words(void **state) {
    (void)state;
    static const struct message messages[] = {{.role = MESSAGE_USER,
                                               .text = STR_INIT("look"),
                                               .parts = STR_INIT("[{\"type\":\"image\"}]")}};
    assert_asks(
        &plain, ASKING(messages, OF_S1), "http://h/stream",
        "{'input':{'message':'look','content':[{'type':'image'}]},'session_id':'s-1'," IDS
        "'metadata':{}}");
}

static void sessions_of_two_people_have_two_names(void **state) {
    (void)state;
    static const char *const names[][4] = {
        {"default", "anonymous", "s-1", "s-1"},   {"default", "anonymous", "a/b%", "a%2Fb%25"},
        {"acme", "ada", "s-1", "acme/ada/s-1"},   {"acme/ada", "x", "s", "acme%2Fada/x/s"},
        {"default", "ada", "s", "default/ada/s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf out;
        buf_init(&out, KIB);
        const struct provider_request request = {.workspace = str_from(names[i][0]),
                                                 .user = str_from(names[i][1]),
                                                 .session = str_from(names[i][2])};
        assert_true(runtime_session_append(&request, &out));
        assert_str(buf_str(&out), names[i][3]);
        buf_done(&out);
    }
}

#define ASKED(thread) M_CALL("ann", "q", "request_approval", "{\"thread_id\":\"" thread "\"}")

static void an_answer_goes_to_the_thread_that_asked(void **state) {
    (void)state;
    static const struct {
        const char *thread, *answer, *body;
    } cases[] = {
        {"{\"thread_id\":\"t-9\"}", "{\"answer\":\"yes\"}",
         "{'thread_id':'t-9','human_input':'yes'}"},
        {"{\"thread_id\":\"\"}", "{\"answer\":\"7\"}", "{'thread_id':'s-1','human_input':'7'}"},
        {"{\"thread_id\":\"t\"}", "{\"answer\":\"{\\\"a\\\":1}\"}",
         "{'thread_id':'t','human_input':{'a':1}}"},
        {"{\"thread_id\":\"t\"}", "{\"answer\":\" true \"}",
         "{'thread_id':'t','human_input':true}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct message messages[] = {
            M_USER("book it"),
            {.role = MESSAGE_TOOL_CALL,
             .agent = STR("ann"),
             .call_id = STR("q"),
             .text = str_from(cases[i].thread)},
            {.role = MESSAGE_TOOL_RESULT,
             .call_id = STR("q"),
             .text = str_from(cases[i].answer)},
            M_USER("yes"),
        };
        const struct provider_request *request = ASKING(messages, OF_S1);
        assert_true(runtime_dialect.is_whole(request));
        assert_asks(&plain, request, "http://h/resume", cases[i].body);
    }
}

/* Its own words, another agent's question, and one of an earlier turn. */
static void only_the_last_question_of_this_agent_is_answered(void **state) {
    (void)state;
    static const struct message said[] = {M_USER("a"),
                                          ASKED("t"),
                                          M_RESULT("q", "{\"answer\":\"y\"}"),
                                          M_USER("y"),
                                          M_SAID("ann", "done"),
                                          M_USER("as JSON, please")};
    assert_false(runtime_dialect.is_whole(ASKING(said, OF_S1)));
    assert_asks(&plain, ASKING(said, OF_S1), "http://h/stream",
                "{'input':'as JSON, please','session_id':'s-1'," IDS "'metadata':{}}");
    static const struct message other[] = {
        M_USER("a"), M_CALL("bob", "q", "request_approval", "{\"thread_id\":\"t\"}"),
        M_RESULT("q", "{\"answer\":\"y\"}")};
    assert_false(runtime_dialect.is_whole(ASKING(other, OF_S1)));
    static const struct message tool[] = {M_USER("a"), M_CALL("ann", "q", "look", "{}"),
                                          M_RESULT("q", "{}")};
    assert_false(runtime_dialect.is_whole(ASKING(tool, OF_S1)));
    static const struct message before[] = {M_USER("a"), ASKED("t"),
                                            M_RESULT("q", "{\"answer\":\"y\"}"), M_USER("b")};
    assert_false(runtime_dialect.is_whole(ASKING(before, .turn_start = 3, OF_S1)));
}

/* --- what is answered --------------------------------------------------------------------- */

static const char *const forms[REPLY_KIND_COUNT] = {[REPLY_USAGE] = "usage($n $p $c $s) ",
                                                    [REPLY_NOTE] = "note($t$a) ",
                                                    [REPLY_APPROVAL] = "asks($t $a) "};

static void on_reply(const struct reply_event *event, void *ctx) {
    reply_heard(ctx, forms, event);
}

static void end_reply(struct reply *reply, bool fine, struct buf *heard) {
    struct str model;
    enum reply_outcome outcome = fine ? runtime_reader.end(reply, &model) : OUTCOME_FAILED;
    if (outcome == OUTCOME_FAILED) {
        buf_printf(heard, "%s %s: %s", reply->failure.reason,
                   err_name(reply->failure.why.code).at, reply->failure.why.text);
    } else {
        buf_append(heard, reply->over ? STR("done") : STR("ended"));
    }
    runtime_reader.free(reply);
}

struct feeding {
    struct reply *reply;
    bool fine;
};

static void on_event(const struct sse_event *event, void *ctx) {
    struct feeding *feeding = ctx;
    if (feeding->fine) feeding->fine = runtime_reader.feed(feeding->reply, event);
}

static void hear_stream(struct str stream, size_t step, struct buf *heard) {
    struct feeding feeding = {runtime_reader.begin(on_reply, heard), true};
    struct sse *sse = sse_new(MIB, on_event, &feeding);
    struct err e;
    for (; stream.len; stream = str_skip(stream, step))
        assert_true(sse_feed(sse, str_head(stream, step), &e));
    end_reply(feeding.reply, feeding.fine, heard);
    sse_free(sse);
}

#define MORE "data: {'delta':'more'}\n\n"
#define OVER "data: [DONE]\n\n"

static void each_event_of_a_stream_is_heard_however_it_is_cut(void **state) {
    (void)state;
    static const struct {
        const char *stream, *heard;
    } cases[] = {
        {"data: {'delta':'a','agent':'x'}\n\ndata: {'text':'b'}\n\n" OVER MORE,
         "text(a) text(b) done"},
        {"event: step\ndata: {'description':'look','result':[1]}\n\n" MORE,
         "note(look[1]) text(more) ended"},
        {"event: tool_call\ndata: {'name':'t','args':{'a':1}}\n\n"
         "event: tool_result\ndata: {'name':'t','result':{'b':2}}\n\n" MORE OVER,
         "own(1,t,{\"a\":1}) owned(1,{\"b\":2},) text(more) done"},
        {"event: tool_call\ndata: {'name':'t'}\n\n" MORE
         "event: result\ndata: {'output':'more','history':[{'name':'t','args':{},'result':'r'},"
         "{'name':'u','args':{},'result':{'x':1}}]}\n\n" OVER,
         "own(1,t,{}) text(more) owned(1,r,) own(2,u,{}) owned(2,{\"x\":1},) done"},
        {"event: result\ndata: {'output':{'a':[1, 2]}}\n\n" OVER, "text({\"a\":[1,2]}) done"},
        {MORE "event: done\ndata: {'tokens':{'input':3,'output':4},'model':'m'}\n\n" OVER,
         "text(more) usage(m 3 4 7) done"},
        {"event: error\ndata: {'error':'NOT_FOUND: no city'}\n\n" OVER,
         AGENT_FAILED " NOT_FOUND: no city"},
        {"data: {'error':{'code':'UNAVAILABLE','message':'gone'}}\n\n",
         AGENT_FAILED " UNAVAILABLE: gone"},
        {"data: {'error':'why: because'}\n\n", AGENT_FAILED " INTERNAL: why: because"},
        {"event: error\ndata: {}\n\n", AGENT_FAILED " INTERNAL: it does not say why"},
        {"event: new\ndata: what?\n\n: a comment\n\n" OVER, "done"},
        {": nothing\n\n", AGENT_PROTOCOL " INTERNAL: its stream ended without an answer"},
        {"event: result\ndata: {'output':'Shall I?','thread_id':'t','metadata':"
         "{'interrupted':true}}\n\n" OVER,
         "asks(Shall I? {\"thread_id\":\"t\"}) done"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf stream;
        buf_init(&stream, MIB);
        append_json(&stream, cases[i].stream);
        for (size_t step = 1; step <= stream.len; step++) {
            struct buf heard;
            buf_init(&heard, MIB);
            hear_stream(buf_str(&stream), step, &heard);
            assert_str(buf_str(&heard), cases[i].heard);
            buf_done(&heard);
        }
        buf_done(&stream);
    }
}

static void a_whole_answer_is_text_a_question_or_a_failure(void **state) {
    (void)state;
    static const struct {
        const char *answer, *heard;
    } cases[] = {
        {"{'output':'hi','session_id':'s','metadata':null}", "text(hi) ended"},
        {"{'output':''}", "ended"},
        {"{'output':{'messages':[{'content':'a'},{'type':'ai','content':'b'}]}}",
         "text(b) ended"},
        {"{'output':{'messages':[]}}", "text({\"messages\":[]}) ended"},
        {"{'output':[1, 2],'cost_usd':0.25}", "text([1,2]) usage( -1 -1 -1) ended"},
        {"{'output':'o','history':[{'name':'t','args':{'n':1},'result':'r'},7]}",
         "own(1,t,{\"n\":1}) owned(1,r,) text(o) ended"},
        {"{'output':{'status':'interrupted','thread_id':'T','awaiting':['book','pay']}}",
         "asks(The agent waits for an answer: book, pay {\"thread_id\":\"T\"}) ended"},
        {"{'output':{'question':'Why?'},'metadata':{'interrupted':true},'session_id':'s'}",
         "asks(Why? {\"thread_id\":\"s\"}) ended"},
        {"{'output':'?','metadata':{'interrupted':true}}",
         "asks(? {\"thread_id\":\"\"}) ended"},
        {"{'output':{'status':'interrupted'},'metadata':{'interrupted':false}}",
         "text({\"status\":\"interrupted\"}) ended"},
        {"{'result':'?'}", AGENT_PROTOCOL
         " INTERNAL: its answer has no 'output', as the Runtime Contract wants it"},
        {"{'output':'x','tokens':{'input':-1,'output':'4','total':9}}",
         "text(x) usage( -1 -1 9) ended"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text, heard;
        struct json answer;
        struct err e;
        buf_init(&text, MIB);
        buf_init(&heard, MIB);
        append_json(&text, cases[i].answer);
        assert_true(json_read(buf_str(&text), &answer, &e));
        struct reply *reply = runtime_reader.begin(on_reply, &heard);
        end_reply(reply, runtime_reader.read(reply, answer), &heard);
        assert_str(buf_str(&heard), cases[i].heard);
        buf_done(&heard);
        buf_done(&text);
    }
}

static void a_listener_that_has_left_hears_nothing(void **state) {
    (void)state;
    struct buf heard;
    buf_init(&heard, MIB);
    struct reply *reply = runtime_reader.begin(on_reply, &heard);
    reply->stopped = true;
    const struct sse_event event = {STR("message"), STR("{\"delta\":\"a\"}"), STR_EMPTY};
    assert_true(runtime_reader.feed(reply, &event));
    assert_int_equal(heard.len, 0);
    runtime_reader.free(reply);
    buf_done(&heard);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_has_its_words_and_its_session),
        cmocka_unit_test(what_the_caller_sends_along_goes_with_the_turn),
        cmocka_unit_test(a_history_of_the_callers_does_not_stand_beside_ours),
        cmocka_unit_test(an_input_that_is_no_text_goes_as_it_was_sent),
        cmocka_unit_test(pictures_stand_beside_the_words),
        cmocka_unit_test(sessions_of_two_people_have_two_names),
        cmocka_unit_test(an_answer_goes_to_the_thread_that_asked),
        cmocka_unit_test(only_the_last_question_of_this_agent_is_answered),
        cmocka_unit_test(each_event_of_a_stream_is_heard_however_it_is_cut),
        cmocka_unit_test(a_whole_answer_is_text_a_question_or_a_failure),
        cmocka_unit_test(a_listener_that_has_left_hears_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
