/* parts: read message content beyond plain text, for every dialect.
 *
 * If the content of a struct message is more than text, `parts` holds it as one JSON array. Its
 * elements are what conversation/import.h writes:
 *
 *     {"type":"text","text":"..."}
 *     {"type":"image","media_type":"image/png","data":"<base64>"}
 *     {"type":"image","url":"https://..."}
 *
 * An image may have a member "detail": the level of detail at which the model processes it.
 *
 * Memory   a part borrows from the array it was read from.
 * Threads  none; values only.
 */
#ifndef WEIR_PROVIDER_PARTS_H
#define WEIR_PROVIDER_PARTS_H

#include "wire/json.h"

enum part_kind { PART_TEXT, PART_IMAGE };

/* Absent members are JSON_NONE; present ones are strings. */
struct part {
    enum part_kind kind;
    struct json text;             /* PART_TEXT */
    struct json media_type, data; /* PART_IMAGE: its bytes in base64, or ... */
    struct json url;              /* ... its address */
    struct json detail;           /* PART_IMAGE: "low", "high", "auto", or absent */
};

/* Whether this is an array of at least one part, and nothing else.
 * errors  ERR_INVALID_ARGUMENT with the index of the first element that is not a part */
MUST_CHECK bool parts_check(struct json parts, struct err *e);

/* Read parts that were checked when they were written. */
struct json_reader parts_enter(struct str parts);
bool parts_next(struct json_reader *reader, struct part *ret);

/* Write the key and the image as one URL: its own, or a data URL with its bytes. */
void parts_put_url(struct json_writer *writer, const char *key, const struct part *part);

#endif
