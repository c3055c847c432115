/* html_tree: a page as a tree of elements, within bounds.
 *
 * gumbo parses like a browser, and the tree of a hostile page can be a thousand times its size:
 * formatting that is open in one paragraph is reopened in each later one. So all memory comes
 * from one arena with a limit. It also avoids freeing nodes one by one, which gumbo does by
 * recursion as deep as the page nests. Each tag may look at all open ones, so the time grows
 * with the square of the depth; a callback is therefore asked regularly whether to continue.
 *
 * A walk traverses the tree with its own stack. It enters and leaves each element, and skips
 * nodes deeper than HTML_DEPTH_MAX.
 *
 * Memory   the tree borrows the text; free it with html_tree_free().
 * Threads  any, one at a time. Parsing takes long: do not call it on a loop.
 */
#ifndef WEIR_TEXT_HTML_TREE_H
#define WEIR_TEXT_HTML_TREE_H

#include "base/err.h"

#include <gumbo.h>

#define HTML_DEPTH_MAX 512

struct html_tree;

/* Whether to continue; called every few microseconds to milliseconds. NULL: always. */
typedef bool html_go_on_fn(void *ctx);

/* `text` is UTF-8.
 * errors  ERR_TOO_LARGE the tree exceeds its memory limit; ERR_CANCELLED go_on said no */
MUST_CHECK bool html_tree_parse(struct str text, html_go_on_fn *go_on, void *ctx,
                                struct html_tree **ret, struct err *e);
void html_tree_free(struct html_tree *tree); /* accepts NULL */

const GumboNode *html_tree_root(const struct html_tree *tree); /* <html> */

struct html_step {
    const GumboNode *node;
    bool leaving; /* an element that was entered and not skipped */
    size_t depth; /* 0 for where the walk began */
};

struct html_walk {
    struct html_step last;
    size_t open; /* elements on the stack */
    struct {
        const GumboNode *node;
        unsigned next; /* child */
    } stack[HTML_DEPTH_MAX];
};

void html_walk_init(struct html_walk *walk, const GumboNode *root);

/* False at the end. */
bool html_walk_next(struct html_walk *walk, struct html_step *ret);

/* Skip the children of the element just entered. There is no step that leaves it. */
void html_walk_skip(struct html_walk *walk);

/* GUMBO_TAG_UNKNOWN for anything that is not an element. */
GumboTag html_tag(const GumboNode *node);

/* The value of an attribute; at is NULL when it is not there. */
struct str html_attribute(const GumboNode *node, const char *name);

/* The characters of a text node; empty for all others. */
struct str html_characters(const GumboNode *node);

#endif
