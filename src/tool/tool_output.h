/* tool_output: the output of a command or a server as the result of a tool call.
 *
 * The model reads {"output": ...}: JSON if the output is JSON, else text without the line
 * breaks at its end. Invalid UTF-8 becomes U+FFFD.
 *
 * Secrets that were sent with the call are replaced by "***" before that, however they are
 * spelled (tool/secret_match.h).
 *
 * Memory   none; secrets are borrowed.
 * Threads  any; values only. */
#ifndef WEIR_TOOL_TOOL_OUTPUT_H
#define WEIR_TOOL_TOOL_OUTPUT_H

#include "base/buf.h"
#include "base/err.h"

enum tool_output_form {
    TOOL_OUTPUT_AUTO, /* JSON if it is valid JSON, else text */
    TOOL_OUTPUT_JSON, /* anything but JSON is an error */
    TOOL_OUTPUT_TEXT,
};

/* Append the result, one JSON object. pick: if the output is a JSON object with this member,
 * keep only the member; empty: keep all of it.
 * errors  ERR_EFFECT_UNKNOWN not JSON, or too long: the call was made, and whether it did what was
 *         asked cannot be read */
MUST_CHECK bool tool_output_write(struct str bytes, enum tool_output_form form, struct str pick,
                                  struct buf *out, struct err *e);

/* Shorter secrets are not hidden: they would match too much else. */
#define TOOL_SECRET_MIN_BYTES 6

/* A named value that templates may use. It is never shown. */
struct tool_secret {
    struct str name, value;
};

/* Append `text` without the secrets. */
void tool_output_hide(struct str text, const struct tool_secret *secrets, size_t count,
                      struct buf *out);

#endif
