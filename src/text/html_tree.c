#include "text/html_tree.h"

#include "base/arena.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdlib.h>

#define TREE_MAX_BYTES (48 * MIB)

/* Allocations between two calls of go_on. */
#define ALLOCATIONS_EACH 64

struct html_tree {
    struct arena *arena;
    GumboOutput *output;
    html_go_on_fn *go_on;
    void *ctx;
    size_t allocations;
    bool stopped;
    jmp_buf out; /* gumbo has no way to stop; this jump leaves it */
};

/* Everything that gumbo has allocated before a jump is in the arena. */
static void *allocate(void *ctx, size_t size) {
    struct html_tree *tree = ctx;
    if (tree->go_on && ++tree->allocations % ALLOCATIONS_EACH == 0) {
        tree->stopped = !tree->go_on(tree->ctx);
        if (tree->stopped) longjmp(tree->out, 1);
    }
    void *at = arena_alloc(tree->arena, size);
    if (!at) longjmp(tree->out, 1);
    return at;
}

static void leave_it(void *ctx, void *at) {
    (void)ctx;
    (void)at;
}

/* False: parsing was stopped by the jump. */
static bool parse(struct html_tree *tree, struct str text) {
    GumboOptions options = kGumboDefaultOptions;
    options.allocator = allocate;
    options.deallocator = leave_it;
    options.userdata = tree;
    options.max_errors = 0;
    if (setjmp(tree->out) != 0) return false;
    tree->output = gumbo_parse_with_options(&options, text.len ? text.at : "", text.len);
    return true;
}

bool html_tree_parse(struct str text, html_go_on_fn *go_on, void *ctx, struct html_tree **ret,
                     struct err *e) {
    struct html_tree *tree = MEM_NEW(struct html_tree);
    tree->arena = arena_new(TREE_MAX_BYTES);
    tree->go_on = go_on;
    tree->ctx = ctx;
    if (parse(tree, text)) {
        *ret = tree;
        return true;
    }
    bool stopped = tree->stopped;
    html_tree_free(tree);
    if (stopped) return err_set(e, ERR_CANCELLED, "the page took too long to read");
    return err_set(e, ERR_TOO_LARGE, "the page is nested without reason");
}

void html_tree_free(struct html_tree *tree) {
    if (!tree) return;
    arena_free(tree->arena);
    free(tree);
}

const GumboNode *html_tree_root(const struct html_tree *tree) {
    return tree->output->root;
}

/* ---- Walking ---- */

void html_walk_init(struct html_walk *walk, const GumboNode *root) {
    walk->open = 0;
    walk->last = (struct html_step){.node = root};
}

static bool has_children(const GumboNode *node) {
    return node->type == GUMBO_NODE_ELEMENT || node->type == GUMBO_NODE_TEMPLATE;
}

static bool html_tree_step(struct html_walk *walk, const GumboNode *node, bool leaving,
                           struct html_step *ret) {
    walk->last = (struct html_step){.node = node, .leaving = leaving, .depth = walk->open};
    *ret = walk->last;
    return true;
}

bool html_walk_next(struct html_walk *walk, struct html_step *ret) {
    if (walk->open == 0) { /* at the beginning or the end */
        if (!walk->last.node || walk->last.leaving) return false;
        walk->stack[walk->open].node = walk->last.node;
        walk->stack[walk->open].next = 0;
        html_tree_step(walk, walk->last.node, false, ret);
        walk->open++;
        return true;
    }
    const GumboNode *parent = walk->stack[walk->open - 1].node;
    const GumboVector *children = &parent->v.element.children;
    unsigned next = walk->stack[walk->open - 1].next;
    if (!has_children(parent) || next >= children->length) {
        walk->open--;
        return html_tree_step(walk, parent, true, ret);
    }
    walk->stack[walk->open - 1].next++;
    const GumboNode *child = children->data[next];
    html_tree_step(walk, child, false, ret);
    if (has_children(child) && walk->open < HTML_DEPTH_MAX) {
        walk->stack[walk->open].node = child;
        walk->stack[walk->open].next = 0;
        walk->open++;
    }
    return true;
}

void html_walk_skip(struct html_walk *walk) {
    bool opened = walk->open > 0 && walk->stack[walk->open - 1].node == walk->last.node;
    if (opened && !walk->last.leaving) walk->open--;
    if (walk->open == 0) walk->last.leaving = true; /* the root itself was skipped */
}

GumboTag html_tag(const GumboNode *node) {
    return has_children(node) ? node->v.element.tag : GUMBO_TAG_UNKNOWN;
}

struct str html_attribute(const GumboNode *node, const char *name) {
    if (!has_children(node)) return (struct str){NULL, 0};
    const GumboAttribute *found = gumbo_get_attribute(&node->v.element.attributes, name);
    return found ? str_from(found->value) : (struct str){NULL, 0};
}

struct str html_characters(const GumboNode *node) {
    bool characters = node->type == GUMBO_NODE_TEXT || node->type == GUMBO_NODE_WHITESPACE ||
                      node->type == GUMBO_NODE_CDATA;
    return characters ? str_from(node->v.text.text) : STR_EMPTY;
}
