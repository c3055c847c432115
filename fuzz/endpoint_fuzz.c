/* Whatever an endpoint is: without loopback only https is safe, and loopback takes nothing
 * away. */
#include "contract/nimi/endpoint.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str url = str_of((const char *)data, size);
    bool far = endpoint_is_safe(url, ENDPOINT_FAR_ONLY);
    bool near = endpoint_is_safe(url, ENDPOINT_LOOPBACK_TOO);
    struct str scheme = str_head(url, str_find(url, STR("://")));
    assert(!far || (near && str_equal_nocase(scheme, STR("https"))));
    assert(!near || far || str_equal_nocase(scheme, STR("http")));
    return 0;
}
