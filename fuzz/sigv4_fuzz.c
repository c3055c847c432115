/* Any path, query and header is signed; the order in which pairs are given changes nothing, and
 * what is signed is plain text of one line a part. */
#include "wire/sigv4.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size), path, name, value;
    if (size > 4 * KIB) return 0;
    path = str_split(text, '\n', &text);
    name = str_split(text, '\n', &text);
    value = str_split(text, '\n', &text);
    const struct sigv4_pair pairs[] = {{name, value}, {value, name}, {STR("x"), text}};
    const struct sigv4_pair other[] = {{STR("x"), text}, {value, name}, {name, value}};
    const struct sigv4_key key = {STR("A"), STR("B"), STR("us-east-1"), STR("s3")};
    struct buf encoded, one, two;
    buf_init(&encoded, 16 * KIB);
    buf_init(&one, 64 * KIB);
    buf_init(&two, 64 * KIB);
    buf_append_byte(&encoded, '/');
    assert(sigv4_append_path(&encoded, path));
    assert(str_is_plain(buf_str(&encoded), "-_.~/%"));
    struct sigv4_request request = {.method = STR("GET"),
                                    .path = buf_str(&encoded),
                                    .query = pairs,
                                    .query_count = ARRAY_LEN(pairs),
                                    .body_sum = STR("UNSIGNED-PAYLOAD")};
    assert(sigv4_authorize(&key, "20130524T000000Z", &request, &one));
    request.query = other;
    assert(sigv4_authorize(&key, "20130524T000000Z", &request, &two));
    assert(str_equal(buf_str(&one), buf_str(&two)));
    buf_done(&encoded);
    buf_done(&one);
    buf_done(&two);
    return 0;
}
