/* body: what the bodies that dialects write have in common.
 *
 * Memory   appends to the caller's buffer or writer; borrows the rest.
 * Threads  none.
 */
#ifndef WEIR_PROVIDER_BODY_H
#define WEIR_PROVIDER_BODY_H

#include "provider/dialect.h"

/* The longest call id that Chat Completions takes, and that Responses takes. */
#define CALL_ID_MAX_BYTES 40
#define CALL_ID_LONG_MAX_BYTES 64

/* Key and a JSON Schema, without the space between its parts; a tool without one takes an
 * object without members. `what` names it in the error.
 * errors  ERR_INVALID_ARGUMENT it is no JSON object */
MUST_CHECK bool body_schema(struct json_writer *writer, const char *key, struct str schema,
                            struct str what, struct err *e);

/* Key and number, unless it is below 0: not set. */
void body_double(struct json_writer *writer, const char *key, double number);

/* Key and a call id of at most max_bytes; a longer one becomes "tc_" and 37 digits of its
 * SHA-256, the same for the call and for its result. */
void body_call_id(struct json_writer *writer, const char *key, struct str call_id,
                  size_t max_bytes);

/* Append base_url, the path, and the query if there is one. */
void body_url(const struct dialect_settings *settings, const char *path, struct buf *out);

/* The model that is asked: the request's, or the configured one. */
struct str body_model(const struct dialect_settings *settings,
                      const struct provider_request *request);

/* Whether base_url names this host; ".example.com": any host of that domain. */
bool body_host_is(const struct dialect_settings *settings, const char *host);

/* Whether all of a body is there.
 * errors  ERR_TOO_LARGE the buffer's limit was reached */
MUST_CHECK bool body_complete(const struct buf *out, struct err *e);

#endif
