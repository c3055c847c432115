/* asking: requests for the dialects' tests, and the bodies expected for them.
 *
 * Expected bodies are written with ' in place of ", because they are JSON in C strings.
 */
#ifndef WEIR_TEST_PROVIDER_ASKING_H
#define WEIR_TEST_PROVIDER_ASKING_H

#include "helper/assert_str.h"
#include "helper/messages.h"

#include "provider/dialect.h"

/* A conversation that an agent begins and ends, with a blank message at each turn. */
static const struct message agent_at_both_ends[] = {
    M_SAID("ann", "I begin"), M_USER(" \n"), M_SAID("ann", "I end"), M_SAID("ann", "  ")};

#define BODY_MAX_BYTES (64 * KIB)

/* A request of agent "ann"; members of struct provider_request may follow the messages. */
#define ASKING(list, ...)                                                                      \
    (&(const struct provider_request){.agent = STR("ann"),                                     \
                                      .messages = (list),                                      \
                                      .message_count = ARRAY_LEN(list),                        \
                                      __VA_ARGS__})

static inline void append_json(struct buf *out, const char *text) {
    for (; *text; text++) buf_append_byte(out, *text == '\'' ? '"' : *text);
    buf_append_byte(out, '\0');
    out->len--;
}

static inline bool write_body_of(const struct dialect *dialect,
                                 const struct provider_request *request, struct buf *out,
                                 struct err *e) {
    const struct dialect_settings settings = {.base_url = str_from(dialect->base_url)};
    return dialect->body(&settings, request, out, e);
}

/* The whole body; it must be JSON, and refused at every smaller limit. */
static inline void assert_body(const struct dialect *dialect,
                               const struct provider_request *request, const char *expected) {
    struct buf body, json;
    struct err e;
    struct json read;
    buf_init(&body, BODY_MAX_BYTES);
    buf_init(&json, BODY_MAX_BYTES);
    append_json(&json, expected);
    assert_true(write_body_of(dialect, request, &body, &e));
    assert_str(buf_str(&body), json.at);
    assert_true(json_read(buf_str(&body), &read, &e));
    for (size_t limit = 0; limit < body.len; limit++) {
        struct buf small;
        buf_init(&small, limit);
        assert_false(write_body_of(dialect, request, &small, &e));
        assert_int_equal(e.code, ERR_TOO_LARGE);
        buf_done(&small);
    }
    buf_done(&body);
    buf_done(&json);
}

/* The member `key` of the body alone; "" when there is none. */
static inline void assert_member(const struct dialect *dialect,
                                 const struct provider_request *request, const char *key,
                                 const char *expected) {
    struct buf body, json;
    struct err e;
    struct json read, member;
    buf_init(&body, BODY_MAX_BYTES);
    buf_init(&json, BODY_MAX_BYTES);
    append_json(&json, expected);
    assert_true(write_body_of(dialect, request, &body, &e));
    assert_true(json_read(buf_str(&body), &read, &e));
    member = json_find(read, str_from(key));
    assert_str(member.kind == JSON_NONE ? STR_EMPTY : member.raw, json.at);
    buf_done(&body);
    buf_done(&json);
}

static inline void assert_refused(const struct dialect *dialect,
                                  const struct provider_request *request,
                                  const char *expected) {
    struct buf body;
    struct err e;
    buf_init(&body, BODY_MAX_BYTES);
    assert_false(write_body_of(dialect, request, &body, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_str(err_text(&e), expected);
    buf_done(&body);
}

static inline void assert_url(const struct dialect *dialect, const char *base,
                              const char *query, const char *model, const char *expected) {
    struct buf url;
    buf_init(&url, KIB);
    const struct dialect_settings settings = {.base_url = str_from(base),
                                              .query = str_from(query)};
    const struct provider_request request = {.model = str_from(model)};
    dialect->url(&settings, &request, &url);
    assert_str(buf_str(&url), expected);
    buf_done(&url);
}

#endif
