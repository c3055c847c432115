/* http_fake: other servers that answer what the test says.
 *
 * Defines the functions of client/http.h, so a test that is linked with it sees each request
 * and decides what its call hears. It is stricter than the real one: a head after the head, a
 * body before it, giving while paused or after the end is an assert; a request's body is looked
 * at until the end, and what ended or was cancelled is really gone, so a sanitizer sees who
 * kept it or let go too early. Cancelling from inside a callback is allowed.
 *
 * Memory   http_pool_free() wants no call out.
 * Threads  none.
 */
#ifndef WEIR_TEST_FAKE_HTTP_FAKE_H
#define WEIR_TEST_FAKE_HTTP_FAKE_H

#include "client/http.h"

/* Calls that are out, the oldest first; how many there ever were, and were cancelled. */
size_t fake_http_calls(const struct http_pool *pool);
size_t fake_http_calls_ever(const struct http_pool *pool);
size_t fake_http_cancels(const struct http_pool *pool);
struct http_call *fake_http_call(const struct http_pool *pool, size_t index);

/* What was asked: a copy with everything in it, valid as long as the call is out. A header by
 * its name, without case; empty when it was not sent. */
const struct http_request *fake_http_request(const struct http_call *call);
struct str fake_http_header(const struct http_call *call, const char *name);
struct loop *fake_http_loop(const struct http_call *call);
bool fake_http_paused(const struct http_call *call);

/* What the call hears. False: it was cancelled from inside, it is gone. */
bool fake_http_head(struct http_call *call, unsigned status, const char *content_type);
bool fake_http_head_retry(struct http_call *call, unsigned status, const char *content_type,
                          int64_t retry_after_ms);
bool fake_http_head_session(struct http_call *call, unsigned status, const char *content_type,
                            const char *session);
/* The head of a stored object, or of what says why there is none. */
bool fake_http_head_object(struct http_call *call, const struct http_head *head);
bool fake_http_body(struct http_call *call, struct str bytes);

/* Its end: all of it came, or it failed at a stage. A call that is paused can only fail. */
void fake_http_end(struct http_call *call);
void fake_http_fail(struct http_call *call, enum err_code code, enum http_stage stage);

/* Whether http_pool_need() was asked for; from now on it answers with `code`. */
bool fake_http_needed(const struct http_pool *pool);
void fake_http_need_fails(struct http_pool *pool, enum err_code code);

#endif
