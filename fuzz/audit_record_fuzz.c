/* Whatever decodes must read the same after it was written again, and be valid JSON. */
#include "store/audit_record.h"
#include "wire/json.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Texts may be cut to their limits, so it is the second writing that must not change. */
static void write_again(const struct audit_record *record) {
    struct audit_record once, twice;
    struct buf first, second;
    struct err e;
    buf_init(&first, 64 * KIB);
    buf_init(&second, 64 * KIB);
    assert(audit_record_encode(record, &first));
    struct str rest = buf_str(&first);
    assert(audit_record_decode(&rest, &once, &e) && rest.len == 0);
    assert(audit_record_encode(&once, &second));
    rest = buf_str(&second);
    assert(audit_record_decode(&rest, &twice, &e) && rest.len == 0);
    for (size_t i = 0; i < AUDIT_DETAIL; i++) assert(str_equal(once.texts[i], twice.texts[i]));
    for (size_t i = 0; i < AUDIT_NUMBERS; i++)
        assert(audit_get(&once, (enum audit_number)i) ==
               audit_get(&twice, (enum audit_number)i));
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
    struct audit_record record;
    struct err e;
    while (rest.len) {
        size_t before = rest.len;
        if (!audit_record_decode(&rest, &record, &e)) {
            assert(rest.len == before);
            break;
        }
        assert(rest.len < before);
        write_again(&record);
        write_json(&record, size);
    }
    return 0;
}
