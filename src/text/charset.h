/* charset: convert text in other encodings to UTF-8.
 *
 * Names are the labels used by web pages (windows-1252, which iso-8859-1 also means, koi8-r,
 * shift_jis ...). Only names from a table reach libc's iconv. Invalid bytes become U+FFFD. If
 * the encoding is unknown, the text is treated as UTF-8.
 *
 * Threads  any.
 * Source   WHATWG Encoding, names and labels; HTML, "prescan a byte stream".
 */
#ifndef WEIR_TEXT_CHARSET_H
#define WEIR_TEXT_CHARSET_H

#include "base/buf.h"

/* The charset that a content type names: "text/html; charset=UTF-8". Empty: none. */
struct str charset_of_type(struct str content_type);

/* The charset that a page names in a <meta> within its first KiB. Empty: none. */
struct str charset_of_page(struct str page);

/* Append `bytes`, in the charset `name`, as UTF-8. A byte order mark overrides the name and is
 * dropped. Stops at the limit of `out`. */
void charset_append(struct buf *out, struct str name, struct str bytes);

#endif
