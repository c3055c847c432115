/* Any text as a URL and a redirect from it: what is followed reads again, and its target fits
 * on a request line. */
#include "client/url.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str location, text = str_split(str_of(data, size), ' ', &location);
    struct url url;
    struct buf next, target;
    if (url_read(text, &url) != URL_FINE) return 0;
    assert(url.host.len && url.port);
    buf_init(&next, 64 * KIB);
    buf_init(&target, 64 * KIB);
    url_append_target(&url, &target);
    assert(target.len && target.at[0] == '/');
    for (size_t i = 0; i < target.len; i++) assert((unsigned char)target.at[i] > ' ');
    if (url_follow(&url, location, &next) && url_read(buf_str(&next), &url) == URL_FINE)
        assert(url.host.len && url.port);
    buf_done(&next);
    buf_done(&target);
    return 0;
}
