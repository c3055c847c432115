/* Of JSON comes JSON that has no NUL, no long number and no large exponent, and comes again as it
 * is. What had none of them is not changed. */
#include "orchestrator/jsonb.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What jsonb does not hold. */
struct unheld {
    size_t nuls, numbers;
};

static size_t text_len(struct str json, struct unheld *unheld) {
    size_t at = 1;
    while (json.at[at] != '"') {
        unheld->nuls += str_starts(str_skip(json, at), STR("\\u0000"));
        at += json.at[at] == '\\' ? 2 : 1;
    }
    return at + 1;
}

static size_t number_len(struct str json, struct unheld *unheld) {
    char number[JSONB_NUMBER_MAX + 1] = "";
    size_t len = 0;
    while (len < json.len && memchr("+-.0123456789Ee", json.at[len], 15)) len++;
    if (len <= JSONB_NUMBER_MAX) memcpy(number, json.at, len);
    const char *e = strpbrk(number, "eE");
    long long exponent = e ? strtoll(e + 1, NULL, 10) : 0;
    unheld->numbers +=
        len > JSONB_NUMBER_MAX || exponent > JSONB_NUMBER_MAX || exponent < -JSONB_NUMBER_MAX;
    return len;
}

static struct unheld look(struct str json) {
    struct unheld unheld = {0};
    while (json.len) {
        size_t len = 1;
        if (json.at[0] == '"')
            len = text_len(json, &unheld);
        else if (json.at[0] == '-' || (json.at[0] >= '0' && json.at[0] <= '9'))
            len = number_len(json, &unheld);
        json = str_skip(json, len);
    }
    return unheld;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size);
    struct buf first, second;
    struct json json;
    struct err e;
    if (!json_read(text, &json, &e)) return 0;
    buf_init(&first, 3 * size + 1);
    buf_init(&second, 3 * size + 1);
    jsonb_put(text, &first);
    assert(buf_ok(&first) && json_read(buf_str(&first), &json, &e));
    struct unheld before = look(text), after = look(buf_str(&first));
    assert(!after.nuls && !after.numbers);
    assert(jsonb_has_nul(text) == (before.nuls > 0));
    bool same = str_equal(buf_str(&first), text);
    assert(same == (!before.nuls && !before.numbers));
    jsonb_put(buf_str(&first), &second);
    assert(str_equal(buf_str(&first), buf_str(&second)));
    buf_done(&first);
    buf_done(&second);
    return 0;
}
