/* palace: the memory tools of an orchestrator, over the memories of the workspace.
 *
 *     drawer   an entry: category "<wing>/<room>", its key is the drawer's id
 *     diary    an entry: category "diary/<agent>", its key "<topic>:<when>-<random>"
 *
 * Memories that something else put there, with a category without a slash, are drawers of that
 * wing, in no room. What a store of texts cannot tell truthfully is no tool here: no graph of
 * facts, no similarity. */
#include "base/clock.h"
#include "base/mem.h"
#include "orchestrator/mcp/inner.h"
#include "store/memory.h"
#include "wire/digest.h"

#include <stdlib.h>

#define PAGES_MAX 100           /* of a count, so at most 100,000 drawers */
#define PAGE_BYTES (1 * MIB)    /* of text in one page */
#define SHOWN_BYTES (256 * KIB) /* of text in an answer */
#define RESULT_MAX_BYTES (4 * MIB)
#define ROOMS_MAX 10000
#define DIARY STR("diary/")

/* One call. */
struct palace {
    struct orchestrator_call *call;
    enum orchestrator_tool tool;
    struct memory_ask *ask;
    struct memory_query query;
    struct str wing, room; /* only these; empty: any */
    size_t wanted;
    /* Counting. */
    struct str *categories; /* in the call's arena */
    size_t *counts;
    size_t category_count, total, pages;
    struct str id; /* of the drawer that was added, or removed */
    bool changes;  /* it adds or removes: this is under way */
    bool left;     /* no caller waits for it, and its texts are gone */
};

/* --- endings ------------------------------------------------------------------------------ */

static void palace_free(struct palace *palace) {
    memory_forget(palace->ask);
    free(palace->categories);
    free(palace->counts);
    free(palace);
}

static void palace_fail(struct palace *palace, struct str text) {
    orchestrator_call_fail(palace->call, text);
    palace_free(palace);
}

static void palace_answer(struct palace *palace, const struct buf *result) {
    if (!buf_ok(result)) {
        palace_fail(palace, STR("the result is larger than an answer may be"));
        return;
    }
    orchestrator_call_answer(palace->call, buf_str(result));
    palace_free(palace);
}

/* The store's messages name files, so they are for the operator only. */
static bool palace_failed(struct palace *palace, const struct err *failed) {
    palace->ask = NULL;
    if (!failed) return false;
    if (memory_refused(failed))
        palace_fail(palace, STR("too many searches of this workspace run or wait already; ask "
                                "again when they are answered"));
    else
        palace_fail(palace, STR("the memory cannot be reached now; try again later"));
    return true;
}

/* A change is made nevertheless, and what became of it is awaited. */
static void palace_on_gone(void *ctx) {
    struct palace *palace = ctx;
    palace->left = true;
    if (!palace->changes) palace_fail(palace, STR("the caller left before it was read"));
}

static struct palace *palace_new(struct orchestrator_call *call,
                                 const struct orchestrator_call_view *view) {
    struct palace *palace = MEM_NEW(struct palace);
    palace->call = call;
    palace->tool = view->tool;
    palace->query.workspace = view->workspace;
    palace->query.max_bytes = PAGE_BYTES;
    palace->query.category = palace->query.words = STR_EMPTY;
    palace->wing = palace->room = palace->id = STR_EMPTY;
    orchestrator_call_watch(call, palace_on_gone, palace);
    return palace;
}

static void palace_list(struct palace *palace, memory_done_fn *done) {
    palace->ask =
        memory_list_start(orchestrator_call_store(palace->call),
                          orchestrator_call_loop(palace->call), &palace->query, done, palace);
}

/* --- arguments ---------------------------------------------------------------------------- */

static struct str palace_text_of(const struct palace *palace,
                                 const struct orchestrator_call_view *view, struct str key) {
    struct str text;
    struct json value = json_find(view->arguments, key);
    return json_str(value, orchestrator_call_arena(palace->call), &text) ? text : STR_EMPTY;
}

static size_t palace_number_of(const struct orchestrator_call_view *view, struct str key,
                               size_t usual, size_t most) {
    int64_t number;
    if (!json_i64(json_find(view->arguments, key), &number) || number < 1) return usual;
    return (uint64_t)number < most ? (size_t)number : most;
}

/* "<wing>/<room>": a slash in a wing would make it another wing's room. */
static bool palace_place_of(const struct palace *palace, struct str wing, struct str room,
                            struct str *ret, struct err *e) {
    struct buf category;
    if (str_find_byte(wing, '/') < wing.len)
        return err_set(e, ERR_INVALID_ARGUMENT, "the name of a wing must not have a slash");
    buf_init(&category, KIB);
    buf_append(&category, wing);
    buf_append_byte(&category, '/');
    buf_append(&category, room);
    bool kept = buf_ok(&category) && category.len <= MEMORY_CATEGORY_MAX_BYTES &&
                arena_str(orchestrator_call_arena(palace->call), buf_str(&category), ret);
    buf_done(&category);
    return kept ||
           err_set(e, ERR_INVALID_ARGUMENT, "wing and room together are longer than %d bytes",
                   MEMORY_CATEGORY_MAX_BYTES - 1);
}

static struct str wing_of(struct str category, struct str *ret_room) {
    struct str wing = str_split(category, '/', ret_room);
    if (!ret_room->at) *ret_room = STR_EMPTY;
    return wing;
}

static bool palace_is_wanted(const struct palace *palace, struct str category) {
    struct str room, wing = wing_of(category, &room);
    return (!palace->wing.len || str_equal(wing, palace->wing)) &&
           (!palace->room.len || str_equal(room, palace->room));
}

/* --- counting: status, wings, rooms, taxonomy --------------------------------------------- */

static bool count_entry(struct palace *palace, struct str category) {
    size_t i = 0;
    if (!palace_is_wanted(palace, category)) return true;
    while (i < palace->category_count && !str_equal(palace->categories[i], category)) i++;
    if (i == palace->category_count) {
        if (i == ROOMS_MAX) return false;
        palace->categories =
            mem_resize(palace->categories, (i + 1) * sizeof(*palace->categories));
        palace->counts = mem_resize(palace->counts, (i + 1) * sizeof(*palace->counts));
        if (!arena_str(orchestrator_call_arena(palace->call), category, &palace->categories[i]))
            return false;
        palace->counts[i] = 0;
        palace->category_count++;
    }
    palace->counts[i]++;
    palace->total++;
    return true;
}

/* Whether an earlier category has the same wing. */
static bool is_known_wing(const struct palace *palace, size_t index) {
    struct str room, wing = wing_of(palace->categories[index], &room);
    for (size_t i = 0; i < index; i++) {
        if (str_equal(wing_of(palace->categories[i], &room), wing)) return true;
    }
    return false;
}

static size_t count_wing(const struct palace *palace, struct str wing) {
    struct str room;
    size_t count = 0;
    for (size_t i = 0; i < palace->category_count; i++) {
        if (str_equal(wing_of(palace->categories[i], &room), wing)) count += palace->counts[i];
    }
    return count;
}

static void write_wings(const struct palace *palace, struct json_writer *w) {
    struct str room;
    json_member_object(w, "wings");
    for (size_t i = 0; i < palace->category_count; i++) {
        if (is_known_wing(palace, i)) continue;
        struct str wing = wing_of(palace->categories[i], &room);
        json_key(w, wing);
        json_write_u64(w, count_wing(palace, wing));
    }
    json_close(w);
}

static void write_rooms(const struct palace *palace, struct str wing, struct json_writer *w) {
    struct str room;
    for (size_t i = 0; i < palace->category_count; i++) {
        if (!str_equal(wing_of(palace->categories[i], &room), wing)) continue;
        json_key(w, room);
        json_write_u64(w, palace->counts[i]);
    }
}

/* The rooms of one wing, or each wing with its rooms. */
static void write_taxonomy(const struct palace *palace, const char *key,
                           struct json_writer *w) {
    struct str room;
    json_member_object(w, key);
    if (palace->wing.len) write_rooms(palace, palace->wing, w);
    for (size_t i = 0; !palace->wing.len && i < palace->category_count; i++) {
        if (is_known_wing(palace, i)) continue;
        struct str wing = wing_of(palace->categories[i], &room);
        json_key(w, wing);
        json_open_object(w);
        write_rooms(palace, wing, w);
        json_close(w);
    }
    json_close(w);
}

static void answer_counts(struct palace *palace) {
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    if (palace->tool == ORCHESTRATOR_MEMORY_STATUS)
        json_member_u64(&w, "total_drawers", palace->total);
    if (palace->tool == ORCHESTRATOR_MEMORY_STATUS ||
        palace->tool == ORCHESTRATOR_MEMORY_LIST_WINGS) {
        write_wings(palace, &w);
    } else {
        bool rooms = palace->tool == ORCHESTRATOR_MEMORY_LIST_ROOMS;
        write_taxonomy(palace, rooms ? "rooms" : "taxonomy", &w);
    }
    json_close(&w);
    palace_answer(palace, &result);
    buf_done(&result);
}

static void on_counted(const struct memory_answer *answer, const struct err *failed,
                       void *ctx) {
    struct palace *palace = ctx;
    if (palace_failed(palace, failed)) return;
    for (size_t i = 0; i < answer->count; i++) {
        if (count_entry(palace, answer->entries[i].category)) continue;
        palace_fail(palace, STR("the memory has more rooms than can be listed"));
        return;
    }
    if (!answer->more && !answer->cut) {
        answer_counts(palace);
    } else if (++palace->pages == PAGES_MAX || answer->count == 0) {
        palace_fail(palace, STR("the memory has more drawers than can be counted at once"));
    } else {
        palace->query.offset += answer->count;
        palace_list(palace, on_counted);
    }
}

static void count(struct orchestrator_call *call, const struct orchestrator_call_view *view,
                  void *ctx) {
    struct palace *palace = palace_new(call, view);
    (void)ctx;
    palace->wing = palace_text_of(palace, view, STR("wing"));
    palace->query.limit = MEMORY_LIST_MAX;
    palace_list(palace, on_counted);
}

/* --- search, and reading a diary ---------------------------------------------------------- */

static void write_drawer(const struct memory_entry *entry, struct json_writer *w) {
    struct str room, wing = wing_of(entry->category, &room);
    json_open_object(w);
    json_member_str(w, "drawer_id", entry->key);
    json_member_str(w, "wing", wing);
    json_member_str(w, "room", room);
    json_member_str(w, "content", entry->content);
    json_member_i64(w, "filed_at_unix_ms", entry->created_us / 1000);
    json_close(w);
}

/* "<topic>:<when>-<random>" */
static void write_diary(const struct memory_entry *entry, struct json_writer *w) {
    size_t colon = entry->key.len;
    while (colon > 0 && entry->key.at[colon - 1] != ':') colon--;
    json_open_object(w);
    json_member_str(w, "entry", entry->content);
    json_member_str(w, "topic", str_head(entry->key, colon > 0 ? colon - 1 : 0));
    json_member_i64(w, "written_at_unix_ms", entry->created_us / 1000);
    json_close(w);
}

static void palace_on_found(const struct memory_answer *answer, const struct err *failed,
                            void *ctx) {
    struct palace *palace = ctx;
    struct buf result;
    size_t shown = 0;
    bool diary = palace->tool == ORCHESTRATOR_MEMORY_DIARY_READ;
    if (palace_failed(palace, failed)) return;
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    json_member_array(&w, diary ? "entries" : "results");
    for (size_t i = 0; i < answer->count && shown < palace->wanted; i++) {
        if (!palace_is_wanted(palace, answer->entries[i].category)) continue;
        (diary ? write_diary : write_drawer)(&answer->entries[i], &w);
        shown++;
    }
    json_close(&w);
    json_member_u64(&w, "count", shown);
    json_close(&w);
    palace_answer(palace, &result);
    buf_done(&result);
}

static void find(struct palace *palace) {
    struct err e;
    if (!memory_check_query(&palace->query, &e)) {
        palace_fail(palace, err_text(&e));
        return;
    }
    palace_list(palace, palace_on_found);
}

/* A wing or a room alone is no category, so more is asked for than is shown. */
static void search(struct orchestrator_call *call, const struct orchestrator_call_view *view,
                   void *ctx) {
    struct palace *palace = palace_new(call, view);
    struct err e;
    (void)ctx;
    palace->wing = palace_text_of(palace, view, STR("wing"));
    palace->room = palace_text_of(palace, view, STR("room"));
    palace->wanted = palace_number_of(view, STR("limit"), 5, 100);
    palace->query.words = palace_text_of(palace, view, STR("query"));
    palace->query.match = MEMORY_ANY_WORD;
    palace->query.limit =
        palace->wing.len || palace->room.len ? MEMORY_LIST_MAX : palace->wanted;
    bool whole = palace->wing.len && palace->room.len;
    if (whole &&
        !palace_place_of(palace, palace->wing, palace->room, &palace->query.category, &e)) {
        palace_fail(palace, err_text(&e));
    } else {
        find(palace);
    }
}

static void diary_read(struct orchestrator_call *call,
                       const struct orchestrator_call_view *view, void *ctx) {
    struct palace *palace = palace_new(call, view);
    struct err e;
    (void)ctx;
    palace->wanted = palace->query.limit = palace_number_of(view, STR("last_n"), 10, 100);
    palace->query.max_bytes = SHOWN_BYTES;
    if (palace_place_of(palace, STR("diary"), palace_text_of(palace, view, STR("agent_name")),
                        &palace->query.category, &e)) {
        find(palace);
    } else {
        palace_fail(palace, err_text(&e));
    }
}

/* --- adding and removing ------------------------------------------------------------------ */

/* For the audit log alone: it has taken effect. */
static bool palace_unheard(struct palace *palace) {
    if (!palace->left) return false;
    orchestrator_call_answer(palace->call, STR("{\"success\":true}"));
    palace_free(palace);
    return true;
}

static void palace_on_put(const struct memory_answer *answer, const struct err *failed,
                          void *ctx) {
    struct palace *palace = ctx;
    struct buf result;
    struct str room, wing;
    if (palace_failed(palace, failed) || palace_unheard(palace)) return;
    wing = wing_of(answer->entries[0].category, &room);
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    json_member_bool(&w, "success", true);
    json_member_str(&w,
                    palace->tool == ORCHESTRATOR_MEMORY_ADD_DRAWER ? "drawer_id" : "entry_id",
                    palace->id);
    json_member_str(&w, "wing", wing);
    json_member_str(&w, "room", room);
    json_close(&w);
    palace_answer(palace, &result);
    buf_done(&result);
}

static void palace_put(struct palace *palace, const struct orchestrator_call_view *view,
                       const struct memory_entry *entry) {
    struct err e;
    palace->id = entry->key;
    if (!memory_check_entry(entry, &e)) {
        palace_fail(palace, err_text(&e));
        return;
    }
    palace->changes = true;
    palace->ask = memory_put_start(orchestrator_call_store(palace->call),
                                   orchestrator_call_loop(palace->call),
                                   (struct audit_actor){STR("crawbl"), view->user},
                                   view->workspace, entry, palace_on_put, palace);
}

/* The same text in the same room is the same drawer. */
static bool drawer_id(const struct palace *palace, struct str category, struct str content,
                      struct str *ret) {
    const struct str parts[] = {category, content};
    uint8_t digest[DIGEST_BYTES];
    struct buf text;
    digest_parts(parts, ARRAY_LEN(parts), digest);
    buf_init(&text, 64);
    buf_append(&text, STR("drawer_"));
    for (size_t i = 0; i < 12; i++) buf_printf(&text, "%02x", digest[i]);
    bool kept = arena_str(orchestrator_call_arena(palace->call), buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

static void add_drawer(struct orchestrator_call *call,
                       const struct orchestrator_call_view *view, void *ctx) {
    struct palace *palace = palace_new(call, view);
    struct memory_entry entry = {.content = palace_text_of(palace, view, STR("content"))};
    struct err e;
    (void)ctx;
    if (!palace_place_of(palace, palace_text_of(palace, view, STR("wing")),
                         palace_text_of(palace, view, STR("room")), &entry.category, &e)) {
        palace_fail(palace, err_text(&e));
    } else if (!drawer_id(palace, entry.category, entry.content, &entry.key)) {
        palace_fail(palace, STR("the text is longer than a call may hold"));
    } else {
        palace_put(palace, view, &entry);
    }
}

static void diary_write(struct orchestrator_call *call,
                        const struct orchestrator_call_view *view, void *ctx) {
    struct palace *palace = palace_new(call, view);
    struct memory_entry entry = {.content = palace_text_of(palace, view, STR("entry"))};
    struct str topic = palace_text_of(palace, view, STR("topic"));
    char random[TOOLSERVER_SESSION_BYTES];
    struct buf key;
    struct err e;
    (void)ctx;
    if (!toolserver_random_id(random, &e)) {
        palace_fail(palace, err_text(&e));
        return;
    }
    buf_init(&key, KIB);
    buf_append(&key, topic.len ? topic : STR("general"));
    buf_append_byte(&key, ':');
    buf_append_i64(&key, clock_unix_ms());
    buf_append_byte(&key, '-');
    buf_append(&key, str_from(random));
    bool kept =
        buf_ok(&key) && arena_str(orchestrator_call_arena(call), buf_str(&key), &entry.key);
    buf_done(&key);
    if (!kept) {
        palace_fail(palace, STR("the topic is too long"));
    } else if (!palace_place_of(palace, STR("diary"),
                                palace_text_of(palace, view, STR("agent_name")),
                                &entry.category, &e)) {
        palace_fail(palace, err_text(&e));
    } else {
        palace_put(palace, view, &entry);
    }
}

static void palace_on_removed(const struct memory_answer *answer, const struct err *failed,
                              void *ctx) {
    struct palace *palace = ctx;
    struct buf result;
    if (palace_failed(palace, failed)) return;
    if (answer->count == 0) {
        palace_fail(palace, STR("there is no drawer with this id"));
        return;
    }
    if (palace_unheard(palace)) return;
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    json_member_bool(&w, "success", true);
    json_member_str(&w, "drawer_id", palace->id);
    json_close(&w);
    palace_answer(palace, &result);
    buf_done(&result);
}

static void delete_drawer(struct orchestrator_call *call,
                          const struct orchestrator_call_view *view, void *ctx) {
    struct palace *palace = palace_new(call, view);
    struct err e;
    (void)ctx;
    palace->id = palace_text_of(palace, view, STR("drawer_id"));
    if (!memory_check_key(palace->id, &e)) {
        palace_fail(palace, err_text(&e));
        return;
    }
    palace->changes = true;
    palace->ask =
        memory_remove_start(orchestrator_call_store(call), orchestrator_call_loop(call),
                            (struct audit_actor){STR("crawbl"), view->user}, view->workspace,
                            palace->id, palace_on_removed, palace);
}

orchestrator_tool_fn *orchestrator_palace_tool(enum orchestrator_tool tool) {
    switch (tool) {
    case ORCHESTRATOR_MEMORY_STATUS:
    case ORCHESTRATOR_MEMORY_LIST_WINGS:
    case ORCHESTRATOR_MEMORY_LIST_ROOMS:
    case ORCHESTRATOR_MEMORY_GET_TAXONOMY: return count;
    case ORCHESTRATOR_MEMORY_SEARCH: return search;
    case ORCHESTRATOR_MEMORY_ADD_DRAWER: return add_drawer;
    case ORCHESTRATOR_MEMORY_DELETE_DRAWER: return delete_drawer;
    case ORCHESTRATOR_MEMORY_DIARY_WRITE: return diary_write;
    case ORCHESTRATOR_MEMORY_DIARY_READ: return diary_read;
    default: return NULL;
    }
}
