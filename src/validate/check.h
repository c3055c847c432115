/* check: one statement of a contract, and how a target was found to keep it.
 *
 * A profile is a contract as a table of checks. A check asks the target and gives one verdict:
 *
 *     pass   the statement holds
 *     fail   it does not, and the contract says MUST
 *     warn   it does not, and the contract says less than MUST, or the check is not required
 *     skip   it could not be judged; the text says why
 *
 * Which of fail and warn a broken statement gets depends on the level of the check:
 *
 *     level      broken gives
 *     base       fail; warn when the word is SHOULD
 *     strict     warn; fail with --strict
 *     advisory   warn; fail when the word is MUST or MUST NOT
 *
 * Memory   tables are constant; a finding owns its texts.
 * Threads  none.
 * Source   contracts/agentbreeder.md 7.
 */
#ifndef WEIR_VALIDATE_CHECK_H
#define WEIR_VALIDATE_CHECK_H

#include "base/buf.h"

enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_WARN, VERDICT_SKIP, VERDICT_COUNT };

enum level { LEVEL_BASE, LEVEL_STRICT, LEVEL_ADVISORY };

enum word { WORD_NONE, WORD_MAY, WORD_SHOULD, WORD_MUST, WORD_MUST_NOT };

struct judge;
typedef void check_fn(struct judge *judge);

struct check {
    const char *id; /* "HLTH-01" */
    enum level level;
    enum word word;
    const char *title;  /* what holds, as a statement */
    const char *clause; /* of the contract */
    const char *fix;    /* what to change in a server that breaks it */
    check_fn *run;
    bool proxied; /* a proxy may break it: warn at most when one is known to be there */
};

#define FINDING_WHY_MAX_BYTES (4 * KIB)
#define FINDING_SEEN_MAX_BYTES (8 * KIB)

struct finding {
    const struct check *check;
    enum verdict verdict;
    bool ended;      /* its verdict is final */
    struct buf why;  /* what was expected, and what was found instead; or why it was skipped */
    struct buf sent; /* the request, without the token */
    struct buf seen; /* the start of the answer: text with escapes */
    uint64_t took_ms;
};

/* "pass", "fail", "warn", "skip". */
const char *verdict_name(enum verdict verdict);
const char *level_name(enum level level); /* "base", "strict", "advisory" */
const char *word_name(enum word word);    /* "MUST", ...; empty for none */

void finding_init(struct finding *finding, const struct check *check);
void finding_done(struct finding *finding);

#endif
