/* html: convert a web page to text for a model.
 *
 *     Title
 *
 *     # Heading
 *
 *     A paragraph with a link (https://example.org/).
 *
 *     - item
 *       1. item of the list inside
 *
 *     cell | cell
 *
 * Scripts, styles, navigation, headers and footers, forms and hidden elements are left out. The
 * page's <main>, or its only <article>, is preferred if it holds enough text. If nothing else
 * is left, navigation and the like are included.
 *
 * Threads  any. Parsing a page takes long: do not call it on a loop.
 */
#ifndef WEIR_TEXT_HTML_H
#define WEIR_TEXT_HTML_H

#include "base/buf.h"
#include "text/html_tree.h"

struct html_options {
    struct str url;       /* of the page, to complete links that begin with '/'; may be empty */
    html_go_on_fn *go_on; /* NULL: no time limit */
    void *ctx;
};

/* Append the text of `page`, which is UTF-8. At the limit of `out` it stops.
 * errors  ERR_TOO_LARGE, ERR_CANCELLED as html_tree_parse() */
MUST_CHECK bool html_text(struct str page, const struct html_options *options, struct buf *out,
                          struct err *e);

#endif
