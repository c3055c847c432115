/* A match reads only the bytes that it counts, and a secret that is percent-encoded whole is
 * found whole. The first byte says where the secret ends and the text begins. */
#include "tool/secret_match.h"

#include "base/buf.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t len = 1 + data[0] % (size - 1);
    struct str secret = str_of((const char *)data + 1, len);
    struct str text = str_of((const char *)data + 1 + len, size - 1 - len);
    size_t found = secret_match(text, secret);
    assert(found <= text.len);
    assert(found == 0 || secret_match(str_head(text, found), secret) == found);
    struct buf spelled;
    buf_init(&spelled, 4 * size);
    for (size_t i = 0; i < len; i++)
        buf_printf(&spelled, "%%%02x", (unsigned char)secret.at[i]);
    assert(secret_match(buf_str(&spelled), secret) == 3 * len);
    buf_done(&spelled);
    return 0;
}
