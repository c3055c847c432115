/* A document from nowhere is read or refused. What is read can be walked and decoded, no text
 * of it is longer than the document, and cut short it is refused. */
#include "wire/xml.h"

#include <assert.h>

static void walk(struct str content, size_t limit, unsigned depth) {
    struct str name, inside, found;
    struct buf text;
    buf_init(&text, limit);
    assert(depth <= XML_DEPTH_MAX && xml_text(content, &text));
    buf_done(&text);
    for (struct str rest = content; xml_next(&rest, &name, &inside);) {
        assert(name.len > 0 && inside.len <= content.len);
        assert(xml_find(content, name, &found));
        walk(inside, limit, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size), content, cut;
    struct err e;
    if (size > 64 * KIB) return 0;
    if (!xml_read(text, &content, &e)) {
        assert(e.code == ERR_MALFORMED);
        return 0;
    }
    walk(content, size, 1);
    size_t end = size; /* of the last tag; spaces and comments may follow */
    if (str_ends(text, STR(">"))) end = size - 1;
    if (end < size && !str_ends(text, STR("->")) && !str_ends(text, STR("?>")))
        assert(!xml_read(str_head(text, end), &cut, &e));
    return 0;
}
