/* Whatever decodes must read the same after it was written again, and be valid JSON. */
#include "store/audit_record.h"
#include "wire/json.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static void assert_same(const struct audit_record *one, const struct audit_record *other) {
    for (size_t i = 0; i < AUDIT_DETAIL; i++) assert(str_equal(one->texts[i], other->texts[i]));
    for (size_t i = 0; i < AUDIT_NUMBERS; i++)
        assert(audit_get(one, (enum audit_number)i) == audit_get(other, (enum audit_number)i));
}

/* Twice in a block: the second one refers to the first. */
static void write_in_block(const struct audit_record *record, size_t size) {
    struct audit_said said = {.some = false}, heard = {.some = false};
    struct audit_record first, second;
    struct buf block;
    struct err e;
    buf_init(&block, 16 * size + 64 * KIB);
    assert(buf_room(&block, 16 * size + 64 * KIB));
    assert(audit_record_encode(record, &said, &block));
    assert(audit_record_encode(record, &said, &block));
    struct str rest = buf_str(&block);
    assert(audit_record_decode(&rest, &heard, &first, &e));
    assert(audit_record_decode(&rest, &heard, &second, &e) && rest.len == 0);
    assert(first.at_ms == second.at_ms);
    assert_same(&first, &second);
    buf_done(&block);
}

/* Texts may be cut to their limits, so it is the second writing that must not change. */
static void write_again(const struct audit_record *record) {
    struct audit_record once, twice;
    struct buf first, second;
    struct err e;
    buf_init(&first, 64 * KIB);
    buf_init(&second, 64 * KIB);
    assert(audit_record_encode(record, NULL, &first));
    struct str rest = buf_str(&first);
    assert(audit_record_decode(&rest, NULL, &once, &e) && rest.len == 0);
    assert(audit_record_encode(&once, NULL, &second));
    rest = buf_str(&second);
    assert(audit_record_decode(&rest, NULL, &twice, &e) && rest.len == 0);
    assert_same(&once, &twice);
    buf_done(&first);
    buf_done(&second);
}

static void write_json(const struct audit_record *record, size_t size) {
    struct buf json;
    struct json value;
    struct err e;
    buf_init(&json, 8 * size + 4 * KIB);
    assert(audit_record_json(record, &json));
    assert(json_read(buf_str(&json), &value, &e) && value.kind == JSON_OBJECT);
    buf_done(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str rest = str_of(data, size);
    struct audit_said said = {.some = false};
    struct audit_record record;
    struct err e;
    while (rest.len) {
        size_t before = rest.len;
        if (!audit_record_decode(&rest, &said, &record, &e)) {
            assert(rest.len == before);
            break;
        }
        assert(rest.len < before);
        write_again(&record);
        write_in_block(&record, size);
        write_json(&record, size);
    }
    return 0;
}
