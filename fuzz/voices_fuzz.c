/* Whatever a program says when it is asked for its voices: those that are read have names and
 * can be picked by them, and half a line never becomes one. The first byte says where the name
 * that is picked stands. */
#include "provider/voices.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    struct str text = str_of(data + 1, size - 1), file;
    struct err e;
    struct voices *voices, *again;
    size_t count, count_again;
    if (!voices_read(text, &voices, &e)) {
        assert(e.code == ERR_MALFORMED || e.code == ERR_TOO_LARGE);
        return 0;
    }
    const struct media_voice *all = voices_all(voices, &count);
    assert(count > 0 && count <= VOICES_MAX);
    for (size_t i = 0; i < count; i++) {
        assert(all[i].id.len && all[i].name.len && all[i].language.len);
        assert(voices_pick(voices, all[i].id, STR(""), &file, &e));
        assert(file.len);
    }
    bool found = voices_pick(voices, str_head(text, data[0]), STR(""), &file, &e);
    assert(found || e.code == ERR_NOT_FOUND);
    found = voices_pick(voices, STR(""), str_head(text, data[0]), &file, &e);
    assert(found || e.code == ERR_NOT_FOUND);

    /* A last line without its end adds nothing. */
    size_t last = text.len;
    while (last && text.at[last - 1] != '\n') last--;
    assert(voices_read(str_head(text, last), &again, &e));
    voices_all(again, &count_again);
    assert(count_again == count);
    voices_free(again);
    voices_free(voices);
    return 0;
}
