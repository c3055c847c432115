#include "provider/dialect.h"

#include "helper/assert_str.h"
#include "helper/transcript.h"
#include "provider/asking.h"

/* --- words of strangers ------------------------------------------------------------------- */

static void assert_safe(const char *text, size_t max_bytes, const char *expected) {
    struct buf out;
    buf_init(&out, 4 * KIB);
    struct str exact = exact_copy(str_from(text));
    reply_append_safe(&out, exact, max_bytes);
    assert_str(buf_str(&out), expected);
    free((void *)exact.at);
    buf_done(&out);
}

static void text_like_a_key_is_hidden(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"Incorrect API key provided: sk-abcd***wxyz. You can find it at x.com.",
         "Incorrect API key provided: ***. You can find it at x.com."},
        {"Incorrect API key provided: canary1*****7890.", "Incorrect API key provided: ***."},
        {"key 'sk-proj-abc_DEF-123'", "key '***'"},
        {"sk-ant-api03-xyz", "***"},
        {"AIzaSyD-abcdefg_123 is bad", "*** is bad"},
        {"abcd...wxyz", "***"},
        {"Authorization: Bearer abc.def/ghi+jkl=", "Authorization: Bearer ***"},
        {"authorization: basic dTpw", "authorization: basic ***"},
        {"GET https://h/v1?key=hunter2&alt=sse", "GET https://h/v1?key=***&alt=sse"},
        {"x-api-key=hunter2, done", "x-api-key=***, done"},
        {"https://user:pass@host/v1", "https://***@host/v1"},
        {"0123456789abcdef0123456789abcdef", "***"},
        {"\"error\":\"gsk_abcdef\"", "\"error\":\"***\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_safe(cases[i].text, 200, cases[i].expected);
}

static void text_that_only_resembles_a_key_is_shown(void **state) {
    (void)state;
    static const char *const shown[] = {
        "the model 'gpt-4o-2024-08-06' does not exist.",
        "disk-full, risk-free, ask-me: sk-, sk-1.",
        "request 123e4567-e89b-12d3-a456-426614174000",
        "https://host/v1?alt=sse, mail me@host",
        "wait... and see...",
        "antidisestablishmentarianismisaverylongword",
    };
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) assert_safe(shown[i], 200, shown[i]);
}

static void it_is_one_line_of_valid_text(void **state) {
    (void)state;
    assert_safe(" <html>\r\n\t<b>\x1B[31mNo\x7F</b>\n", 99, "<html> <b> [31mNo </b>");
    assert_safe("a\xC2\x85"
                "b\xC3(",
                99, "a b\xEF\xBF\xBD(");
    assert_safe("", 99, "");
    assert_safe("\n\n", 99, "");
}

static void it_is_cut_between_characters_and_says_so(void **state) {
    (void)state;
    assert_safe("0123456789", 10, "0123456789");
    assert_safe("0123456789x", 10, "0123456...");
    assert_safe("01234\xE2\x82\xAC"
                "9x",
                9, "01234...");
    for (size_t max = 0; max < 5; max++) {
        struct buf out;
        buf_init(&out, 64);
        reply_append_safe(&out, STR("a long text"), max);
        assert_true(out.len <= max && buf_ok(&out));
        buf_done(&out);
    }
}

static void a_key_stays_hidden_wherever_the_text_is_cut(void **state) {
    (void)state;
    struct str text = STR("the key sk-canarycanarycanary is wrong");
    for (size_t max = 0; max <= text.len; max++) {
        struct buf out;
        buf_init(&out, 64);
        reply_append_safe(&out, text, max);
        assert_int_equal(str_find(buf_str(&out), STR("can")), out.len);
        buf_done(&out);
    }
}

static void assert_hidden(const char *text, const char *key, const char *expected) {
    struct err e;
    err_set(&e, ERR_UNKNOWN, "%s", text);
    struct str exact = exact_copy(str_from(key));
    reply_hide(&e, exact);
    free((void *)exact.at);
    assert_int_equal(e.code, ERR_UNKNOWN);
    assert_str(err_text(&e), expected);
}

static void the_very_key_and_long_pieces_of_it_are_hidden(void **state) {
    (void)state;
    assert_hidden("bad: canary-0815-4711!", "canary-0815-4711", "bad: ***!");
    assert_hidden("ends in ry-0815-4711", "canary-0815-4711", "ends in ***");
    assert_hidden("begins canary-0815-, twice canary-0815-4", "canary-0815-4711",
                  "begins ***, twice ***");
    assert_hidden("canary", "canary-0815-4711", "canary");
    assert_hidden("ollama says no", "ollama", "ollama says no");
    assert_hidden("no key at all", "", "no key at all");
}

/* --- reasons ------------------------------------------------------------------------------ */

static struct reply_failure failure_of(unsigned status, const char *body) {
    struct json json = {.kind = JSON_NONE};
    struct err e;
    struct str exact = exact_copy(str_from(body));
    if (exact.len && !json_read(exact, &json, &e)) fail_msg("%s: %s", body, e.text);
    struct reply_failure failure;
    memset(&failure, 0xEE, sizeof(failure));
    reply_failure_of("Acme", status, json, &failure);
    free((void *)exact.at);
    return failure;
}

static void each_status_has_its_reason(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *reason;
        enum err_code code;
    } cases[] = {
        {400, PROVIDER_REJECTED, ERR_INVALID_ARGUMENT},
        {401, PROVIDER_AUTH, ERR_FAILED_PRECONDITION},
        {402, PROVIDER_QUOTA, ERR_FAILED_PRECONDITION},
        {403, PROVIDER_AUTH, ERR_FAILED_PRECONDITION},
        {404, PROVIDER_REJECTED, ERR_NOT_FOUND},
        {408, PROVIDER_TIMEOUT, ERR_DEADLINE_EXCEEDED},
        {409, PROVIDER_ERROR, ERR_UNAVAILABLE},
        {413, MODEL_CONTEXT, ERR_INVALID_ARGUMENT},
        {418, PROVIDER_REJECTED, ERR_INVALID_ARGUMENT},
        {422, PROVIDER_REJECTED, ERR_INVALID_ARGUMENT},
        {429, PROVIDER_RATE_LIMITED, ERR_RESOURCE_EXHAUSTED},
        {500, PROVIDER_ERROR, ERR_UNAVAILABLE},
        {502, PROVIDER_ERROR, ERR_UNAVAILABLE},
        {503, PROVIDER_OVERLOADED, ERR_UNAVAILABLE},
        {504, PROVIDER_ERROR, ERR_UNAVAILABLE},
        {529, PROVIDER_OVERLOADED, ERR_UNAVAILABLE},
        {302, PROVIDER_BROKEN, ERR_UNAVAILABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct reply_failure failure = failure_of(cases[i].status, "");
        assert_string_equal(failure.reason, cases[i].reason);
        assert_int_equal(failure.why.code, cases[i].code);
    }
}

static void a_refusal_of_the_request_differs_from_a_refusal_of_the_caller(void **state) {
    (void)state;
    /* K27: a 4xx other than 401, 403, 408 and 429. 402 and 409 speak of the account and of the
     * moment, whatever was asked. */
    for (unsigned status = 400; status < 500; status++) {
        static const unsigned others[] = {401, 402, 403, 408, 409, 429};
        bool other = false;
        for (size_t i = 0; i < ARRAY_LEN(others); i++) other |= others[i] == status;
        struct str reason = str_from(failure_of(status, "{}").reason);
        assert_int_equal(reply_reason_is_refusal(reason), !other);
    }
    for (unsigned status = 500; status < 600; status++)
        assert_false(reply_reason_is_refusal(str_from(failure_of(status, "{}").reason)));
    assert_true(reply_reason_is_refusal(STR("PROVIDER_REJECTED")));
    assert_true(reply_reason_is_refusal(STR("MODEL_CONTEXT")));
    assert_true(reply_reason_is_refusal(STR("MODEL_REFUSED")));
    static const char *const never[] = {"",  "PROVIDER_BROKEN", "PROVIDER_UNREACHABLE",
                                        "X", "PROVIDER_QUOTA",  "DEADLINE_EXCEEDED"};
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        assert_false(reply_reason_is_refusal(str_from(never[i])));
    /* The words of an error say more than its status. */
    static const struct {
        unsigned status;
        const char *body;
        bool refusal;
    } words[] = {
        {400, "{\"error\":{\"code\":\"content_filter\"}}", true},
        {400, "{\"error\":{\"message\":\"maximum context length\"}}", true},
        {400,
         "{\"error\":{\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"reason\":"
         "\"API_KEY_INVALID\"}]}}",
         false},
        {0, "{\"error\":{\"type\":\"invalid_request_error\"}}", true},
        {0, "{\"error\":{\"type\":\"overloaded_error\"}}", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct str reason = str_from(failure_of(words[i].status, words[i].body).reason);
        assert_int_equal(reply_reason_is_refusal(reason), words[i].refusal);
    }
}

static void each_reason_has_a_sentence(void **state) {
    (void)state;
    assert_str(reply_reason_sentence(STR("MODEL_REFUSED")), "the model refused to answer this");
    assert_str(reply_reason_sentence(STR("PROVIDER_OVERLOADED")),
               "the model's provider is overloaded; try again in a moment");
    assert_str(reply_reason_sentence(STR("ANYTHING")), "the model could not be asked");
}

static void a_special_word_says_more_than_the_status(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *body, *reason;
    } cases[] = {
        {429, "{\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\"}}",
         PROVIDER_QUOTA},
        {429, "{\"error\":{\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
         PROVIDER_RATE_LIMITED},
        {429, "{\"error\":{\"code\":\"billing_hard_limit_reached\"}}", PROVIDER_QUOTA},
        {400, "{\"error\":{\"code\":\"context_length_exceeded\"}}", MODEL_CONTEXT},
        {400, "{\"error\":{\"code\":\"content_filter\",\"status\":400}}", MODEL_REFUSED},
        {401, "{\"error\":{\"type\":\"invalid_request_error\",\"code\":\"invalid_api_key\"}}",
         PROVIDER_AUTH},
        {401, "{\"error\":{\"type\":\"invalid_request_error\",\"code\":null}}", PROVIDER_AUTH},
        {500, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
         PROVIDER_OVERLOADED},
        {400,
         "[{\"error\":{\"code\":400,\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"@type\":"
         "\"x\"},{\"reason\":\"API_KEY_INVALID\"}]}}]",
         PROVIDER_AUTH},
        {404, "{\"error\":{\"code\":\"model_not_found\"}}", PROVIDER_REJECTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(failure_of(cases[i].status, cases[i].body).reason, cases[i].reason);
}

static void long_names_are_distinguished_by_their_words(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *message, *reason;
    } cases[] = {
        {400, "This model's maximum context length is 8192 tokens.", MODEL_CONTEXT},
        {400, "prompt is too long: 210000 tokens > 200000 maximum", MODEL_CONTEXT},
        {422, "Your input exceeds the context window of this model.", MODEL_CONTEXT},
        {400, "The input token count exceeds the maximum number of tokens allowed 1048576.",
         MODEL_CONTEXT},
        {0, "Your input exceeds the context window of this model.", MODEL_CONTEXT},
        {400, "Invalid 'tools[0].name': string too long.", PROVIDER_REJECTED},
        {400, "Your credit balance is too low to access the API.", PROVIDER_QUOTA},
        {401, "context length", PROVIDER_AUTH},
        {429, "maximum context length a minute", PROVIDER_RATE_LIMITED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf body;
        buf_init(&body, KIB);
        buf_printf(&body, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"%s\"}}",
                   cases[i].message);
        buf_append_byte(&body, '\0');
        assert_string_equal(failure_of(cases[i].status, body.at).reason, cases[i].reason);
        buf_done(&body);
    }
}

static void inside_a_stream_the_words_alone_decide(void **state) {
    (void)state;
    static const struct {
        const char *body, *reason;
    } cases[] = {
        {"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", PROVIDER_OVERLOADED},
        {"{\"error\":{\"type\":\"rate_limit_error\"}}", PROVIDER_RATE_LIMITED},
        {"{\"error\":{\"type\":\"authentication_error\"}}", PROVIDER_AUTH},
        {"{\"error\":{\"type\":\"api_error\"}}", PROVIDER_ERROR},
        {"{\"error\":{\"type\":\"invalid_request_error\"}}", PROVIDER_REJECTED},
        {"{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}", PROVIDER_RATE_LIMITED},
        {"{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}", PROVIDER_OVERLOADED},
        {"{\"error\":{\"code\":402,\"message\":\"x\"}}", PROVIDER_QUOTA},
        {"{\"error\":{\"code\":7}}", PROVIDER_ERROR},
        {"{\"error\":\"model is busy\"}", PROVIDER_ERROR},
        {"{\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\"}", PROVIDER_ERROR},
        {"\"no\"", PROVIDER_ERROR},
        {"{}", PROVIDER_ERROR},
        {"[]", PROVIDER_ERROR},
        {"null", PROVIDER_ERROR},
        {"7", PROVIDER_ERROR},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(failure_of(0, cases[i].body).reason, cases[i].reason);
}

static void the_sentence_holds_what_the_vendor_said_wherever_it_stood(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *body, *text;
    } cases[] = {
        {429, "{\"error\":{\"message\":\"Slow\\ndown\"}}", "Acme answered 429: Slow down"},
        {429, "[{\"error\":{\"message\":\"Slow down\"}}]", "Acme answered 429: Slow down"},
        {404, "{\"error\":\"model 'x' not found\"}", "Acme answered 404: model 'x' not found"},
        {400, "{\"object\":\"error\",\"message\":\"No.\"}", "Acme answered 400: No."},
        {403, "{\"detail\":\"Not yours\"}", "Acme answered 403: Not yours"},
        {422,
         "{\"detail\":[{\"type\":\"dict_type\",\"loc\":[\"body\",\"input\",0],\"msg\":"
         "\"Input should be a dictionary\"},{\"msg\":\"more\"}]}",
         "Acme answered 422: body.input.0: Input should be a dictionary"},
        {422, "{\"detail\":[]}", "Acme answered 422 and did not say why"},
        {502, "\"<html>Bad gateway\"", "Acme answered 502: <html>Bad gateway"},
        {500, "", "Acme answered 500 and did not say why"},
        {401, "{\"error\":{\"message\":\"wrong: sk-abc***xyz\"}}",
         "Acme answered 401: wrong: ***"},
        {0, "{\"error\":{\"message\":\"Overloaded\"}}", "Acme sent an error: Overloaded"},
        {0, "{\"error\":{}}", "Acme sent an error and did not say which"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct reply_failure failure = failure_of(cases[i].status, cases[i].body);
        assert_str(err_text(&failure.why), cases[i].text);
    }
}

static void a_reply_fails_with_a_sentence_cut_between_characters(void **state) {
    (void)state;
    struct reply reply = {.stopped = false};
    assert_false(
        reply_fail(&reply, ERR_UNAVAILABLE, PROVIDER_BROKEN, "event %d: %s", 7, "cut"));
    assert_string_equal(reply.failure.reason, PROVIDER_BROKEN);
    assert_int_equal(reply.failure.why.code, ERR_UNAVAILABLE);
    assert_str(err_text(&reply.failure.why), "event 7: cut");

    char text[ERR_TEXT_BYTES + 9] = {0};
    memset(text, 'a', ERR_TEXT_BYTES - 2);
    memcpy(text + ERR_TEXT_BYTES - 2, "\xE2\x82\xAC", 3);
    reply_fail(&reply, ERR_UNAVAILABLE, PROVIDER_BROKEN, "%s", text);
    assert_int_equal(err_text(&reply.failure.why).len, ERR_TEXT_BYTES - 2);
}

/* --- the table ---------------------------------------------------------------------------- */

static void each_dialect_is_complete_and_found_by_its_name(void **state) {
    (void)state;
    for (size_t i = 0; i < DIALECT_COUNT; i++) {
        const struct dialect *dialect = dialects[i];
        assert_ptr_equal(dialect_find(str_from(dialect->name)), dialect);
        assert_non_null(dialect->title);
        assert_non_null(dialect->key_header);
        assert_non_null(dialect->key_prefix);
        const struct reply_reader *reader = dialect->reader;
        assert_true(dialect->url && dialect->body && reader->begin && reader->feed);
        assert_true(reader->read && reader->end && reader->free);
    }
    assert_null(dialect_find(STR("")));
    assert_null(dialect_find(STR("morse")));
}

static void a_whole_answer_is_asked_for_without_a_stream(void **state) {
    (void)state;
    static const struct {
        const struct dialect *dialect;
        const char *url, *streams; /* what the request says of streaming */
    } cases[] = {
        {&openai_dialect, "https://h/v1/chat/completions?a=b", "\"stream\":false"},
        {&responses_dialect, "https://h/v1/responses?a=b", "\"stream\":false"},
        {&anthropic_dialect, "https://h/v1/messages?a=b", "\"stream\":false"},
        {&gemini_dialect, "https://h/v1/models/m:generateContent?a=b", NULL},
    };
    const struct dialect_settings settings = {
        .base_url = STR("https://h/v1"), .query = STR("a=b"), .whole = true};
    const struct message hello = {.role = MESSAGE_USER, .text = STR("hello")};
    const struct provider_request request = {
        .model = STR("m"), .messages = &hello, .message_count = 1};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf url, body;
        struct err e;
        buf_init(&url, KIB);
        buf_init(&body, 4 * KIB);
        cases[i].dialect->url(&settings, &request, &url);
        assert_str(buf_str(&url), cases[i].url);
        assert_true(cases[i].dialect->body(&settings, &request, &body, &e));
        struct str text = buf_str(&body), streams = STR("\"stream");
        size_t at = str_find(text, streams);
        if (cases[i].streams) {
            assert_true(str_starts(str_skip(text, at), str_from(cases[i].streams)));
            at++;
        }
        assert_int_equal(str_find(str_skip(text, at), streams), str_skip(text, at).len);
        buf_done(&url);
        buf_done(&body);
    }
}

#define COUNTS " prompt=9 completion=3 total=12 tool_use=-1 thoughts=-1 cached=-1\n"
#define UNCOUNTED " prompt=-1 completion=-1 total=-1 tool_use=-1 thoughts=-1 cached=-1\n"
#define A_CALL "call c1 look {\"a\":1}\n"

static void an_answer_that_came_as_a_whole_is_delivered_as_one(void **state) {
    (void)state;
    static const struct {
        const struct dialect *dialect;
        const char *answer, *heard; /* ' for " in the answer */
    } cases[] = {
        {&openai_dialect,
         "{'model':'m','choices':[{'index':0,'message':{'role':'assistant','content':'Hi you',"
         "'tool_calls':[{'id':'c1','type':'function','function':{'name':'look',"
         "'arguments':'{\\u0022a\\u0022:1}'}}]},'finish_reason':'tool_calls'}],"
         "'usage':{'prompt_tokens':9,'completion_tokens':3,'total_tokens':12}}",
         "text \"Hi you\"\n" A_CALL "usage m" COUNTS "done m\n"},
        {&openai_dialect, "{'model':'m','choices':[{'message':{'content':'Hi'}}]}",
         "text \"Hi\"\nusage m" UNCOUNTED "done m\n"},
        {&openai_dialect,
         "{'model':'m','choices':[{'message':{'content':'Hi'},'finish_reason':'length'}]}",
         "text \"Hi\"\nusage m" UNCOUNTED "cut m\n"},
        {&openai_dialect, "{'choices':[]}",
         "failed PROVIDER_BROKEN UNAVAILABLE \"the provider's answer ended before it was "
         "complete\"\n"},
        {&responses_dialect,
         "{'model':'m','status':'completed','error':null,'output':[{'type':'message','content':"
         "[{'type':'output_text','text':'Hi you'}]},{'type':'function_call','call_id':'c1',"
         "'name':'look','arguments':'{\\u0022a\\u0022:1}'}],"
         "'usage':{'input_tokens':9,'output_tokens':3,'total_tokens':12}}",
         "text \"Hi you\"\n" A_CALL "usage m" COUNTS "done m\n"},
        {&responses_dialect,
         "{'model':'m','status':'incomplete','incomplete_details':{'reason':"
         "'max_output_tokens'},'output':[{'type':'message','content':[{'text':'Hi'}]}]}",
         "text \"Hi\"\nusage m" UNCOUNTED "cut m\n"},
        {&responses_dialect, "{'model':'m','status':'in_progress','output':[]}",
         "failed PROVIDER_BROKEN UNAVAILABLE \"the provider's answer ended before it was "
         "complete\"\n"},
        {&responses_dialect, "{'status':'failed','error':{'message':'no'}}",
         "failed PROVIDER_ERROR UNAVAILABLE \"OpenAI sent an error: no\"\n"},
        {&anthropic_dialect,
         "{'type':'message','model':'m','content':[{'type':'text','text':'Hi you'},"
         "{'type':'tool_use','id':'c1','name':'look','input':{'a':1}}],"
         "'stop_reason':'tool_use','usage':{'input_tokens':9,'output_tokens':3}}",
         "text \"Hi you\"\n" A_CALL "usage m" COUNTS "done m\n"},
        {&anthropic_dialect,
         "{'model':'m','content':[{'type':'thinking','thinking':'hm','signature':'s'},"
         "{'type':'text','text':'Hi'}],'stop_reason':'end_turn'}",
         "thinking \"hm\"\ntext \"Hi\"\nusage m" UNCOUNTED "done m\n"},
        {&anthropic_dialect, "{'model':'m','content':[{'type':'text','text':'Hi'}]}",
         "text \"Hi\"\nfailed PROVIDER_BROKEN UNAVAILABLE \"Anthropic's answer broke off "
         "before its end; ask again\"\n"},
        {&anthropic_dialect, "{'type':'error','error':{'message':'no'}}",
         "failed PROVIDER_ERROR UNAVAILABLE \"Anthropic sent an error: no\"\n"},
        {&gemini_dialect,
         "{'candidates':[{'content':{'parts':[{'text':'Hi you'},{'functionCall':{'id':'c1',"
         "'name':'look','args':{'a':1}}}]},'finishReason':'STOP'}],'modelVersion':'m',"
         "'usageMetadata':{'promptTokenCount':9,'candidatesTokenCount':3,"
         "'totalTokenCount':12}}",
         "text \"Hi you\"\n" A_CALL "usage m" COUNTS "done m\n"},
        {&gemini_dialect,
         "[{'candidates':[{'content':{'parts':[{'text':'Hi'}]}}],'modelVersion':'m'},"
         "{'candidates':[{'content':{'parts':[{'text':' you'}]},'finishReason':'STOP'}]}]",
         "text \"Hi\"\ntext \" you\"\nusage m" UNCOUNTED "done m\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf answer, out;
        buf_init(&answer, 4 * KIB);
        buf_init(&out, 4 * KIB);
        append_json(&answer, cases[i].answer);
        transcript_read(cases[i].dialect, buf_str(&answer), &out);
        assert_str(buf_str(&out), cases[i].heard);
        buf_done(&answer);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_like_a_key_is_hidden),
        cmocka_unit_test(text_that_only_resembles_a_key_is_shown),
        cmocka_unit_test(it_is_one_line_of_valid_text),
        cmocka_unit_test(it_is_cut_between_characters_and_says_so),
        cmocka_unit_test(a_key_stays_hidden_wherever_the_text_is_cut),
        cmocka_unit_test(the_very_key_and_long_pieces_of_it_are_hidden),
        cmocka_unit_test(each_status_has_its_reason),
        cmocka_unit_test(a_refusal_of_the_request_differs_from_a_refusal_of_the_caller),
        cmocka_unit_test(each_reason_has_a_sentence),
        cmocka_unit_test(a_special_word_says_more_than_the_status),
        cmocka_unit_test(long_names_are_distinguished_by_their_words),
        cmocka_unit_test(inside_a_stream_the_words_alone_decide),
        cmocka_unit_test(the_sentence_holds_what_the_vendor_said_wherever_it_stood),
        cmocka_unit_test(a_reply_fails_with_a_sentence_cut_between_characters),
        cmocka_unit_test(each_dialect_is_complete_and_found_by_its_name),
        cmocka_unit_test(a_whole_answer_is_asked_for_without_a_stream),
        cmocka_unit_test(an_answer_that_came_as_a_whole_is_delivered_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
