/* The first half, up to the first NUL or else the middle, is a schema, the rest a value.
 * Reading and checking must end, a verdict must not depend on where the value's members stand
 * or how it is spaced, and 'not' must turn it round. */
#include "schema/schema.h"

#include <assert.h>

/* A limit that was reached is no verdict. */
static bool gave_up(const struct err *e) {
    return strstr(e->text, "too many steps") || strstr(e->text, "too deep");
}

static bool verdict(struct str schema_text, struct json value, bool *ret) {
    struct schema *schema;
    struct err e;
    if (!schema_read(schema_text, &schema, &e)) {
        assert(e.text[0]);
        return false;
    }
    e.text[0] = '\0';
    *ret = schema_check(schema, value, &e);
    assert(*ret || e.text[0]);
    bool decided = *ret || !gave_up(&e);
    schema_free(schema);
    return decided;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str input = str_of(data, size);
    size_t cut = str_find_byte(input, '\0');
    if (cut == size) cut = size / 2;
    struct str schema = str_head(input, cut), rest = str_skip(input, cut);
    if (rest.len && rest.at[0] == '\0') rest = str_skip(rest, 1);

    struct json value, again;
    struct err e;
    bool fits, refits, inverse;
    if (!json_read(rest, &value, &e)) value = json_of(STR("null"));
    if (!verdict(schema, value, &fits)) return 0;

    struct buf compact, inverted;
    buf_init(&compact, size + 8);
    buf_init(&inverted, size + 64);
    assert(json_compact(value.raw, &compact) && json_read(buf_str(&compact), &again, &e));
    if (verdict(schema, again, &refits)) assert(fits == refits);

    /* "#" means another document inside 'not', and definitions would be out of reach. */
    if (str_find(schema, STR("$ref")) == schema.len &&
        str_find(schema, STR("\\")) == schema.len &&
        str_find(schema, STR("$id")) == schema.len) {
        buf_append(&inverted, STR("{\"not\":"));
        buf_append(&inverted, schema);
        buf_append(&inverted, STR("}"));
        if (verdict(buf_str(&inverted), value, &inverse)) assert(fits != inverse);
    }
    buf_done(&compact);
    buf_done(&inverted);
    return 0;
}
