/* image: a picture that a caller sends, checked and written as a part of a message.
 *
 * Memory   borrows what it is given; writes to the caller's writer.
 * Threads  none; values only.
 * Source   conversation/import.h, provider/parts.h; RFC 2397 for data: URLs.
 */
#ifndef WEIR_CONVERSATION_IMAGE_H
#define WEIR_CONVERSATION_IMAGE_H

#include "base/err.h"
#include "wire/json.h"

/* Write the part for a picture at an https: or http: URL, or in a data: URL. `detail`: how
 * closely to look, or empty.
 * errors  ERR_INVALID_ARGUMENT; nothing is written */
MUST_CHECK bool image_put_url(struct json_writer *writer, struct str url, struct str detail,
                              struct err *e);

/* The same for its bytes in base64. */
MUST_CHECK bool image_put_base64(struct json_writer *writer, struct str media_type,
                                 struct str data, struct str detail, struct err *e);

/* Whether this is the media type of a picture, well-formed: "image/png". */
bool image_is_type(struct str media_type);

#endif
