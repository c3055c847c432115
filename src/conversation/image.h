/* image: check a caller's picture and write it as a part of a message.
 *
 * Memory   borrows what it is given; writes to the caller's writer.
 * Threads  none; values only.
 * Source   conversation/import.h, provider/parts.h; RFC 2397 for data: URLs.
 */
#ifndef WEIR_CONVERSATION_IMAGE_H
#define WEIR_CONVERSATION_IMAGE_H

#include "base/err.h"
#include "wire/json.h"

/* Write the part for a picture at an https: or http: URL, or in a data: URL. `detail`: the
 * detail level for the model, or empty.
 * errors  ERR_INVALID_ARGUMENT; nothing is written */
MUST_CHECK bool image_put_url(struct json_writer *writer, struct str url, struct str detail,
                              struct err *e);

/* The same for a picture given as base64. */
MUST_CHECK bool image_put_base64(struct json_writer *writer, struct str media_type,
                                 struct str data, struct str detail, struct err *e);

/* Whether this is a well-formed media type of a picture: "image/png". */
bool image_is_type(struct str media_type);

#endif
