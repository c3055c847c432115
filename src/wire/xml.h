/* xml: read the small XML documents that object storage answers with.
 *
 * Reading takes two steps. xml_read() checks the whole text. The later functions work on accepted
 * text, so they cannot fail on it:
 *
 *     struct str error, code;
 *     if (!xml_read(text, &error, e)) return false;          the content of the root element
 *     if (xml_find(error, STR("Code"), &code)) ...           of its first child of that name
 *
 * It knows elements, attributes (which are skipped), text with the five entities and numbers,
 * CDATA, comments and instructions. A document type is refused, because entities of its own
 * could make the text grow.
 *
 * Memory   results are views of the text.
 * Threads  none; values only.
 * Source   XML 1.0 (fifth edition), 2 and 4.
 */
#ifndef WEIR_WIRE_XML_H
#define WEIR_WIRE_XML_H

#include "base/buf.h"
#include "base/err.h"

#define XML_DEPTH_MAX 16

/* Check a document. *ret is what is inside its root element.
 * errors  ERR_MALFORMED what is wrong, and at which byte */
MUST_CHECK bool xml_read(struct str text, struct str *ret, struct err *e);

/* Whether the root element of an accepted document has this name. */
bool xml_is(struct str text, struct str name);

/* The next child element in accepted content; false at the end. */
bool xml_next(struct str *rest, struct str *ret_name, struct str *ret_content);

/* The content of the first child of that name; false: there is none. */
bool xml_find(struct str content, struct str name, struct str *ret);

/* Append the text of content, decoded; children are left out. False at the buffer's limit. */
bool xml_text(struct str content, struct buf *out);

#endif
