#include "base/text.h"

#include <stdlib.h>

struct text text_copy(struct str bytes) {
    return (struct text){str_dup(bytes), bytes.len};
}

void text_done(struct text *text) {
    free(text->at);
    *text = (struct text){0};
}

void text_wipe(struct text *text) {
    if (text->at) explicit_bzero(text->at, text->len);
    text_done(text);
}
