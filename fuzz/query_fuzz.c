/* The first line is a path, the second a query. */
#include "route/pattern.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct str pattern = STR_INIT("/weir/v1/runs/{id}/events");
    struct str query, path = str_split(str_of(data, size), '\n', &query);
    struct str id = pattern_parameter(pattern, path, STR("id"));
    if (pattern_matches(pattern, path)) assert(id.len > 0 && str_find_byte(id, '/') == id.len);
    struct buf out;
    buf_init(&out, 64);
    if (query_find(query, STR("after"), &out) != QUERY_READ) assert(out.len == 0);
    buf_clear(&out);
    if (!segment_decode(id, &out)) assert(out.len == 0);
    buf_done(&out);
    return 0;
}
