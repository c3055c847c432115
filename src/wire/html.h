/* html: what a page says, as text that a model reads.
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
 * Scripts, styles, navigation, headers and footers, forms and what is hidden are left out. The
 * page's <main>, or its only <article>, is preferred when it holds enough text; a page that
 * has nothing but furniture is given with it.
 *
 * Threads  none; whoever has it. Reading a page is work: not on a loop.
 */
#ifndef WEIR_WIRE_HTML_H
#define WEIR_WIRE_HTML_H

#include "base/buf.h"
#include "wire/html_tree.h"

struct html_options {
    struct str url;       /* of the page, to complete links that begin with '/'; may be empty */
    html_go_on_fn *go_on; /* NULL: it may take as long as it takes */
    void *ctx;
};

/* Append the text of `page`, which is UTF-8. At the limit of `out` it stops.
 * errors  ERR_TOO_LARGE, ERR_CANCELLED as html_tree_parse() */
MUST_CHECK bool html_text(struct str page, const struct html_options *options, struct buf *out,
                          struct err *e);

#endif
