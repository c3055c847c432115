/* Nobody is believed without a signature of ours, and whatever is minted is believed. The key
 * is drawn from no input, so a token that passes would be a forgery: only those of the corpus
 * may, and they name the user "user-abc-123". */
#include "wire/token.h"

#include <assert.h>

#define NOW INT64_C(1700000000)

static void check(const struct token_keys *keys, struct str text) {
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
    struct str bearer;
    struct err e;
    if (token_check(keys, text, NOW, room, &token, &e))
        assert(str_equal(token.user, STR("user-abc-123")));
    if (token_from_header(keys, text, 1, NOW, room, &token, &e))
        assert(str_equal(token.user, STR("user-abc-123")));
    if (bearer_token_from_header(text, 1, &bearer, &e)) assert(str_ends(text, bearer));
}

/* The text is cut in two at its first comma: user and workspace. */
static void mint(const struct token_keys *keys, struct str text) {
    struct str workspace;
    struct str user = str_split(text, ',', &workspace);
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
    struct buf out;
    struct err e;
    buf_init(&out, 2 * KIB);
    if (token_mint(keys, user, workspace, NOW, &out, &e)) {
        assert(token_check(keys, buf_str(&out), NOW + TOKEN_WINDOW_S, room, &token, &e));
        assert(str_equal(token.user, user) && str_equal(token.workspace, workspace));
        assert(!token_check(keys, buf_str(&out), NOW + TOKEN_WINDOW_S + 1, room, &token, &e));
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str input = str_of(data, size);
    for (int policy = TOKEN_LENIENT; policy <= TOKEN_STRICT; policy++) {
        struct token_keys *keys = token_keys_new((enum token_policy)policy, TOKEN_WINDOW_S);
        struct err e;
        bool trimmed;
        if (token_keys_add(keys, STR("test-signing-key-32bytes-long!!!"), &trimmed, &e)) {
            check(keys, input);
            mint(keys, input);
        }
        token_keys_free(keys);
    }
    return 0;
}
