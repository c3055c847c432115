#include "script/script_step.h"

#include "base/nearest.h"
#include "base/utf8.h"
#include "wire/json.h"

static const struct {
    const char *name;
    bool has_members; /* {result.title} */
} holes[] = {
    [HOLE_INPUT] = {"input", false},  [HOLE_TOPIC] = {"topic", false},
    [HOLE_RESULT] = {"result", true}, [HOLE_ANSWER] = {"answer", false},
    [HOLE_AGENT] = {"agent", false},  [HOLE_ARGS] = {"args", true},
};

/* Collects literal text until a hole ends it. */
struct builder {
    const struct yaml *node; /* for errors, and for its arena */
    unsigned allowed;
    bool json;
    struct buf literal;
    struct buf pieces; /* of struct script_piece */
    struct err *e;
};

static bool script_text_too_large(struct builder *builder) {
    return yaml_err(builder->e, builder->node, "this text is too large");
}

static bool add_piece(struct builder *builder, enum script_hole hole, struct str text) {
    struct script_piece piece = {.hole = hole};
    if (!arena_str(builder->node->document->arena, text, &piece.text))
        return script_text_too_large(builder);
    if (!buf_append(&builder->pieces, str_of(&piece, sizeof(piece))))
        return script_text_too_large(builder);
    return true;
}

static bool end_literal(struct builder *builder) {
    if (!buf_ok(&builder->literal)) return script_text_too_large(builder);
    if (builder->literal.len == 0) return true;
    bool done = add_piece(builder, HOLE_NONE, buf_str(&builder->literal));
    buf_clear(&builder->literal);
    return done;
}

static bool refuse_hole(struct builder *builder, struct str name) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = HOLE_INPUT; i < ARRAY_LEN(holes); i++) {
        if (builder->allowed & HOLE(i)) nearest_offer(&nearest, str_from(holes[i].name));
    }
    return yaml_err(builder->e, builder->node, "nothing here fills {" STR_FMT "}%s%s",
                    STR_ARG(str_head(name, 40)), nearest_hint(&nearest),
                    nearest.found.len ? "" : "; for a plain brace write {{ or }}");
}

/* `inside` is the text between the braces: a name, or name.member. */
static bool add_hole(struct builder *builder, struct str inside) {
    struct str member;
    struct str name = str_split(inside, '.', &member);
    for (size_t i = HOLE_INPUT; i < ARRAY_LEN(holes); i++) {
        if (!(builder->allowed & HOLE(i)) || !str_equal(name, str_from(holes[i].name)))
            continue;
        if (member.at && (!holes[i].has_members || member.len == 0)) break;
        return end_literal(builder) &&
               add_piece(builder, (enum script_hole)i, member.at ? member : STR_EMPTY);
    }
    return refuse_hole(builder, inside);
}

static void add_literal(struct builder *builder, struct str text) {
    if (!builder->json) {
        buf_append(&builder->literal, text);
        return;
    }
    size_t start = builder->literal.len;
    if (!json_put_str(&builder->literal, text)) return;
    size_t inside = builder->literal.len - start - 2; /* without the quotes that were written */
    memmove(builder->literal.at + start, builder->literal.at + start + 1, inside);
    builder->literal.len = start + inside;
}

/* Length of the text before the next brace. */
static size_t plain_len(struct str text) {
    size_t len = 0;
    while (len < text.len && text.at[len] != '{' && text.at[len] != '}') len++;
    return len;
}

static bool script_text_add_text(struct builder *builder, struct str text) {
    while (text.len) {
        size_t plain = plain_len(text);
        add_literal(builder, str_head(text, plain));
        text = str_skip(text, plain);
        if (text.len == 0) break;

        bool doubled = text.len > 1 && text.at[1] == text.at[0];
        size_t end = str_find_byte(text, '}');
        if (doubled) {
            add_literal(builder, str_head(text, 1));
            text = str_skip(text, 2);
        } else if (text.at[0] == '}' || end == text.len) {
            return yaml_err(builder->e, builder->node,
                            "a brace stands alone; for a plain brace write {{ or }}");
        } else {
            if (!add_hole(builder, str_skip(str_head(text, end), 1))) return false;
            text = str_skip(text, end + 1);
        }
    }
    return true;
}

/* Called by yaml_to_json_with() for each string value; `out` is the builder's literal. */
static bool add_json_string(const struct yaml *scalar, struct buf *out, void *ctx) {
    struct builder *builder = ctx;
    builder->node = scalar; /* the node that errors point to */
    return buf_append_byte(out, '"') && script_text_add_text(builder, scalar->text) &&
           buf_append_byte(out, '"');
}

static bool take_pieces(struct builder *builder, struct script_text *ret) {
    if (!end_literal(builder)) return false;
    struct script_piece *pieces =
        arena_alloc(builder->node->document->arena, builder->pieces.len);
    if (!pieces) return script_text_too_large(builder);
    if (builder->pieces.len) memcpy(pieces, builder->pieces.at, builder->pieces.len);
    *ret = (struct script_text){.pieces = pieces,
                                .count = builder->pieces.len / sizeof(*pieces),
                                .json = builder->json};
    struct str literal;
    if (script_text_literal(ret, &literal)) ret->ascii = utf8_ascii_prefix(literal);
    return true;
}

static void builder_init(struct builder *builder, const struct yaml *node, unsigned allowed,
                         bool json, struct err *e) {
    *builder = (struct builder){.node = node, .allowed = allowed, .json = json, .e = e};
    buf_init(&builder->literal, 8 * YAML_MAX_BYTES);
    buf_init(&builder->pieces, 8 * YAML_MAX_BYTES);
}

static void builder_done(struct builder *builder) {
    buf_done(&builder->literal);
    buf_done(&builder->pieces);
}

bool script_text_read(const struct yaml *node, unsigned allowed, struct script_text *ret,
                      struct err *e) {
    struct str text;
    if (!yaml_value(node, YAML_TEXT, &text, e)) return false;
    struct builder builder;
    builder_init(&builder, node, allowed, false, e);
    bool done = script_text_add_text(&builder, text) && take_pieces(&builder, ret);
    builder_done(&builder);
    return done;
}

bool script_json_read(const struct yaml *node, unsigned allowed, struct script_text *ret,
                      struct err *e) {
    if (node->kind != YAML_MAP)
        return yaml_err(e, node, "expected a map, such as {key: value}");
    struct builder builder;
    builder_init(&builder, node, allowed, true, e);
    e->code = ERR_NONE;
    bool written = yaml_to_json_with(node, &builder.literal, add_json_string, &builder);
    if (!written && e->code == ERR_NONE) script_text_too_large(&builder);
    bool done = written && take_pieces(&builder, ret);
    builder_done(&builder);
    return done;
}
