/* secret_match: find a secret in a text however it is spelled there.
 *
 * A server may repeat a secret as its library writes strings: `\/`, `\u0070`, `%2F`, or with more
 * backslashes in a JSON text that stands in a JSON string. Each character of the secret may have
 * another spelling. The text need not be JSON, nor whole.
 *
 * Memory   none; values only.
 * Threads  any.
 * Source   RFC 8259 7; RFC 3986 2.1. */
#ifndef WEIR_TOOL_SECRET_MATCH_H
#define WEIR_TOOL_SECRET_MATCH_H

#include "base/str.h"

/* How many bytes at the start of `text` spell `secret`, which is not empty; 0: they do not. */
size_t secret_match(struct str text, struct str secret);

#endif
