/* Responses parsed from bytes, cut and paused anywhere. */
#include "client/http1_response.h"

#include "helper/assert_str.h"

struct heard {
    struct buf text;
    bool pauses; /* after each callback */
};

static enum http1_go on_line(struct str line, void *ctx) {
    struct heard *heard = ctx;
    buf_append(&heard->text, line);
    buf_append(&heard->text, STR("|"));
    return heard->pauses ? HTTP1_PAUSE : HTTP1_GO;
}

static enum http1_go on_body(struct str bytes, void *ctx) {
    struct heard *heard = ctx;
    assert_true(bytes.len > 0);
    buf_append(&heard->text, bytes);
    return heard->pauses ? HTTP1_PAUSE : HTTP1_GO;
}

static const struct http1_events events = {on_line, on_body};

/* Feed all of a piece, going on after each pause. */
static enum http1_verdict feed(struct http1_response *response, struct str piece) {
    for (;;) {
        size_t used;
        enum http1_verdict verdict = http1_response_feed(response, piece, &used);
        assert_true(used <= piece.len);
        if (verdict != HTTP1_PAUSED) return verdict;
        piece = str_skip(piece, used);
    }
}

struct sample {
    const char *name, *bytes, *heard;
    enum http1_verdict verdict;
    bool keeps_alive, no_body, until_eof;
};

static const struct sample samples[] = {
    {"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
     "HTTP/1.1 200|Content-Length: 5||hello", HTTP1_END, true, false, false},
    {"chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
     "chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
     "HTTP/1.1 200|Transfer-Encoding: chunked||hello", HTTP1_END, true, false, false},
    {"trailers",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nT: v\r\n\r\n",
     "HTTP/1.1 200|Transfer-Encoding: chunked||xT: v|", HTTP1_END, true, false, false},
    {"hints first", "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
     "HTTP/1.1 103|Link: a||HTTP/1.1 204||", HTTP1_END, true, false, false},
    {"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
     "HTTP/1.1 200|Content-Length: 0||", HTTP1_END, true, false, false},
    {"closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
     "HTTP/1.1 200|Connection: close|Content-Length: 1||x", HTTP1_END, false, false, false},
    {"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
     "HTTP/1.0 200|Content-Length: 1||x", HTTP1_END, false, false, false},
    {"not modified", "HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n",
     "HTTP/1.1 304|Content-Length: 9||", HTTP1_END, true, false, false},
    {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 200|Content-Length: 9||",
     HTTP1_END, true, true, false},
    {"until the end", "HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 200||hello", HTTP1_END, false,
     false, true},
    {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", NULL,
     HTTP1_BAD, false, false, false},
    {"length and chunks",
     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
     NULL, HTTP1_BAD, false, false, false},
    {"other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n",
     NULL, HTTP1_STOPPED, false, false, false},
    {"a folded line is one", /* RFC 9112 5.2 */
     "HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\nContent-Length: 0\r\n\r\n",
     "HTTP/1.1 200|A: b c: d|Content-Length: 0||", HTTP1_END, true, false, false},
    {"no chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", NULL,
     HTTP1_BAD, false, false, false},
    {"upgrade", "HTTP/1.1 101 Now\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", NULL,
     HTTP1_BAD, false, false, false},
    {"another protocol", "SSH-2.0-server\r\n", NULL, HTTP1_BAD, false, false, false},
};

static void read_cut(const struct sample *sample, size_t cut, bool pauses) {
    struct heard heard = {.pauses = pauses};
    struct http1_response response;
    struct str bytes = str_from(sample->bytes);
    buf_init(&heard.text, KIB);
    http1_response_init(&response, sample->no_body, &events, &heard);
    enum http1_verdict verdict = feed(&response, str_head(bytes, cut));
    if (verdict == HTTP1_MORE) verdict = feed(&response, str_skip(bytes, cut));
    if (sample->until_eof) {
        assert_int_equal(verdict, HTTP1_MORE);
        verdict = http1_response_finish(&response);
    }
    if (verdict != sample->verdict) fail_msg("%s: cut at %zu: %d", sample->name, cut, verdict);
    if (sample->heard) assert_str(buf_str(&heard.text), sample->heard);
    assert_int_equal(response.keeps_alive, sample->keeps_alive);
    http1_response_done(&response);
    buf_done(&heard.text);
}

static void a_response_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        for (size_t cut = 0; cut <= strlen(samples[i].bytes); cut++) {
            read_cut(&samples[i], cut, false);
            read_cut(&samples[i], cut, true);
        }
    }
}

static void no_truncated_response_is_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct str bytes = str_from(samples[i].bytes);
        if (samples[i].verdict != HTTP1_END || samples[i].until_eof) continue;
        for (size_t len = 0; len < bytes.len; len++) {
            struct heard heard = {.pauses = false};
            struct http1_response response;
            buf_init(&heard.text, KIB);
            http1_response_init(&response, samples[i].no_body, &events, &heard);
            if (feed(&response, str_head(bytes, len)) == HTTP1_MORE)
                assert_int_equal(http1_response_finish(&response), HTTP1_BAD);
            else
                fail_msg("%s: whole after %zu", samples[i].name, len);
            http1_response_done(&response);
            buf_done(&heard.text);
        }
    }
}

static void what_follows_the_end_is_not_used(void **state) {
    (void)state;
    struct heard heard = {.pauses = false};
    struct http1_response response;
    size_t used;
    buf_init(&heard.text, KIB);
    http1_response_init(&response, false, &events, &heard);
    struct str bytes = STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n");
    assert_int_equal(http1_response_feed(&response, bytes, &used), HTTP1_END);
    assert_int_equal(used, bytes.len - strlen("HTTP/1.1 200 OK\r\n"));
    http1_response_done(&response);
    buf_done(&heard.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_response_reads_the_same_however_it_is_cut),
        cmocka_unit_test(no_truncated_response_is_whole),
        cmocka_unit_test(what_follows_the_end_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
