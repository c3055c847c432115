#include "wire/xml.h"

#include "base/utf8.h"

/* --- pieces ------------------------------------------------------------------------------- */

enum kind {
    PIECE_TEXT,
    PIECE_OPEN,
    PIECE_CLOSE,
    PIECE_EMPTY,
    PIECE_CDATA,
    PIECE_SKIP,
    PIECE_BAD
};

struct piece {
    enum kind kind;
    struct str text; /* TEXT, CDATA: what it says; OPEN, CLOSE, EMPTY: the name */
};

static bool is_name_byte(char c, bool first) {
    if (str_is_alnum(c)) return !first || c < '0' || c > '9';
    return c == '_' || c == ':' || (unsigned char)c >= 0x80 ||
           (!first && (c == '-' || c == '.'));
}

static bool xml_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct str xml_take_name(struct str *rest) {
    size_t len = 0;
    while (len < rest->len && is_name_byte(rest->at[len], len == 0)) len++;
    struct str name = str_head(*rest, len);
    *rest = str_skip(*rest, len);
    return name;
}

static bool take_spaces(struct str *rest) {
    size_t len = 0;
    while (len < rest->len && xml_is_space(rest->at[len])) len++;
    *rest = str_skip(*rest, len);
    return len > 0;
}

/* What stands before `end`, which is taken too. */
static bool take_until(struct str *rest, struct str end, struct str *ret) {
    size_t len = str_find(*rest, end);
    if (len == rest->len) return false;
    *ret = str_head(*rest, len);
    *rest = str_skip(*rest, len + end.len);
    return true;
}

static bool take_attribute(struct str *rest) {
    struct str value;
    if (xml_take_name(rest).len == 0) return false;
    take_spaces(rest);
    if (!str_starts(*rest, STR("="))) return false;
    *rest = str_skip(*rest, 1);
    take_spaces(rest);
    if (rest->len == 0 || (rest->at[0] != '"' && rest->at[0] != '\'')) return false;
    struct str quote = str_head(*rest, 1);
    *rest = str_skip(*rest, 1);
    return take_until(rest, quote, &value) && str_find_byte(value, '<') == value.len;
}

/* After "<". */
static struct piece take_tag(struct str *rest) {
    bool closes = str_starts(*rest, STR("/"));
    if (closes) *rest = str_skip(*rest, 1);
    struct piece piece = {closes ? PIECE_CLOSE : PIECE_OPEN, xml_take_name(rest)};
    if (piece.text.len == 0) return (struct piece){.kind = PIECE_BAD};
    for (;;) {
        bool spaced = take_spaces(rest);
        if (str_starts(*rest, STR(">"))) {
            *rest = str_skip(*rest, 1);
            return piece;
        }
        if (!closes && str_starts(*rest, STR("/>"))) {
            *rest = str_skip(*rest, 2);
            piece.kind = PIECE_EMPTY;
            return piece;
        }
        if (closes || !spaced || !take_attribute(rest))
            return (struct piece){.kind = PIECE_BAD};
    }
}

static struct piece take_piece(struct str *rest) {
    struct str skipped;
    size_t len = str_find_byte(*rest, '<');
    if (len) {
        struct piece piece = {PIECE_TEXT, str_head(*rest, len)};
        *rest = str_skip(*rest, len);
        return piece;
    }
    *rest = str_skip(*rest, 1);
    static const struct {
        struct str begin, end;
        enum kind kind;
    } marked[] = {
        {STR_INIT("![CDATA["), STR_INIT("]]>"), PIECE_CDATA},
        {STR_INIT("!--"), STR_INIT("-->"), PIECE_SKIP},
        {STR_INIT("?"), STR_INIT("?>"), PIECE_SKIP},
    };
    for (size_t i = 0; i < ARRAY_LEN(marked); i++) {
        if (!str_starts(*rest, marked[i].begin)) continue;
        *rest = str_skip(*rest, marked[i].begin.len);
        if (!take_until(rest, marked[i].end, &skipped))
            return (struct piece){.kind = PIECE_BAD};
        return (struct piece){marked[i].kind, skipped};
    }
    return take_tag(rest);
}

/* --- text --------------------------------------------------------------------------------- */

static const struct {
    struct str name;
    uint32_t code;
} entities[] = {{STR_INIT("amp"), '&'},
                {STR_INIT("lt"), '<'},
                {STR_INIT("gt"), '>'},
                {STR_INIT("quot"), '"'},
                {STR_INIT("apos"), '\''}};

static bool xml_read_number(struct str digits, uint32_t *ret) {
    uint32_t base = 10, code = 0;
    if (str_starts(digits, STR("x"))) {
        base = 16;
        digits = str_skip(digits, 1);
    }
    if (digits.len == 0 || digits.len > 8) return false;
    for (size_t i = 0; i < digits.len; i++) {
        char c = digits.at[i];
        uint32_t value = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : base;
        if (value >= base || code > 0x10FFFF) return false;
        code = code * base + value;
    }
    *ret = code;
    return code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

/* After "&". */
static bool take_reference(struct str *rest, uint32_t *ret) {
    struct str name;
    if (!take_until(rest, STR(";"), &name)) return false;
    if (str_starts(name, STR("#"))) return xml_read_number(str_skip(name, 1), ret);
    for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
        if (!str_equal(name, entities[i].name)) continue;
        *ret = entities[i].code;
        return true;
    }
    return false;
}

static void append_code(struct buf *out, uint32_t code) {
    if (code < 0x80) {
        buf_append_byte(out, (char)code);
        return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint32_t heads[] = {0, 0xC0, 0xE0, 0xF0};
    buf_append_byte(out, (char)(heads[more] | code >> (6 * more)));
    while (more--) buf_append_byte(out, (char)(0x80 | (code >> (6 * more) & 0x3F)));
}

/* Decode text; out NULL: only check it. */
static bool decode(struct str text, struct buf *out) {
    while (text.len) {
        uint32_t code;
        size_t len = str_find_byte(text, '&');
        if (out) buf_append(out, str_head(text, len));
        bool more = len < text.len;
        text = str_skip(text, len + 1);
        if (!more) break;
        if (!take_reference(&text, &code)) return false;
        if (out) append_code(out, code);
    }
    return true;
}

/* --- the check ---------------------------------------------------------------------------- */

struct check {
    struct str text, rest;
    struct str open[XML_DEPTH_MAX];
    size_t depth;
    bool rooted;        /* the root element has begun */
    const char *inside; /* where its content begins */
};

static bool xml_fail(const struct check *check, const char *what, struct err *e) {
    return err_set(e, ERR_MALFORMED, "XML (byte %zu): %s", check->text.len - check->rest.len,
                   what);
}

static bool xml_is_blank(struct str text) {
    take_spaces(&text);
    return text.len == 0;
}

static bool check_open(struct check *check, struct piece piece, struct err *e) {
    if (check->depth == 0 && check->rooted) return xml_fail(check, "a second root element", e);
    if (check->depth == XML_DEPTH_MAX) return xml_fail(check, "elements nest too deep", e);
    if (!check->rooted) check->inside = check->rest.at;
    check->rooted = true;
    if (piece.kind == PIECE_OPEN) check->open[check->depth++] = piece.text;
    return true;
}

static bool check_piece(struct check *check, struct piece piece, struct err *e) {
    switch (piece.kind) {
    case PIECE_OPEN:
    case PIECE_EMPTY: return check_open(check, piece, e);
    case PIECE_CLOSE:
        if (check->depth == 0 || !str_equal(check->open[check->depth - 1], piece.text))
            return xml_fail(check, "an element ends that did not begin", e);
        check->depth--;
        return true;
    case PIECE_TEXT:
    case PIECE_CDATA:
        if (check->depth == 0 && !(piece.kind == PIECE_TEXT && xml_is_blank(piece.text)))
            return xml_fail(check, "text outside the root element", e);
        return piece.kind == PIECE_CDATA || decode(piece.text, NULL) ||
               xml_fail(check, "an unknown entity", e);
    case PIECE_SKIP: return true;
    default: return xml_fail(check, "a tag that is cut or wrong", e);
    }
}

bool xml_read(struct str text, struct str *ret, struct err *e) {
    struct check check = {.text = text, .rest = text};
    struct str inside = STR_EMPTY;
    if (str_starts(check.rest, STR("\xEF\xBB\xBF"))) check.rest = str_skip(check.rest, 3);
    if (!utf8_valid(text)) return xml_fail(&check, "it is not UTF-8", e);
    while (check.rest.len) {
        const char *before = check.rest.at;
        size_t depth = check.depth;
        if (!check_piece(&check, take_piece(&check.rest), e)) return false;
        if (depth == 1 && check.depth == 0)
            inside = str_of(check.inside, (size_t)(before - check.inside));
    }
    if (!check.rooted || check.depth) return xml_fail(&check, "it ends too early", e);
    *ret = inside;
    return true;
}

/* --- accepted text ------------------------------------------------------------------------ */

bool xml_is(struct str text, struct str name) {
    if (str_starts(text, STR("\xEF\xBB\xBF"))) text = str_skip(text, 3);
    while (text.len) {
        struct piece piece = take_piece(&text);
        if (piece.kind == PIECE_OPEN || piece.kind == PIECE_EMPTY)
            return str_equal(piece.text, name);
    }
    return false;
}

/* After the begin of an element; its content up to its own end. */
static struct str take_content(struct str *rest) {
    const char *from = rest->at;
    for (size_t depth = 1; rest->len;) {
        const char *before = rest->at;
        struct piece piece = take_piece(rest);
        if (piece.kind == PIECE_OPEN) depth++;
        if (piece.kind == PIECE_CLOSE && --depth == 0)
            return str_of(from, (size_t)(before - from));
    }
    return STR_EMPTY;
}

bool xml_next(struct str *rest, struct str *ret_name, struct str *ret_content) {
    while (rest->len) {
        struct piece piece = take_piece(rest);
        if (piece.kind != PIECE_OPEN && piece.kind != PIECE_EMPTY) continue;
        *ret_name = piece.text;
        *ret_content = piece.kind == PIECE_OPEN ? take_content(rest) : STR_EMPTY;
        return true;
    }
    return false;
}

bool xml_find(struct str content, struct str name, struct str *ret) {
    struct str found, inside;
    while (xml_next(&content, &found, &inside)) {
        if (!str_equal(found, name)) continue;
        *ret = inside;
        return true;
    }
    return false;
}

bool xml_text(struct str content, struct buf *out) {
    while (content.len) {
        struct piece piece = take_piece(&content);
        if (piece.kind == PIECE_TEXT) decode(piece.text, out);
        if (piece.kind == PIECE_CDATA) buf_append(out, piece.text);
        if (piece.kind == PIECE_OPEN) (void)take_content(&content);
    }
    return buf_ok(out);
}
