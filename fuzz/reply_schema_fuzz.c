/* Any JSON as the schema of a reply: looking at it must end, and a schema that a vendor is to
 * enforce must have only what that vendor's documentation names. */
#include "provider/reply_schema.h"

#include <assert.h>

/* The root, which both vendors want closed. */
static void check(struct json schema) {
    assert(schema.kind == JSON_OBJECT);
    assert(json_find(schema, STR("oneOf")).kind == JSON_NONE);
    assert(json_find(schema, STR("not")).kind == JSON_NONE);
    assert(json_find(schema, STR("patternProperties")).kind == JSON_NONE);
    if (json_find(schema, STR("properties")).kind != JSON_NONE)
        assert(json_find(schema, STR("$ref")).kind != JSON_NONE ||
               json_find(schema, STR("additionalProperties")).kind == JSON_FALSE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json schema;
    struct err e;
    if (!json_read(str_of(data, size), &schema, &e)) return 0;
    if (reply_schema_is_enforced(schema, SCHEMA_OPENAI)) check(schema);
    if (reply_schema_is_enforced(schema, SCHEMA_ANTHROPIC)) check(schema);
    return 0;
}
