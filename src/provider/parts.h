/* parts: what a message holds besides plain text, as every dialect reads it.
 *
 * struct message has its content as one JSON array (`parts`) when it is more than text. Its
 * elements are what conversation/import.h says:
 *
 *     {"type":"text","text":"..."}
 *     {"type":"image","media_type":"image/png","data":"<base64>"}
 *     {"type":"image","url":"https://..."}
 *
 * An image may have a member "detail": how closely the model should look at it.
 *
 * Memory   a part borrows from the parts that it was read from.
 * Threads  none; values only.
 */
#ifndef WEIR_PROVIDER_PARTS_H
#define WEIR_PROVIDER_PARTS_H

#include "wire/json.h"

enum part_kind { PART_TEXT, PART_IMAGE };

/* What a part does not have is JSON_NONE; what it has is a string. */
struct part {
    enum part_kind kind;
    struct json text;             /* of PART_TEXT */
    struct json media_type, data; /* of PART_IMAGE: its bytes in base64, or ... */
    struct json url;              /* ... where it is */
    struct json detail;           /* of PART_IMAGE: "low", "high", "auto", or nothing */
};

/* Whether this is an array of parts, one at least.
 * errors  ERR_INVALID_ARGUMENT with the index of the first element that is none */
MUST_CHECK bool parts_check(struct json parts, struct err *e);

/* Read parts that were checked when they were written. */
struct json_reader parts_enter(struct str parts);
bool parts_next(struct json_reader *reader, struct part *ret);

/* Key and the picture as one URL: its own, or a data URL with its bytes. */
void parts_put_url(struct json_writer *writer, const char *key, const struct part *part);

#endif
