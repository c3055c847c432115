#include "text/html.h"

#include "base/mem.h"

#include <stdlib.h>

/* A link's address is shown after its text up to this length. */
#define LINK_MAX_BYTES 100
#define TITLE_MAX_BYTES 512

/* --- running text with paragraphs, from pieces with arbitrary white space --------------------
 *
 * Any white space becomes one blank, and none is left at the ends of lines. The number of line
 * breaks between two pieces is the largest number requested between them. */

#define FLOW_PREFIX_MAX_BYTES 64

struct flow {
    struct buf *out;
    unsigned breaks;                    /* line ends before the next text */
    bool blank;                         /* a blank before the next text */
    char prefix[FLOW_PREFIX_MAX_BYTES]; /* written before the next text, after its breaks */
    size_t prefix_len;
};

static struct flow flow_of(struct buf *out) {
    return (struct flow){.out = out};
}

/* At least `count` line breaks before the next text; no effect right after a prefix. */
static void flow_break(struct flow *flow, unsigned count) {
    if (flow->prefix_len) return;
    if (count > flow->breaks) flow->breaks = count;
    flow->blank = false;
}

static void flow_blank(struct flow *flow) {
    flow->blank = true;
}

/* "- ", "## ": only if text follows before the next prefix or flow_no_prefix(). */
static void flow_prefix(struct flow *flow, struct str prefix) {
    prefix = str_head(prefix, FLOW_PREFIX_MAX_BYTES);
    memcpy(flow->prefix, prefix.at, prefix.len);
    flow->prefix_len = prefix.len;
}

static void flow_no_prefix(struct flow *flow) {
    flow->prefix_len = 0;
}

/* Write the pending line breaks, blank and prefix before the next text. */
static void begin_text(struct flow *flow) {
    struct str so_far = buf_str(flow->out);
    size_t there = 0;
    while (there < so_far.len && so_far.at[so_far.len - 1 - there] == '\n') there++;
    bool line_start = so_far.len == there;
    if (!line_start) {
        for (; there < flow->breaks; there++) buf_append_byte(flow->out, '\n');
    }
    if (flow->blank && !line_start && there == 0 && !flow->prefix_len)
        buf_append_byte(flow->out, ' ');
    buf_append(flow->out, str_of(flow->prefix, flow->prefix_len));
    flow->breaks = 0;
    flow->blank = false;
    flow->prefix_len = 0;
}

/* Length of the white space at the start: ASCII's and the no-break space. */
static size_t space_len(struct str text) {
    size_t len = 0;
    while (len < text.len) {
        struct str rest = str_skip(text, len);
        size_t one = strchr(" \t\n\r\f\v", rest.at[0]) && rest.at[0] ? 1 : 0;
        if (str_starts(rest, STR("\xC2\xA0"))) one = 2;
        if (one == 0) break;
        len += one;
    }
    return len;
}

static size_t word_len(struct str text) {
    size_t len = 0;
    while (len < text.len && space_len(str_of(text.at + len, text.len - len > 1 ? 2 : 1)) == 0)
        len++;
    return len;
}

static void flow_text(struct flow *flow, struct str text) {
    while (text.len && buf_ok(flow->out)) {
        size_t space = space_len(text);
        if (space) flow->blank = true;
        text = str_skip(text, space);
        if (text.len == 0) return;
        size_t word = word_len(text);
        begin_text(flow);
        buf_append(flow->out, str_head(text, word));
        text = str_skip(text, word);
    }
}

/* Space and line ends as they are. */
static void flow_raw(struct flow *flow, struct str text) {
    if (text.len == 0) return;
    begin_text(flow);
    buf_append(flow->out, text);
}

/* --- elements ----------------------------------------------------------------------------- */

enum role {
    INLINE, /* every element not listed below */
    DROP,
    FURNITURE, /* around the content: navigation, forms */
    PAGE_EDGE, /* furniture, unless it belongs to an article */
    BLOCK,     /* on lines of its own */
    PARAGRAPH, /* with an empty line around it */
    HEADING,
    ARTICLE,
    BULLETS,
    NUMBERS,
    ITEM,
    VERBATIM,
    TABLE,
    ROW,
    CELL,
    LINE_END,
    LINK,
};

static const struct {
    enum role role;
    unsigned level; /* of a heading */
} elements[GUMBO_TAG_LAST] = {
    /* clang-format off */
    [GUMBO_TAG_SCRIPT]     = {DROP, 0},      [GUMBO_TAG_STYLE]      = {DROP, 0},
    [GUMBO_TAG_NOSCRIPT]   = {DROP, 0},      [GUMBO_TAG_TEMPLATE]   = {DROP, 0},
    [GUMBO_TAG_HEAD]       = {DROP, 0},      [GUMBO_TAG_TITLE]      = {DROP, 0},
    [GUMBO_TAG_SVG]        = {DROP, 0},      [GUMBO_TAG_IFRAME]     = {DROP, 0},
    [GUMBO_TAG_OBJECT]     = {DROP, 0},      [GUMBO_TAG_CANVAS]     = {DROP, 0},
    [GUMBO_TAG_AUDIO]      = {DROP, 0},      [GUMBO_TAG_VIDEO]      = {DROP, 0},
    [GUMBO_TAG_SELECT]     = {DROP, 0},      [GUMBO_TAG_TEXTAREA]   = {DROP, 0},
    [GUMBO_TAG_BUTTON]     = {DROP, 0},      [GUMBO_TAG_DATALIST]   = {DROP, 0},
    [GUMBO_TAG_NAV]        = {FURNITURE, 0}, [GUMBO_TAG_ASIDE]      = {FURNITURE, 0},
    [GUMBO_TAG_FORM]       = {FURNITURE, 0}, [GUMBO_TAG_MENU]       = {FURNITURE, 0},
    [GUMBO_TAG_HEADER]     = {PAGE_EDGE, 0}, [GUMBO_TAG_FOOTER]     = {PAGE_EDGE, 0},
    [GUMBO_TAG_DIV]        = {BLOCK, 0},     [GUMBO_TAG_SECTION]    = {BLOCK, 0},
    [GUMBO_TAG_ADDRESS]    = {BLOCK, 0},     [GUMBO_TAG_CENTER]     = {BLOCK, 0},
    [GUMBO_TAG_DT]         = {BLOCK, 0},     [GUMBO_TAG_DD]         = {BLOCK, 0},
    [GUMBO_TAG_FIGCAPTION] = {BLOCK, 0},     [GUMBO_TAG_CAPTION]    = {BLOCK, 0},
    [GUMBO_TAG_SUMMARY]    = {BLOCK, 0},     [GUMBO_TAG_FIELDSET]   = {BLOCK, 0},
    [GUMBO_TAG_P]          = {PARAGRAPH, 0}, [GUMBO_TAG_BLOCKQUOTE] = {PARAGRAPH, 0},
    [GUMBO_TAG_FIGURE]     = {PARAGRAPH, 0}, [GUMBO_TAG_DL]         = {PARAGRAPH, 0},
    [GUMBO_TAG_DETAILS]    = {PARAGRAPH, 0}, [GUMBO_TAG_HR]         = {PARAGRAPH, 0},
    [GUMBO_TAG_H1]         = {HEADING, 1},   [GUMBO_TAG_H2]         = {HEADING, 2},
    [GUMBO_TAG_H3]         = {HEADING, 3},   [GUMBO_TAG_H4]         = {HEADING, 4},
    [GUMBO_TAG_H5]         = {HEADING, 5},   [GUMBO_TAG_H6]         = {HEADING, 6},
    [GUMBO_TAG_MAIN]       = {ARTICLE, 0},   [GUMBO_TAG_ARTICLE]    = {ARTICLE, 0},
    [GUMBO_TAG_UL]         = {BULLETS, 0},   [GUMBO_TAG_OL]         = {NUMBERS, 0},
    [GUMBO_TAG_LI]         = {ITEM, 0},      [GUMBO_TAG_PRE]        = {VERBATIM, 0},
    [GUMBO_TAG_TABLE]      = {TABLE, 0},     [GUMBO_TAG_TR]         = {ROW, 0},
    [GUMBO_TAG_TD]         = {CELL, 0},      [GUMBO_TAG_TH]         = {CELL, 0},
    [GUMBO_TAG_BR]         = {LINE_END, 0},  [GUMBO_TAG_A]          = {LINK, 0},
    /* clang-format on */
};

/* State inside an element, initialised from its parent's. */
struct inside {
    bool article; /* within an <article> or <main> */
    bool verbatim;
    bool one_line;  /* in a cell: no line breaks */
    bool numbered;  /* the innermost list is numbered */
    unsigned lists; /* enclosing lists */
    unsigned count; /* items or cells so far in the innermost list or row */
    size_t text_at; /* where a link's text began */
};

struct page {
    struct flow flow;
    struct str url;
    bool with_furniture;
    struct html_walk walk;
    struct inside inside[HTML_DEPTH_MAX + 1];
};

/* ---- What is left out ---- */

static bool style_hides(struct str style) {
    static const struct str ways[] = {
        STR_INIT("display:none"),
        STR_INIT("display: none"),
        STR_INIT("visibility:hidden"),
        STR_INIT("visibility: hidden"),
    };
    for (size_t i = 0; style.len && i < ARRAY_LEN(ways); i++) {
        if (str_find_nocase(style, ways[i]) < style.len) return true;
    }
    return false;
}

static bool is_hidden(const GumboNode *node) {
    return html_attribute(node, "hidden").at ||
           str_equal_nocase(html_attribute(node, "aria-hidden"), STR("true")) ||
           style_hides(html_attribute(node, "style"));
}

static bool left_out(const struct page *page, const GumboNode *node, enum role role,
                     bool in_article) {
    if (role == DROP || is_hidden(node)) return true;
    if (page->with_furniture) return false;
    return role == FURNITURE || (role == PAGE_EDGE && !in_article);
}

/* ---- Elements ---- */

static void break_lines(struct page *page, const struct inside *inside, unsigned count) {
    if (inside->one_line) {
        flow_blank(&page->flow);
    } else {
        flow_break(&page->flow, count);
    }
}

static void begin_heading(struct page *page, unsigned level) {
    char prefix[8];
    size_t len = 0;
    while (len < level) prefix[len++] = '#';
    prefix[len++] = ' ';
    flow_prefix(&page->flow, str_of(prefix, len));
}

static void begin_item(struct page *page, struct inside *list) {
    char prefix[FLOW_PREFIX_MAX_BYTES];
    struct buf text;
    buf_init(&text, sizeof prefix);
    for (unsigned i = 1; i < list->lists; i++) buf_append(&text, STR("  "));
    list->count++;
    if (list->numbered) {
        buf_printf(&text, "%u. ", list->count);
    } else {
        buf_append(&text, STR("- "));
    }
    flow_prefix(&page->flow, buf_str(&text));
    buf_done(&text);
}

static void begin_cell(struct page *page, struct inside *row) {
    if (row->count++ == 0) return;
    flow_blank(&page->flow);
    flow_text(&page->flow, STR("|"));
    flow_blank(&page->flow);
}

/* `outer` is the parent's state, which counts its items; `inside` is the element's own. */
static void html_enter(struct page *page, const GumboNode *node, struct inside *outer,
                       struct inside *inside) {
    GumboTag tag = html_tag(node);
    switch (elements[tag].role) {
    case BLOCK:
    case PAGE_EDGE:
    case FURNITURE: break_lines(page, outer, 1); break;
    case PARAGRAPH: break_lines(page, outer, 2); break;
    case LINE_END: break_lines(page, outer, 1); break;
    case ARTICLE:
        break_lines(page, outer, 2);
        inside->article = true;
        break;
    case HEADING:
        break_lines(page, outer, 2);
        if (!outer->one_line) begin_heading(page, elements[tag].level);
        break;
    case BULLETS:
    case NUMBERS:
        break_lines(page, outer, outer->lists ? 1 : 2);
        inside->numbered = elements[tag].role == NUMBERS;
        inside->lists++;
        inside->count = 0;
        break;
    case ITEM:
        break_lines(page, outer, 1);
        if (!outer->one_line) begin_item(page, outer);
        break;
    case VERBATIM:
        break_lines(page, outer, 2);
        inside->verbatim = !outer->one_line;
        break;
    case TABLE:
        inside->one_line = false; /* a table in a cell has lines of its own */
        break_lines(page, inside, 2);
        break;
    case ROW:
        break_lines(page, outer, 1);
        inside->count = 0;
        break;
    case CELL:
        begin_cell(page, outer);
        inside->one_line = true;
        break;
    case LINK: inside->text_at = page->flow.out->len; break;
    case INLINE:
    case DROP: break;
    }
}

/* The "https://host" part of an address. */
static struct str origin_of(struct str url) {
    size_t scheme = str_find(url, STR("://"));
    if (scheme == url.len) return STR_EMPTY;
    return str_head(url, scheme + 3 + str_find_byte(str_skip(url, scheme + 3), '/'));
}

static void leave_link(struct page *page, const GumboNode *node, const struct inside *inside) {
    struct str target = str_trim(html_attribute(node, "href")), origin = STR_EMPTY;
    struct str text = str_trim(str_skip(buf_str(page->flow.out), inside->text_at));
    if (str_starts(target, STR("/")) && !str_starts(target, STR("//")))
        origin = origin_of(page->url);
    bool absolute = str_starts(target, STR("http://")) || str_starts(target, STR("https://"));
    if (!absolute && origin.len == 0) return;
    if (text.len == 0 || origin.len + target.len > LINK_MAX_BYTES) return;
    if (str_equal(text, target)) return;
    flow_blank(&page->flow);
    flow_raw(&page->flow, STR("("));
    flow_raw(&page->flow, origin);
    flow_raw(&page->flow, target);
    flow_raw(&page->flow, STR(")"));
}

static void html_leave(struct page *page, const GumboNode *node, const struct inside *outer,
                       const struct inside *inside) {
    switch (elements[html_tag(node)].role) {
    case BLOCK:
    case PAGE_EDGE:
    case FURNITURE:
    case ROW: break_lines(page, outer, 1); break;
    case PARAGRAPH:
    case ARTICLE:
    case VERBATIM: break_lines(page, outer, 2); break;
    case TABLE: break_lines(page, inside, 2); break;
    case HEADING:
        flow_no_prefix(&page->flow); /* a heading without text is dropped */
        break_lines(page, outer, 2);
        break;
    case ITEM:
        flow_no_prefix(&page->flow);
        break_lines(page, outer, 1);
        break;
    case BULLETS:
    case NUMBERS: break_lines(page, outer, outer->lists ? 1 : 2); break;
    case LINK: leave_link(page, node, inside); break;
    case INLINE:
    case DROP:
    case CELL:
    case LINE_END: break;
    }
}

static void html_say(struct page *page, struct str characters, const struct inside *inside) {
    if (inside->verbatim) {
        flow_raw(&page->flow, characters);
    } else {
        flow_text(&page->flow, characters);
    }
}

/* inside[d + 1] is the state of the element at depth d; inside[0] is the state around the
 * root. */
static void render(struct page *page, const GumboNode *root) {
    struct html_step step;
    page->inside[0] = (struct inside){0};
    html_walk_init(&page->walk, root);
    while (buf_ok(page->flow.out) && html_walk_next(&page->walk, &step)) {
        struct inside *outer = &page->inside[step.depth];
        struct str characters = html_characters(step.node);
        if (characters.len) html_say(page, characters, outer);
        if (step.leaving) {
            html_leave(page, step.node, outer, &page->inside[step.depth + 1]);
            continue;
        }
        enum role role = elements[html_tag(step.node)].role;
        if (left_out(page, step.node, role, outer->article)) {
            html_walk_skip(&page->walk);
            continue;
        }
        if (step.depth >= HTML_DEPTH_MAX) continue; /* deeper nodes are not entered */
        page->inside[step.depth + 1] = *outer;
        html_enter(page, step.node, outer, &page->inside[step.depth + 1]);
    }
}

/* ---- The page ---- */

/* The first element with a tag. *ret_count is the number of such elements, at most 2. */
static const GumboNode *html_find(struct page *page, const GumboNode *root, GumboTag tag,
                                  size_t *ret_count) {
    struct html_step step;
    const GumboNode *found = NULL;
    *ret_count = 0;
    html_walk_init(&page->walk, root);
    while (*ret_count < 2 && html_walk_next(&page->walk, &step)) {
        if (step.leaving || html_tag(step.node) != tag) continue;
        if (!found) found = step.node;
        (*ret_count)++;
        html_walk_skip(&page->walk);
    }
    return found;
}

/* Tried in this order until one gives enough text. */
static const struct {
    GumboTag root;
    bool only_one; /* several of them are not the page's content */
    bool with_furniture;
    size_t enough_bytes;
} parts[] = {
    /* clang-format off */
    {GUMBO_TAG_MAIN,    false, false, 200},
    {GUMBO_TAG_ARTICLE, true,  false, 200},
    {GUMBO_TAG_BODY,    false, false, 1},
    {GUMBO_TAG_BODY,    false, true,  0},
    /* clang-format on */
};

static void render_best(struct page *page, const GumboNode *root, struct buf *text) {
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t count;
        const GumboNode *part = html_find(page, root, parts[i].root, &count);
        if (!part || (parts[i].only_one && count > 1)) continue;
        buf_clear(text);
        page->flow = flow_of(text);
        page->with_furniture = parts[i].with_furniture;
        render(page, part);
        if (text->len >= parts[i].enough_bytes) return;
    }
}

static void render_title(struct page *page, const GumboNode *root, struct buf *title) {
    size_t count;
    struct html_step step;
    const GumboNode *node = html_find(page, root, GUMBO_TAG_TITLE, &count);
    if (!node) return;
    struct flow flow = flow_of(title);
    html_walk_init(&page->walk, node);
    while (html_walk_next(&page->walk, &step)) flow_text(&flow, html_characters(step.node));
}

/* Put the title first, unless the text begins with a heading that repeats it. */
static void html_join(struct str title, struct str text, struct buf *out) {
    struct str heading = str_starts(text, STR("# ")) ? str_skip(text, 2) : STR_EMPTY;
    if (title.len && !str_starts(heading, title)) {
        buf_append(out, title);
        if (text.len) buf_append(out, STR("\n\n"));
    }
    buf_append(out, text);
}

bool html_text(struct str source, const struct html_options *options, struct buf *out,
               struct err *e) {
    struct html_tree *tree;
    if (!html_tree_parse(source, options->go_on, options->ctx, &tree, e)) return false;

    struct page *page = MEM_NEW(struct page); /* too large for a thread's stack */
    struct buf title, text;
    buf_init(&title, TITLE_MAX_BYTES);
    buf_init(&text, out->max_bytes);
    page->url = options->url;
    render_best(page, html_tree_root(tree), &text);
    render_title(page, html_tree_root(tree), &title);
    html_join(buf_str(&title), buf_str(&text), out);
    buf_done(&text);
    buf_done(&title);
    free(page);
    html_tree_free(tree);
    return true;
}
