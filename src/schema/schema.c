#include "schema/schema.h"

#include "base/mem.h"
#include "schema/schema_inner.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEMA_MAX_BYTES (1 * MIB)

/* Nodes visited per value; nested alternatives multiply. */
#define STEPS_MAX 10000000u

/* ---- Reading ---- */

bool schema_read(struct str text, struct schema **ret, struct err *e) {
    if (text.len > SCHEMA_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "the schema is longer than %zu bytes",
                       (size_t)SCHEMA_MAX_BYTES);
    struct json document;
    if (!json_read(text, &document, e)) return false;

    /* The length of the text bounds the parsed form. */
    struct schema *schema = MEM_NEW(struct schema);
    schema->arena = arena_new(SIZE_MAX / 2);
    bool kept = arena_str(schema->arena, text, &schema->text);
    struct str raw = str_of(schema->text.at + (document.raw.at - text.at), document.raw.len);
    kept = kept && datum_read(json_of(raw), schema->arena, &schema->document);
    assert(kept);

    if (!schema_read_document(schema, e)) goto fail;
    if (!schema_refuse_circles(schema, e)) goto fail;
    *ret = schema;
    return true;

fail:
    schema_free(schema);
    return false;
}

void schema_free(struct schema *schema) {
    if (!schema) return;
    for (struct schema_held_pattern *held = schema->patterns; held; held = held->next)
        schema_pattern_free(held->pattern);
    arena_free(schema->arena);
    free(schema);
}

struct str schema_text(const struct schema *schema) {
    return schema->text;
}

/* ---- Checking ---- */

bool schema_check(const struct schema *schema, struct json value, struct err *e) {
    if (value.kind == JSON_NONE)
        return err_set(e, ERR_INVALID_ARGUMENT, "expected a value, got nothing");
    struct arena *arena = arena_new(datum_bytes(value.raw.len));
    struct datum datum;
    bool opened = datum_read(value, arena, &datum);
    assert(opened);
    struct schema_check check = {.steps_left = STEPS_MAX, .e = e};
    bool fits = schema_check_node(&check, NULL, schema->root, &datum);
    arena_free(arena);
    return fits;
}

/* ---- Messages ---- */

/* Append one step of a JSON pointer, with control bytes replaced. */
static void append_step(struct buf *out, const struct schema_place *place) {
    buf_append_byte(out, '/');
    if (!place->name.at) {
        buf_append_u64(out, place->index);
        return;
    }
    for (size_t i = 0; i < place->name.len; i++) {
        char c = place->name.at[i];
        if (c == '~') {
            buf_append(out, STR("~0"));
        } else if (c == '/') {
            buf_append(out, STR("~1"));
        } else {
            buf_append_byte(out, (unsigned char)c < 0x20 || c == 0x7F ? '?' : c);
        }
    }
}

static void append_place(struct buf *out, const struct schema_place *place) {
    if (!place) return;
    append_place(out, place->up);
    append_step(out, place);
}

/* "/properties/a~1b/3" for messages, cut at its beginning when it is long; "" at the root. */
static const char *schema_place_text(const struct schema_place *place,
                                     char room[SCHEMA_PLACE_BYTES]) {
    struct buf text;
    buf_init(&text, 64 * KIB);
    append_place(&text, place);
    struct str whole = buf_str(&text);
    if (whole.len < SCHEMA_PLACE_BYTES) {
        snprintf(room, SCHEMA_PLACE_BYTES, STR_FMT, STR_ARG(whole));
    } else { /* the end is the most useful part */
        struct str end = str_skip(whole, whole.len - (SCHEMA_PLACE_BYTES - 4));
        while (end.len && ((unsigned char)end.at[0] & 0xC0) == 0x80) end = str_skip(end, 1);
        snprintf(room, SCHEMA_PLACE_BYTES, "..." STR_FMT, STR_ARG(end));
    }
    buf_done(&text);
    return room;
}

const char *schema_shown(struct str text, char room[SCHEMA_SHOWN_BYTES]) {
    size_t len = text.len;
    if (len >= SCHEMA_SHOWN_BYTES) {
        len = SCHEMA_SHOWN_BYTES - 4;
        while (len && ((unsigned char)text.at[len] & 0xC0) == 0x80) len--;
    }
    for (size_t i = 0; i < len; i++) {
        char c = text.at[i];
        room[i] = (unsigned char)c < 0x20 || c == 0x7F ? '?' : c;
    }
    snprintf(room + len, SCHEMA_SHOWN_BYTES - len, "%s", len < text.len ? "..." : "");
    return room;
}

bool schema_fail(struct err *e, const struct schema_place *place, const char *format,
                 va_list values) {
    char text[ERR_TEXT_BYTES], room[SCHEMA_PLACE_BYTES];
    vsnprintf(text, sizeof(text), format, values);
    err_set(e, ERR_INVALID_ARGUMENT, "%s", text);
    return place ? err_add(e, "%s", schema_place_text(place, room)) : false;
}

bool schema_wrong(const struct schema_check *check, const struct schema_place *place,
                  const char *format, ...) {
    va_list values;
    va_start(values, format);
    schema_fail(check->e, place, format, values);
    va_end(values);
    return false;
}
