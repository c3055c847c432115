#include "wire/yaml.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

/* A map or list that is still being read. */
struct open {
    struct yaml *node;
    struct yaml *last; /* child */
};

struct reader {
    yaml_parser_t parser;
    struct yaml_document *document;
    struct str text;
    struct open open[YAML_DEPTH_MAX];
    unsigned depth;
    struct yaml *root;
    struct str key; /* read; its value comes next */
    bool keyed;
    unsigned key_line, key_column;
};

/* --- errors --------------------------------------------------------------------------- */

PRINTF_LIKE(5, 0)
static bool err_at(struct err *e, struct str file, unsigned line, unsigned column,
                   const char *format, va_list values) {
    char text[ERR_TEXT_BYTES];
    vsnprintf(text, sizeof(text), format, values);
    return err_set(e, ERR_MALFORMED, STR_FMT ":%u:%u: %s", STR_ARG(file), line, column, text);
}

bool yaml_err(struct err *e, const struct yaml *at, const char *format, ...) {
    va_list values;
    va_start(values, format);
    err_at(e, at->document->file, at->line, at->column, format, values);
    va_end(values);
    return false;
}

bool yaml_err_key(struct err *e, const struct yaml *at, const char *format, ...) {
    va_list values;
    va_start(values, format);
    err_at(e, at->document->file, at->key_line, at->key_column, format, values);
    va_end(values);
    return false;
}

PRINTF_LIKE(4, 5)
static bool yaml_refuse(struct reader *reader, const yaml_mark_t *mark, struct err *e,
                        const char *format, ...) {
    va_list values;
    va_start(values, format);
    err_at(e, reader->document->file, (unsigned)mark->line + 1, (unsigned)mark->column + 1,
           format, values);
    va_end(values);
    return false;
}

static bool yaml_too_large(struct reader *reader, struct err *e) {
    return err_set(e, ERR_TOO_LARGE, STR_FMT ": it takes more memory than a document may have",
                   STR_ARG(reader->document->file));
}

/* libyaml's messages name the broken rule, not the fix. */
static const char *fix_for(const char *problem) {
    static const struct {
        const char *problem, *fix;
    } fixes[] = {
        {"mapping values are not allowed", "put text that holds ': ' in quotes, or check the "
                                           "indentation"},
        {"did not find expected key", "check the indentation and the quotes above"},
        {"did not find expected '-'", "check the indentation of this list"},
        {"could not find expected ':'", "write 'key: value'"},
        {"found character that cannot start any token", "indent with spaces, not tabs, and put "
                                                        "text that begins like this in quotes"},
        {"found unexpected end of stream", "a quote or a bracket is left open"},
        {"did not find expected ',' or", "a bracket is left open, or a comma is missing"},
        {"block sequence entries are not allowed", "begin the list on a line of its own"},
        {"control characters are not allowed", "write them as \\x.. in double quotes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(fixes); i++) {
        if (strstr(problem, fixes[i].problem)) return fixes[i].fix;
    }
    return "see docs/script.md and docs/config.md for the form";
}

/* The line and column of a byte; columns count characters, as libyaml does. */
static yaml_mark_t mark_of(struct str text, size_t offset) {
    yaml_mark_t mark = {.index = offset};
    for (size_t i = 0; i < offset && i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte == '\n') {
            mark.line++, mark.column = 0;
        } else if ((byte & 0xC0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static bool refuse_syntax(struct reader *reader, struct err *e) {
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem ? parser->problem : "not YAML";
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR)
        mark = mark_of(reader->text, parser->problem_offset);
    return yaml_refuse(reader, &mark, e, "%s; %s", problem, fix_for(problem));
}

/* --- building the tree ---------------------------------------------------------------- */

static const struct yaml *wire_yaml_find(const struct yaml *map, struct str key) {
    for (const struct yaml *value = map->first; value; value = value->next) {
        if (str_equal(value->key, key)) return value;
    }
    return NULL;
}

/* Append a new node: under the pending key, to the list, or as the root. NULL, and an error,
 * when the arena is full. */
static struct yaml *add_node(struct reader *reader, enum yaml_kind kind,
                             const yaml_mark_t *mark, struct err *e) {
    struct yaml *node = ARENA_NEW(reader->document->arena, struct yaml);
    if (!node) {
        yaml_too_large(reader, e);
        return NULL;
    }
    *node = (struct yaml){.document = reader->document,
                          .kind = kind,
                          .text = STR_EMPTY,
                          .key = STR_EMPTY,
                          .line = (unsigned)mark->line + 1,
                          .column = (unsigned)mark->column + 1};
    if (reader->depth == 0) {
        reader->root = node;
        return node;
    }

    struct open *open = &reader->open[reader->depth - 1];
    if (open->node->kind == YAML_MAP) {
        node->key = reader->key;
        node->key_line = reader->key_line, node->key_column = reader->key_column;
        reader->keyed = false;
    }
    if (open->last) {
        open->last->next = node;
    } else {
        open->node->first = node;
    }
    open->last = node;
    open->node->count++;
    return node;
}

static bool wants_key(const struct reader *reader) {
    return reader->depth > 0 && reader->open[reader->depth - 1].node->kind == YAML_MAP &&
           !reader->keyed;
}

static bool take_key(struct reader *reader, const yaml_event_t *event, struct str text,
                     struct err *e) {
    const struct yaml *map = reader->open[reader->depth - 1].node;
    const yaml_mark_t *mark = &event->start_mark;
    const struct yaml *before = wire_yaml_find(map, text);
    if (before)
        return yaml_refuse(reader, mark, e,
                           "the key '" STR_FMT "' stands twice, first on line %u; remove one",
                           STR_ARG(str_head(text, 80)), before->key_line);
    if (map->count == YAML_KEYS_MAX)
        return yaml_refuse(reader, mark, e, "more than %d keys in one map; split it",
                           YAML_KEYS_MAX);
    if (!arena_str(reader->document->arena, text, &reader->key))
        return yaml_too_large(reader, e);
    reader->keyed = true;
    reader->key_line = (unsigned)mark->line + 1;
    reader->key_column = (unsigned)mark->column + 1;
    return true;
}

static bool take_scalar(struct reader *reader, const yaml_event_t *event, struct err *e) {
    struct str text = str_of(event->data.scalar.value, event->data.scalar.length);
    if (wants_key(reader)) return take_key(reader, event, text, e);

    struct yaml *node = add_node(reader, YAML_SCALAR, &event->start_mark, e);
    if (!node) return false;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): yaml_refuse() is always false */
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (!arena_str(reader->document->arena, text, &node->text))
        return yaml_too_large(reader, e);
    return true;
}

static bool take_start(struct reader *reader, enum yaml_kind kind, const yaml_event_t *event,
                       struct err *e) {
    const yaml_mark_t *mark = &event->start_mark;
    if (wants_key(reader))
        return yaml_refuse(reader, mark, e, "a key must be plain text; put it in quotes");
    if (reader->depth == YAML_DEPTH_MAX)
        return yaml_refuse(reader, mark, e, "more than %d levels deep; flatten it",
                           YAML_DEPTH_MAX);
    struct yaml *node = add_node(reader, kind, mark, e);
    if (!node) return false;
    reader->open[reader->depth++] = (struct open){.node = node};
    return true;
}

/* Refuse what YAML allows and we do not. */
static bool check_plain(struct reader *reader, const yaml_event_t *event, struct err *e) {
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT: anchor = event->data.alias.anchor; break;
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor, tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor, tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor, tag = event->data.mapping_start.tag;
        break;
    default: break;
    }
    if (anchor)
        return yaml_refuse(
            reader, &event->start_mark, e,
            "anchors and aliases (& and *) are not taken; write it out, or put the "
            "text in quotes");
    if (tag)
        return yaml_refuse(reader, &event->start_mark, e,
                           "tags (!) are not taken; remove it, or put the text in quotes");
    return true;
}

static bool yaml_take(struct reader *reader, const yaml_event_t *event, struct err *e) {
    if (!check_plain(reader, event, e)) return false;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (!reader->root) return true;
        return yaml_refuse(reader, &event->start_mark, e,
                           "a second document begins here; keep one to a file");
    case YAML_SCALAR_EVENT: return take_scalar(reader, event, e);
    case YAML_SEQUENCE_START_EVENT: return take_start(reader, YAML_LIST, event, e);
    case YAML_MAPPING_START_EVENT: return take_start(reader, YAML_MAP, event, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: reader->depth--; return true;
    default: return true; /* the end of the document or the stream */
    }
}

static bool read_events(struct reader *reader, struct err *e) {
    for (bool end = false; !end;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader->parser, &event)) return refuse_syntax(reader, e);
        end = event.type == YAML_STREAM_END_EVENT;
        bool taken = yaml_take(reader, &event, e);
        yaml_event_delete(&event);
        if (!taken) return false;
    }
    return reader->root || add_node(reader, YAML_SCALAR, &(yaml_mark_t){0}, e);
}

static bool check_utf8(struct reader *reader, struct err *e) {
    size_t good = utf8_valid_prefix(reader->text);
    if (good == reader->text.len) return true;
    yaml_mark_t mark = mark_of(reader->text, good);
    return yaml_refuse(reader, &mark, e, "this is not UTF-8; save the file as UTF-8");
}

bool yaml_parse(struct arena *arena, struct str file, struct str text,
                const struct yaml **ret_root, struct err *e) {
    if (text.len > YAML_MAX_BYTES)
        return err_set(e, ERR_TOO_LARGE, STR_FMT ": %zu bytes; at most %zu are read",
                       STR_ARG(file), text.len, (size_t)YAML_MAX_BYTES);
    if (str_starts(text, STR("\xEF\xBB\xBF"))) text = str_skip(text, 3); /* no column */
    struct yaml_document *document = ARENA_NEW(arena, struct yaml_document);
    struct reader reader = {.document = document, .text = text};
    if (!document || !arena_str(arena, file, &document->file))
        return err_set(e, ERR_TOO_LARGE, STR_FMT ": no memory left to read it", STR_ARG(file));
    document->arena = arena;
    if (!check_utf8(&reader, e)) return false;

    int ready = yaml_parser_initialize(&reader.parser);
    assert(ready); /* fails only when malloc() does */
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text.at, text.len);
    bool done = read_events(&reader, e);
    yaml_parser_delete(&reader.parser);
    if (done) *ret_root = reader.root;
    return done;
}

/* --- looking -------------------------------------------------------------------------- */

const struct yaml *yaml_find(const struct yaml *map, struct str key) {
    return map && map->kind == YAML_MAP ? wire_yaml_find(map, key) : NULL;
}

bool yaml_is_null(const struct yaml *node) {
    if (node->kind != YAML_SCALAR || node->quoted) return false;
    return node->text.len == 0 || str_equal(node->text, STR("~")) ||
           str_equal(node->text, STR("null"));
}
