/* charset: text of other alphabets' encodings as UTF-8.
 *
 * Names are those that web pages use (windows-1252, which also answers to iso-8859-1,
 * koi8-r, shift_jis ...). Only names of a table reach libc's iconv. What is not text in an
 * encoding becomes U+FFFD, and so does all that is not UTF-8 where no encoding is known.
 *
 * Threads  any.
 * Source   WHATWG Encoding, names and labels; HTML, "prescan a byte stream".
 */
#ifndef WEIR_WIRE_CHARSET_H
#define WEIR_WIRE_CHARSET_H

#include "base/buf.h"

/* The charset that a content type names: "text/html; charset=UTF-8". Empty: none. */
struct str charset_of_type(struct str content_type);

/* The one that a page names in a <meta> of its first KiB. Empty: none. */
struct str charset_of_page(struct str page);

/* Append `bytes`, in the charset `name`, as UTF-8; a byte order mark decides against the name
 * and is dropped. Stops at the limit of `out`. */
void charset_append(struct buf *out, struct str name, struct str bytes);

#endif
