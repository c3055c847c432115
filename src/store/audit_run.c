/* The records of runs, made from the events that the log gets. */
#include "store/audit_run.h"

#include "base/mem.h"
#include "store/audit.h"
#include "store/store.h"

#include <stdlib.h>

/* --- the table ---------------------------------------------------------------------------- */

/* The link to the run's entry, or to the end of its slot. */
static struct audit_run **link_of(const struct audit_runs *runs, uint64_t id) {
    size_t slot = (id * UINT64_C(0x9E3779B97F4A7C15)) >> 54; /* 10 bits: AUDIT_RUNS_SLOTS */
    struct audit_run **link = (struct audit_run **)(uintptr_t)&runs->slots[slot];
    while (*link && (*link)->id != id) link = &(*link)->next;
    return link;
}

struct audit_run *audit_runs_find(const struct audit_runs *runs, uint64_t id) {
    return *link_of(runs, id);
}

static size_t entry_bytes(const struct audit_run *run) {
    return sizeof(*run) + run->workspace.len + run->user.len + run->contract.len;
}

static void entry_free(struct audit_runs *runs, struct audit_run *run) {
    list_remove(&run->waiting);
    runs->bytes -= entry_bytes(run);
    free(run);
}

static void entry_remove(struct audit_runs *runs, uint64_t id) {
    struct audit_run **link = link_of(runs, id), *run = *link;
    if (!run) return;
    *link = run->next;
    entry_free(runs, run);
}

static void entries_clear(struct audit_runs *runs) {
    for (size_t i = 0; i < AUDIT_RUNS_SLOTS; i++) {
        for (struct audit_run *run = runs->slots[i], *next; run; run = next) {
            next = run->next;
            entry_free(runs, run);
        }
        runs->slots[i] = NULL;
    }
}

void audit_runs_init(struct audit_runs *runs) {
    *runs = (struct audit_runs){0};
    list_init(&runs->waiting);
}

void audit_runs_clear(struct audit_runs *runs) {
    entries_clear(runs);
    audit_questions_clear(&runs->questions);
}

void audit_runs_remove(struct audit_runs *runs, uint64_t id) {
    entry_remove(runs, id);
    audit_questions_remove(&runs->questions, id);
}

void audit_runs_leave(struct audit_runs *runs, int64_t projected) {
    LIST_EACH(&runs->waiting, link) {
        const struct audit_run *run = CONTAINER_OF(link, struct audit_run, waiting);
        if (run->row <= projected) entry_remove(runs, run->id);
    }
}

static struct str keep_text(char **room, struct str text) {
    char *at = *room;
    if (text.len) memcpy(at, text.at, text.len);
    *room += text.len;
    return str_of(at, text.len);
}

struct audit_run *audit_runs_put(struct audit_runs *runs, uint64_t id, struct str workspace,
                                 struct str user, struct str contract) {
    size_t len = workspace.len + user.len + contract.len;
    struct audit_run *run = mem_alloc(sizeof(*run) + len);
    *run = (struct audit_run){.id = id};
    list_init(&run->waiting);
    char *room = run->room;
    run->workspace = keep_text(&room, workspace);
    run->user = keep_text(&room, user);
    run->contract = keep_text(&room, contract);
    entry_remove(runs, id);
    if (runs->bytes + entry_bytes(run) > AUDIT_RUNS_MAX_BYTES)
        entries_clear(runs); /* they are looked up again */
    *link_of(runs, id) = run;
    runs->bytes += entry_bytes(run);
    return run;
}

/* --- runs that are not in it -------------------------------------------------------------- */

/* A run that began before this process, or long ago. Its owner is in the tables, unless they are
 * behind; then it stays empty. */
static struct audit_run *look_up(struct audit *audit, uint64_t id, struct err *e) {
    struct prepared *owner = NULL;
    struct audit_run *run = NULL;
    bool row = false;
    if (!database_prepare(audit->db,
                          "SELECT workspace, user, contract FROM run JOIN session ON"
                          " session.id = run.session WHERE run.id = ?",
                          &owner, e))
        return NULL;
    database_bind_number(owner, 1, (int64_t)id);
    if (database_row(audit->db, owner, &row, e))
        run = audit_runs_put(&audit->runs, id, row ? database_bytes(owner, 0) : STR_EMPTY,
                             row ? database_bytes(owner, 1) : STR_EMPTY,
                             row ? database_bytes(owner, 2) : STR_EMPTY);
    database_finalize(owner);
    return run;
}

/* NULL: the tables cannot be read. */
static struct audit_run *run_of(struct audit *audit, uint64_t id, struct err *e) {
    struct audit_run *run = audit_runs_find(&audit->runs, id);
    return run ? run : look_up(audit, id, e);
}

/* --- records ------------------------------------------------------------------------------ */

static struct audit_record record_of(struct audit *audit, const struct audit_run *run,
                                     uint64_t id, struct str domain, struct str operation) {
    struct audit_record record = {.at_ms = audit_now(audit),
                                  .texts = {[AUDIT_DOMAIN] = domain,
                                            [AUDIT_OPERATION] = operation,
                                            [AUDIT_WORKSPACE] = run->workspace,
                                            [AUDIT_USER] = run->user,
                                            [AUDIT_CONTRACT] = run->contract}};
    audit_set(&record, AUDIT_RUN, id);
    return record;
}

static void set_digest(struct audit_record *record, const uint8_t digest[AUDIT_HASH_BYTES]) {
    record->texts[AUDIT_DIGEST] = str_of(digest, AUDIT_HASH_BYTES);
}

/* What was asked is in the log under the run's number, and can be erased there. */
static bool add_started(struct audit *audit, uint64_t id, const struct event *event,
                        struct err *e) {
    const struct audit_run *run = audit_runs_put(&audit->runs, id, event->started.workspace,
                                                 event->started.user, event->started.contract);
    struct audit_record record = record_of(audit, run, id, STR("runtime.run"), STR("start"));
    record.texts[AUDIT_CAPABILITY] = event->agent;
    return audit_add(audit, &record, e);
}

/* The sentence of a failure stays in the log as well: it may be a model's refusal, or what an
 * agent elsewhere said, and so repeat the conversation, which an erasure must reach. */
static bool add_ended(struct audit *audit, uint64_t id, const struct event *event,
                      struct err *e) {
    struct audit_run *run = run_of(audit, id, e);
    if (!run) return false;
    struct audit_record record =
        record_of(audit, run, id, STR("runtime.run"), event_kind_name(event->kind));
    enum err_code code = ERR_NONE;
    if (event->kind == EVENT_DONE) record.texts[AUDIT_MODEL] = event->done.model;
    if (event->kind == EVENT_FAILED) {
        code = event->failed.code;
        record.texts[AUDIT_REASON] = event->failed.reason;
    } else if (event->kind == EVENT_CANCELLED) {
        code = ERR_CANCELLED;
    }
    audit_set(&record, AUDIT_OUTCOME, code);
    bool ok = audit_add(audit, &record, e);
    audit_runs_remove(&audit->runs, id);
    return ok;
}

static bool add_asked(struct audit *audit, uint64_t id, const struct event *event,
                      struct err *e) {
    uint8_t digest[AUDIT_HASH_BYTES];
    struct audit_run *run = run_of(audit, id, e);
    if (!run) return false;
    struct audit_record record =
        record_of(audit, run, id, STR("runtime.approval"), STR("asked"));
    const struct str asked[] = {event->approval.question, event->approval.args};
    audit_digest(asked, ARRAY_LEN(asked), digest);
    set_digest(&record, digest);
    record.texts[AUDIT_CAPABILITY] = event->approval.tool;
    audit_questions_put(&audit->runs.questions, id, event->approval.call_id);
    run->row = audit->row;
    list_remove(&run->waiting);
    list_append(&audit->runs.waiting, &run->waiting);
    return audit_add(audit, &record, e);
}

/* The result of a question's id is the answer. After a restart the question is not known, and
 * the form of the answer shows that it is one. */
static bool is_answer(const struct audit_question *asked, const struct event *event) {
    struct str id = event->tool_result.call_id;
    if (str_starts(id, STR(EVENT_APPROVAL_ID))) return true;
    if (asked) return audit_question_is(asked, id);
    return str_starts(event->tool_result.result, STR("{\"answer\":"));
}

/* "approve", "refuse" or "edit" of an answer to a call; "answered" of one in words. */
static struct str decision_of(struct str result) {
    static const struct str head = STR_INIT("{\"decision\":\"");
    if (!str_starts(result, head)) return STR("answered");
    result = str_skip(result, head.len);
    return str_head(result, str_find_byte(result, '"'));
}

static bool add_result(struct audit *audit, uint64_t id, const struct event *event,
                       struct err *e) {
    uint8_t digest[AUDIT_HASH_BYTES];
    struct audit_questions *questions = &audit->runs.questions;
    if (!is_answer(audit_questions_find(questions, id), event)) return true;
    struct audit_run *run = run_of(audit, id, e);
    if (!run) return false;
    struct audit_record record =
        record_of(audit, run, id, STR("runtime.approval"), STR("decided"));
    audit_digest(&event->tool_result.result, 1, digest);
    set_digest(&record, digest);
    record.texts[AUDIT_REASON] = decision_of(event->tool_result.result);
    audit_set(&record, AUDIT_OUTCOME, ERR_NONE);
    audit_questions_remove(questions, id);
    list_remove(&run->waiting);
    return audit_add(audit, &record, e);
}

/* --- events --------------------------------------------------------------------------------- */

typedef bool add_fn(struct audit *audit, uint64_t id, const struct event *event, struct err *e);

static add_fn *const kinds[EVENT_KIND_COUNT] = {
    [EVENT_STARTED] = add_started, [EVENT_TOOL_RESULT] = add_result,
    [EVENT_APPROVAL] = add_asked,  [EVENT_DONE] = add_ended,
    [EVENT_FAILED] = add_ended,    [EVENT_CANCELLED] = add_ended,
};

bool audit_see(struct audit *audit, int64_t row, uint64_t run, const struct event *event,
               struct err *e) {
    add_fn *add = kinds[event->kind];
    audit->row = row;
    return !add || add(audit, run, event, e);
}
