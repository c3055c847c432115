#include "exporter/batch.h"

#include "base/utf8.h"
#include "base/version.h"
#include "wire/pb.h"

#include <assert.h>

enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum { RESOURCE_ATTRIBUTE = 1 };
enum { SCOPE_SPANS_SCOPE = 1 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2, ANY_TEXT = 1 };

/* --- resource --------------------------------------------------------------------------------- */

struct attribute {
    struct str key, value;
};

static size_t key_value_len(const struct attribute *attribute) {
    return pb_bytes_len(KEY_VALUE_KEY, attribute->key.len) +
           pb_bytes_len(KEY_VALUE_VALUE, pb_bytes_len(ANY_TEXT, attribute->value.len));
}

static char *put_attribute(char *at, const struct attribute *attribute) {
    at = pb_put_head(at, RESOURCE_ATTRIBUTE, key_value_len(attribute));
    at = pb_put_str(at, KEY_VALUE_KEY, attribute->key);
    at = pb_put_head(at, KEY_VALUE_VALUE, pb_bytes_len(ANY_TEXT, attribute->value.len));
    return pb_put_str(at, ANY_TEXT, attribute->value);
}

static struct str cut(struct str text) {
    size_t len = text.len > BATCH_TEXT_BYTES ? utf8_cut(text, BATCH_TEXT_BYTES) : text.len;
    return utf8_valid(str_head(text, len)) ? str_head(text, len) : STR_EMPTY;
}

void batch_resource_init(struct batch_resource *resource, struct str service,
                         struct str version) {
    const struct attribute attributes[] = {{STR("service.name"), cut(service)},
                                           {STR("service.version"), cut(version)}};
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
        if (attributes[i].value.len)
            len += pb_bytes_len(RESOURCE_ATTRIBUTE, key_value_len(&attributes[i]));
    }
    char *at = pb_put_head(resource->bytes, RESOURCE_SPANS_RESOURCE, len);
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
        if (attributes[i].value.len) at = put_attribute(at, &attributes[i]);
    }
    resource->len = (size_t)(at - resource->bytes);
    assert(resource->len <= BATCH_RESOURCE_BYTES);
}

/* --- the body --------------------------------------------------------------------------------- */

struct str batch_body(const struct spans_part *part, const struct batch_resource *resource) {
    const struct str name = STR("weir"), version = STR(WEIR_VERSION);
    size_t scope = pb_str_len(SCOPE_NAME, name) + pb_str_len(SCOPE_VERSION, version);
    size_t scope_spans = pb_bytes_len(SCOPE_SPANS_SCOPE, scope) + part->len;
    size_t resource_spans =
        resource->len + pb_bytes_len(RESOURCE_SPANS_SCOPE_SPANS, scope_spans);
    size_t whole = pb_bytes_len(REQUEST_RESOURCE_SPANS, resource_spans);
    assert(whole - part->len <= SPANS_HEAD_BYTES);
    char *start = part->at - (whole - part->len);
    char *at = pb_put_head(start, REQUEST_RESOURCE_SPANS, resource_spans);
    at = pb_put_bytes(at, str_of(resource->bytes, resource->len));
    at = pb_put_head(at, RESOURCE_SPANS_SCOPE_SPANS, scope_spans);
    at = pb_put_head(at, SCOPE_SPANS_SCOPE, scope);
    at = pb_put_str(pb_put_str(at, SCOPE_NAME, name), SCOPE_VERSION, version);
    assert(at == part->at);
    return str_of(start, whole);
}
