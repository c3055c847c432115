#include "session/waiting.h"

#include "base/mem.h"
#include "base/text.h"
#include "journal/journal.h"
#include "session/decision.h"
#include "session/directory.h"
#include "session/dormant_runs.h"
#include "session/idempotency_claims.h"
#include "wire/digest.h"

#include <stdlib.h>

#define QUESTION_MAX_BYTES (32 * MIB) /* the most that a run can hold */

/* A mail with the answer, for the parked run. */
struct answer {
    struct mail mail;
    struct pending_approval *parked;
    struct text text;
    struct claim *claim; /* of the key that came with it; may be NULL */
};

static void deliver_answer(void *ctx) {
    struct answer *answer = ctx;
    if (answer->claim) answer->parked->lookup(answer->claim, answer->parked->ctx);
    answer->parked->answer(text_str(answer->text), answer->parked->ctx);
    text_done(&answer->text);
    free(answer);
}

void session_park(struct session_table *table, struct pending_approval *parked) {
    pending_approvals_add(session_table_approvals(table), parked);
    session_hold(table, &parked->name, parked->loop);
}

/* Answer a run that was taken. It may free `parked` from now on. */
static void send_answer(struct pending_approval *parked, struct str text, struct claim *claim) {
    struct answer *answer = MEM_NEW(struct answer);
    answer->parked = parked;
    answer->text = text_copy(text);
    answer->claim = claim;
    loop_post(parked->loop, &answer->mail, deliver_answer, answer);
}

struct words {
    struct str text;
    struct err *e;
};

static enum pending_found check_words(const struct pending_question *asked, void *ctx) {
    const struct words *words = ctx;
    return decision_fits(asked, words->text, words->e);
}

/* Skip the words that came after the question; they may have left the journal's window. */
static uint64_t read_on_after(const struct pending_approval *parked) {
    uint64_t visible = journal_visible(parked->journal);
    return visible > parked->after_seq ? visible : parked->after_seq;
}

static enum pending_found give_answer(struct session_table *table,
                                      const struct pending_answer *answer, struct claim *claim,
                                      struct pending_answered *ret, struct err *e) {
    struct pending_approval *parked;
    struct words words = {answer->text, e};
    struct pending_view view = {.run = 0};
    const struct pending_approvals_wish wish = {
        .name = &answer->name,
        .rule = answer->rule,
        .run = answer->run,
        .seq = answer->seq,
        .check = answer->check ? answer->check : check_words,
        .ctx = answer->check ? answer->check_ctx : &words,
        .arena = answer->arena,
        .view = answer->arena ? &view : NULL,
    };
    enum pending_found found =
        pending_approvals_take(session_table_approvals(table), &wish, &parked);
    ret->stays = view;
    if (found != PENDING_TAKEN) return found;
    ret->journal = journal_ref(parked->journal);
    ret->seq = read_on_after(parked);
    if (claim) claim_mean(claim, parked->run, parked->seq);
    send_answer(parked, answer->text, claim);
    return PENDING_TAKEN;
}

/* The key's lock is held meanwhile, so that another request with the key finds this answer or
 * none. */
static enum pending_found give_keyed_answer(struct session_table *table,
                                            const struct pending_answer *answer,
                                            struct pending_answered *ret, struct err *e) {
    const struct claim_name name = {answer->name.workspace, answer->key_user, answer->key};
    if (!idempotency_claims_begin(session_table_claims(table), &name, answer->key_mark))
        return PENDING_CLAIMED;
    struct claim *claim = claim_new(&name, answer->print);
    enum pending_found found = give_answer(table, answer, claim, ret, e);
    idempotency_claims_end(session_table_claims(table), &name,
                           found == PENDING_TAKEN ? claim : NULL);
    if (found != PENDING_TAKEN) claim_free(claim);
    return found;
}

/* Only the user may be empty. */
static struct dormant_filter sleepers_of(const struct session_name *name) {
    return (struct dormant_filter){.workspace =
                                       name->workspace.at ? name->workspace : STR_EMPTY,
                                   .user = name->user,
                                   .session = name->session.at ? name->session : STR_EMPTY};
}

/* A run that is named is woken under its own name alone: ids can be guessed. */
struct dormant_filter session_sleepers(const struct pending_answer *answer) {
    struct dormant_filter filter = sleepers_of(&answer->name);
    filter.run = answer->run;
    return filter;
}

/* Its print tells a repeated request from another one with the same words. */
static void say_aside(struct session_table *table, const struct pending_answer *answer,
                      uint64_t run) {
    uint8_t digest[DIGEST_BYTES];
    const struct str parts[] = {answer->key_user, answer->key, answer->print};
    struct str print = STR_EMPTY;
    if (answer->print.len) {
        digest_parts(parts, ARRAY_LEN(parts), digest);
        print = str_of(digest, sizeof(digest));
    }
    directory_say(session_table_directory(table), run, answer->text, print);
}

/* Before choosing the run that an answer means, all candidates must be in memory. This is
 * checked before the search and again after it, because a run may leave memory meanwhile. */
enum pending_found session_settle(struct session_table *table,
                                  const struct pending_answer *answer,
                                  struct pending_answered *ret, struct err *e) {
    struct dormant_runs *dormant = directory_dormant(session_table_directory(table));
    const struct dormant_filter filter = session_sleepers(answer);
    *ret = (struct pending_answered){.journal = NULL};
    if (dormant_runs_has(dormant, &filter)) return PENDING_ASLEEP;
    enum pending_found found = answer->key.len ? give_keyed_answer(table, answer, ret, e)
                                               : give_answer(table, answer, NULL, ret, e);
    if (found == PENDING_NONE && dormant_runs_has(dormant, &filter)) return PENDING_ASLEEP;
    uint64_t run = ret->stays.run ? ret->stays.run : answer->run;
    if (found == PENDING_UNDECIDED && answer->asks_again && run) say_aside(table, answer, run);
    return found;
}

enum pending_found session_answer_pending(struct session_table *table,
                                          const struct session_name *name, struct str text,
                                          struct journal **ret_journal, uint64_t *ret_seq,
                                          struct err *e) {
    struct pending_answered answered;
    struct arena *arena = arena_new(QUESTION_MAX_BYTES);
    const struct pending_answer answer = {
        .name = *name, .text = text, .asks_again = true, .arena = arena};
    enum pending_found found = session_settle(table, &answer, &answered, e);
    arena_free(arena);
    if (found == PENDING_UNDECIDED) return PENDING_REFUSED;
    if (found != PENDING_TAKEN) return found;
    *ret_journal = answered.journal;
    *ret_seq = answered.seq;
    return PENDING_TAKEN;
}

bool session_may_answer(struct session_table *table, const struct session_name *name,
                        uint64_t run) {
    struct live_view view;
    if (!run || !directory_find(session_table_directory(table), run, &view)) return true;
    bool own = str_equal(view.workspace, name->workspace) && str_equal(view.user, name->user) &&
               str_equal(view.session, name->session);
    live_view_done(&view);
    return own;
}

bool session_has_pending(struct session_table *table, const struct session_name *name) {
    struct dormant_runs *dormant = directory_dormant(session_table_directory(table));
    const struct dormant_filter filter = sleepers_of(name);
    return pending_approvals_has(session_table_approvals(table), name) ||
           dormant_runs_has(dormant, &filter) ||
           pending_approvals_has(session_table_approvals(table),
                                 name); /* it may have come back meanwhile */
}

bool session_unpark(struct session_table *table, struct pending_approval *parked) {
    return pending_approvals_remove(session_table_approvals(table), parked);
}

bool session_expire(struct session_table *table, struct pending_approval *parked) {
    return pending_approvals_expire(session_table_approvals(table), parked);
}
