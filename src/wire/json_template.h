/* json_template: read a text that repeats an earlier one but for some of its values.
 *
 * The chunks of a streamed reply are the same bytes again and again, except for a word and perhaps
 * a number. One chunk is read like any JSON, and kept as a template together with the values that
 * may differ. The next one is compared with it:
 *
 *     kept   {"id":"c-1","choices":[{"delta":{"content":"Hel"},"finish_reason":null}]}
 *     next   {"id":"c-1","choices":[{"delta":{"content":"lo"},"finish_reason":null}]}
 *             |------------- same bytes --------------|    |-------- same bytes ---|
 *                                                string, checked
 *
 * A text that matches is JSON with the same members, because a valid string stands where one
 * stood, and a number where one stood: nothing else of it needs to be read or checked. Any other
 * text is to be read in the general way, which also knows what is wrong with it.
 *
 * Memory   owns a copy of the template, at most JSON_TEMPLATE_MAX_BYTES. All zeroes is empty.
 * Lends    values of the text that was matched.
 * Threads  none.
 */
#ifndef WEIR_WIRE_JSON_TEMPLATE_H
#define WEIR_WIRE_JSON_TEMPLATE_H

#include "wire/json.h"

#define JSON_TEMPLATE_VALUES_MAX 6
#define JSON_TEMPLATE_MAX_BYTES (2 * KIB) /* a longer text is not kept */

/* A value that may differ. */
struct json_gap {
    uint16_t begin, end; /* in the template */
    uint8_t value;       /* its index among the values that were given */
    uint8_t kind;        /* JSON_STRING or JSON_NUMBER */
};

struct json_template {
    char *at;
    uint16_t len, room;
    uint8_t gap_count; /* 0: there is no template */
    struct json_gap gaps[JSON_TEMPLATE_VALUES_MAX];
};

/* Keep the accepted `text`, an object or an array, instead of the template so far. `values` (at
 * most JSON_TEMPLATE_VALUES_MAX) are parts of it, in any order: those that are strings or numbers
 * may differ. With none of these, or with too long a text, nothing is kept. */
void json_template_keep(struct json_template *template, struct str text,
                        const struct json *values, size_t count);

/* Whether `text` is like the template. ret[i] then becomes its value in place of values[i], if that
 * one may differ; the rest of `ret` stays as it is. */
MUST_CHECK bool json_template_match(const struct json_template *template, struct str text,
                                    struct json *ret);

/* Nothing matches any more; the memory stays for the next template. */
void json_template_forget(struct json_template *template);

void json_template_done(struct json_template *template);

#endif
