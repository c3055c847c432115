#include "validate/check.h"

static const char *const verdict_names[VERDICT_COUNT] = {
    [VERDICT_PASS] = "pass",
    [VERDICT_FAIL] = "fail",
    [VERDICT_WARN] = "warn",
    [VERDICT_SKIP] = "skip",
};

static const char *const level_names[] = {
    [LEVEL_BASE] = "base",
    [LEVEL_STRICT] = "strict",
    [LEVEL_ADVISORY] = "advisory",
};

static const char *const word_names[] = {
    [WORD_NONE] = "",     [WORD_MAY] = "MAY",           [WORD_SHOULD] = "SHOULD",
    [WORD_MUST] = "MUST", [WORD_MUST_NOT] = "MUST NOT",
};

const char *verdict_name(enum verdict verdict) {
    return verdict_names[verdict];
}

const char *level_name(enum level level) {
    return level_names[level];
}

const char *word_name(enum word word) {
    return word_names[word];
}

void finding_init(struct finding *finding, const struct check *check) {
    *finding = (struct finding){.check = check, .verdict = VERDICT_PASS};
    buf_init(&finding->why, FINDING_WHY_MAX_BYTES);
    buf_init(&finding->sent, FINDING_SEEN_MAX_BYTES);
    buf_init(&finding->seen, FINDING_SEEN_MAX_BYTES);
}

void finding_done(struct finding *finding) {
    buf_done(&finding->why);
    buf_done(&finding->sent);
    buf_done(&finding->seen);
}
