/* html_tree: a page as a tree of elements, within bounds.
 *
 * gumbo parses as browsers do, and what a browser makes of a hostile page can be a thousand
 * times the page: formatting that is open in one paragraph opens again in each that follows.
 * So all its memory comes from one arena with a limit, which also means that nothing of the
 * tree is ever freed one by one (gumbo would do so by recursion, as deep as the page nests).
 * And since each tag may look at all that are open, the time grows with the square of the
 * depth: somebody with a clock is asked again and again whether to go on.
 *
 * A walk goes through the tree with a stack of its own: it enters and leaves each element, and
 * passes over what lies deeper than HTML_DEPTH_MAX.
 *
 * Memory   the tree borrows the text; html_tree_free().
 * Threads  none; whoever has it. Parsing is work: not on a loop.
 */
#ifndef WEIR_WIRE_HTML_TREE_H
#define WEIR_WIRE_HTML_TREE_H

#include "base/err.h"

#include <gumbo.h>

#define HTML_DEPTH_MAX 512

struct html_tree;

/* Whether the work may go on; asked every few microseconds to milliseconds. NULL: it may. */
typedef bool html_go_on_fn(void *ctx);

/* `text` is UTF-8.
 * errors  ERR_TOO_LARGE the tree would not fit its memory; ERR_CANCELLED it may not go on */
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

/* Pass over the children of the element that was just entered; it is not left either. */
void html_walk_skip(struct html_walk *walk);

/* GUMBO_TAG_UNKNOWN for anything that is no element. */
GumboTag html_tag(const GumboNode *node);

/* The value of an attribute; at is NULL when it is not there. */
struct str html_attribute(const GumboNode *node, const char *name);

/* The characters of a text node; empty for all others. */
struct str html_characters(const GumboNode *node);

#endif
