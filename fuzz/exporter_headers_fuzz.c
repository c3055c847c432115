/* Any text as headers for a collector: what is read can stand in the head of a request. */
#include "exporter/headers.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct exporter_headers headers = {.count = 0};
    struct err e = {.code = ERR_NONE};
    bool good = exporter_headers_read(&headers, str_of((const char *)data, size), &e);
    assert(good || e.code != ERR_NONE);
    assert(headers.count <= EXPORTER_HEADERS_MAX);
    for (size_t i = 0; i < headers.count; i++) {
        struct str value = text_str(headers.values[i]);
        assert(text_str(headers.names[i]).len > 0);
        for (size_t n = 0; n < value.len; n++)
            assert(value.at[n] != '\r' && value.at[n] != '\n');
    }
    exporter_headers_done(&headers);
    return 0;
}
