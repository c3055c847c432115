/* Checks of the Memory service. Each works with a key of its own and removes it. */
#include "proto/memory.pb.h"
#include "validate/converse.h"

#include <stdio.h>

#define LIST "/crawbl.agentruntime.v1.Memory/ListMemories"
#define CREATE "/crawbl.agentruntime.v1.Memory/CreateMemory"
#define DELETE "/crawbl.agentruntime.v1.Memory/DeleteMemory"

#define CATEGORY STR("weir-validate")
#define LIST_CATEGORY STR("weir-validate-list")

/* One call, its reply decoded, and what people are shown of it. */
struct asked {
    struct talk talk;
    bool decoded;
    union {
        const void *any;
        const struct crawbl_list_memories_response *list;
        const struct crawbl_create_memory_response *create;
    } reply;
};

static void show_entry(const struct crawbl_memory_entry *entry, struct buf *out) {
    buf_printf(out, "entry '" STR_FMT "' category '" STR_FMT "' content '" STR_FMT "'%s\n",
               STR_ARG(str_head(entry->key, 100)), STR_ARG(str_head(entry->category, 100)),
               STR_ARG(str_head(entry->content, 100)),
               entry->created_at && entry->updated_at ? "" : " without its times");
}

static void converse_memory_show(struct asked *asked, const char *path, bool is_list) {
    struct buf text;
    buf_init(&text, FINDING_SEEN_MAX_BYTES);
    buf_append(&asked->talk.sent_text, str_from(path));
    for (size_t i = 0;
         asked->decoded && is_list && i < asked->reply.list->entries_count && i < 20; i++)
        show_entry(&asked->reply.list->entries[i], &text);
    buf_append(&text, STR("end: "));
    talk_describe_end(&asked->talk, &text);
    talk_show(&asked->talk, buf_str(&text));
    buf_done(&text);
}

static void ask_memory(struct judge *judge, const char *path, const struct pb_message *type,
                       const void *request, const struct pb_message *reply_type,
                       struct asked *ret) {
    struct buf bytes, bearer;
    buf_init(&bytes, 64 * KIB);
    buf_init(&bearer, 64 * KIB);
    pb_encode(type, request, &bytes);
    converse_put_bearer(converse_of(judge), &bearer);
    converse_call(converse_of(judge), path, buf_str(&bearer), buf_str(&bytes), &ret->talk);
    ret->decoded =
        talk_decode(&ret->talk, reply_type, &ret->reply.any) == 1 && ret->talk.count == 1;
    converse_memory_show(ret, path, reply_type == &crawbl_list_memories_response_table);
    buf_done(&bytes);
    buf_done(&bearer);
}

static void create(struct judge *judge, struct str workspace, const char *key,
                   struct str content, struct str category, struct asked *ret) {
    ask_memory(
        judge, CREATE, &crawbl_create_memory_request_table,
        &(struct crawbl_create_memory_request){workspace, str_from(key), content, category},
        &crawbl_create_memory_response_table, ret);
}

static void converse_memory_list(struct judge *judge, struct str category, int32_t limit,
                                 int32_t offset, struct asked *ret) {
    ask_memory(judge, LIST, &crawbl_list_memories_request_table,
               &(struct crawbl_list_memories_request){judge->options->workspace, category,
                                                      limit, offset},
               &crawbl_list_memories_response_table, ret);
}

static void delete (struct judge *judge, const char *key, struct asked *ret) {
    ask_memory(judge, DELETE, &crawbl_delete_memory_request_table,
               &(struct crawbl_delete_memory_request){judge->options->workspace, str_from(key)},
               &crawbl_delete_memory_response_table, ret);
}

static void converse_memory_forget(struct judge *judge, const char *key) {
    struct asked asked;
    delete (judge, key, &asked);
    talk_done(&asked.talk);
}

/* False, and the check is settled: it ended otherwise. */
static bool judge_status_of(struct judge *judge, const struct asked *asked, enum err_code code,
                            const char *of) {
    char end[TALK_END_BYTES];
    if (talk_ended_with(&asked->talk, code) && (code || asked->decoded)) return true;
    return judge_break(judge, &asked->talk.evidence, "expected %s for %s, got %s",
                       code ? err_kinds[code].name : "OK", of, talk_end(&asked->talk, end));
}

/* Whether the service stores what it is given; else the check is skipped. */
static bool remembers(struct judge *judge, const char *key, struct str content,
                      struct str category) {
    struct asked asked;
    create(judge, judge->options->workspace, key, content, category, &asked);
    bool good = (talk_ended_with(&asked.talk, ERR_NONE) && asked.decoded) ||
                judge_skip(judge, "nothing can be stored (MEMO-01)");
    talk_done(&asked.talk);
    return good;
}

/* --- create ------------------------------------------------------------------------------------- */

static bool same_entry(const struct crawbl_memory_entry *entry, const char *key,
                       struct str content, struct str category) {
    return entry && str_equal(entry->key, str_from(key)) &&
           str_equal(entry->content, content) && str_equal(entry->category, category);
}

void check_memory_create(struct judge *judge) {
    static const char key[] = "weir-validate-create";
    struct asked asked;
    create(judge, judge->options->workspace, key, STR("one"), CATEGORY, &asked);
    if (judge_status_of(judge, &asked, ERR_NONE, "CreateMemory")) {
        const struct crawbl_memory_entry *entry = asked.reply.create->entry;
        if (!same_entry(entry, key, STR("one"), CATEGORY))
            judge_break(judge, &asked.talk.evidence, "expected the stored entry in the reply");
        else if (!entry->created_at || !entry->updated_at)
            judge_break(judge, &asked.talk.evidence,
                        "expected created_at and updated_at in the stored entry");
    }
    talk_done(&asked.talk);
    converse_memory_forget(judge, key);
}

static int64_t nanos_of(const struct google_timestamp *at) {
    return at ? at->seconds * 1000000000 + at->nanos : 0;
}

void check_memory_upsert(struct judge *judge) {
    static const char key[] = "weir-validate-upsert";
    struct asked one, two, all;
    converse_memory_forget(judge, key);
    if (!remembers(judge, key, STR("one"), CATEGORY)) return;
    create(judge, judge->options->workspace, key, STR("one"), CATEGORY, &one);
    create(judge, judge->options->workspace, key, STR("two"), CATEGORY, &two);
    converse_memory_list(judge, CATEGORY, 0, 0, &all);
    if (judge_status_of(judge, &two, ERR_NONE, "CreateMemory of a key that is there")) {
        size_t found = 0;
        for (size_t i = 0; all.decoded && i < all.reply.list->entries_count; i++)
            found += str_equal(all.reply.list->entries[i].key, str_from(key));
        if (!same_entry(two.reply.create->entry, key, STR("two"), CATEGORY))
            judge_break(judge, &two.talk.evidence, "expected the content to be replaced");
        else if (one.decoded && one.reply.create->entry &&
                 nanos_of(one.reply.create->entry->created_at) !=
                     nanos_of(two.reply.create->entry->created_at))
            judge_break(judge, &two.talk.evidence, "expected created_at to be kept");
        else if (all.decoded && found > 1)
            judge_break(judge, &all.talk.evidence, "expected one entry for the key, got %zu",
                        found);
    }
    talk_done(&one.talk);
    talk_done(&two.talk);
    talk_done(&all.talk);
    converse_memory_forget(judge, key);
}

/* --- list --------------------------------------------------------------------------------------- */

static const char *const list_keys[] = {"weir-validate-a", "weir-validate-b",
                                        "weir-validate-c"};

static bool store_three(struct judge *judge) {
    bool good = true;
    for (size_t i = 0; i < ARRAY_LEN(list_keys) && good; i++)
        good = remembers(judge, list_keys[i], STR("x"), LIST_CATEGORY);
    return good;
}

static void forget_three(struct judge *judge) {
    for (size_t i = 0; i < ARRAY_LEN(list_keys); i++)
        converse_memory_forget(judge, list_keys[i]);
}

/* updated_at descending, then key ascending. */
static bool is_ordered(const struct crawbl_memory_entry *a,
                       const struct crawbl_memory_entry *b) {
    int64_t at_a = nanos_of(a->updated_at), at_b = nanos_of(b->updated_at);
    return at_a > at_b || (at_a == at_b && str_compare(a->key, b->key) < 0);
}

void check_memory_list(struct judge *judge) {
    struct asked all;
    if (!store_three(judge)) return;
    converse_memory_list(judge, LIST_CATEGORY, 0, 0, &all);
    if (judge_status_of(judge, &all, ERR_NONE, "ListMemories")) {
        const struct crawbl_list_memories_response *reply = all.reply.list;
        if (reply->entries_count != ARRAY_LEN(list_keys))
            judge_break(judge, &all.talk.evidence, "expected the 3 stored entries, got %zu",
                        reply->entries_count);
        for (size_t i = 1; i < reply->entries_count; i++) {
            if (!is_ordered(&reply->entries[i - 1], &reply->entries[i]))
                judge_break(judge, &all.talk.evidence,
                            "expected the newest first, and equally new ones by their keys");
        }
    }
    talk_done(&all.talk);
    forget_three(judge);
}

void check_memory_pages(struct judge *judge) {
    struct asked page, beyond, negative;
    if (!store_three(judge)) return;
    converse_memory_list(judge, LIST_CATEGORY, 1, 1, &page);
    converse_memory_list(judge, LIST_CATEGORY, 10, 1000, &beyond);
    converse_memory_list(judge, LIST_CATEGORY, -1, 0, &negative);
    if (judge_status_of(judge, &page, ERR_NONE, "a page") &&
        page.reply.list->entries_count != 1)
        judge_break(judge, &page.talk.evidence,
                    "expected 1 entry for limit 1 and offset 1, got %zu",
                    page.reply.list->entries_count);
    if (judge_status_of(judge, &beyond, ERR_NONE, "an offset past the end") &&
        beyond.reply.list->entries_count)
        judge_break(judge, &beyond.talk.evidence, "expected no entries past the end, got %zu",
                    beyond.reply.list->entries_count);
    if (talk_ended_with(&negative.talk, ERR_NONE))
        judge_warn(judge, &negative.talk.evidence,
                   "expected INVALID_ARGUMENT for a negative limit");
    talk_done(&page.talk);
    talk_done(&beyond.talk);
    talk_done(&negative.talk);
    forget_three(judge);
}

void check_memory_category(struct judge *judge) {
    static const char key[] = "weir-validate-category";
    struct asked other;
    if (!remembers(judge, key, STR("x"), CATEGORY)) return;
    converse_memory_list(judge, STR("WEIR-VALIDATE"), 0, 0, &other);
    if (judge_status_of(judge, &other, ERR_NONE, "ListMemories of a category")) {
        for (size_t i = 0; i < other.reply.list->entries_count; i++) {
            if (str_equal(other.reply.list->entries[i].key, str_from(key)))
                judge_break(judge, &other.talk.evidence,
                            "expected only the category that was asked for, by its exact name");
        }
    }
    talk_done(&other.talk);
    converse_memory_forget(judge, key);
}

void check_memory_key(struct judge *judge) {
    struct asked asked;
    if (!remembers(judge, "weir-validate-key", STR("x"), CATEGORY)) return;
    create(judge, judge->options->workspace, "", STR("x"), CATEGORY, &asked);
    judge_status_of(judge, &asked, ERR_INVALID_ARGUMENT, "CreateMemory with an empty key");
    talk_done(&asked.talk);
    converse_memory_forget(judge, "weir-validate-key");
}

/* --- delete --------------------------------------------------------------------------------------- */

/* A deletion names no category: it removes the key in all (checks.md K14). */
void check_memory_delete(struct judge *judge) {
    static const char key[] = "weir-validate-delete";
    struct asked asked, all;
    if (!remembers(judge, key, STR("x"), CATEGORY)) return;
    delete (judge, key, &asked);
    converse_memory_list(judge, STR_EMPTY, 0, 0, &all);
    if (judge_status_of(judge, &asked, ERR_NONE, "DeleteMemory")) {
        for (size_t i = 0; all.decoded && i < all.reply.list->entries_count; i++) {
            if (str_equal(all.reply.list->entries[i].key, str_from(key)))
                judge_break(judge, &all.talk.evidence, "expected the entry to be gone");
        }
    }
    talk_done(&asked.talk);
    talk_done(&all.talk);
}

void check_memory_missing(struct judge *judge) {
    static const char key[] = "weir-validate-missing";
    struct asked asked;
    if (!remembers(judge, key, STR("x"), CATEGORY)) return;
    converse_memory_forget(judge, key);
    delete (judge, "weir-validate-nowhere", &asked);
    judge_status_of(judge, &asked, ERR_NOT_FOUND, "DeleteMemory of a key that is not there");
    talk_done(&asked.talk);
}

/* --- workspaces -------------------------------------------------------------------------------------- */

void check_memory_workspace(struct judge *judge) {
    struct asked asked;
    if (!converse_of(judge)->keys && !judge->options->token.len) {
        judge_skip(judge, "there is no token that names a workspace");
        return;
    }
    if (!remembers(judge, "weir-validate-own", STR("x"), CATEGORY)) return;
    create(judge, STR("weir-validate-other"), "weir-validate-foreign", STR("x"), CATEGORY,
           &asked);
    judge_status_of(judge, &asked, ERR_PERMISSION_DENIED,
                    "a workspace that is not the token's");
    talk_done(&asked.talk);
    converse_memory_forget(judge, "weir-validate-own");
    converse_memory_forget(judge, "weir-validate-foreign");
}

void check_memory_no_workspace(struct judge *judge) {
    struct asked asked;
    if (!remembers(judge, "weir-validate-own", STR("x"), CATEGORY)) return;
    create(judge, STR_EMPTY, "weir-validate-nobodys", STR("x"), CATEGORY, &asked);
    judge_status_of(judge, &asked, ERR_INVALID_ARGUMENT, "an empty workspace_id");
    talk_done(&asked.talk);
    converse_memory_forget(judge, "weir-validate-own");
    converse_memory_forget(judge, "weir-validate-nobodys");
}
