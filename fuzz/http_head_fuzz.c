/* Any bytes as the lines of a head: what is kept keeps its bounds. */
#include "client/head.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str rest = str_of(data, size);
    struct head head = {.retry_after_ms = -1};
    while (rest.len) {
        struct str line = str_split(rest, '\n', &rest);
        (void)head_line(&head, line, 784111777000);
        assert(head.status <= 999 && head.retry_after_ms >= -1);
        assert(head_content_type(&head).len <= sizeof(head.content_type));
    }
    head_done(&head);
    return 0;
}
