#include "mcp/listing.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/param_headers.h"

#include <stdlib.h>

#define PAGE_MS 15000
#define LIST_MAX_BYTES (8 * MIB)
#define NAME_MAX_BYTES 64

struct mcp_listing {
    struct mcp_client *client;
    struct mcp_caller caller; /* in the arena */
    struct arena *arena;
    struct mcp_tool_info *tools;
    size_t count;
    unsigned pages;
    struct str cursor;
    struct mcp_call *call; /* NULL: no request is open */
    mcp_listed_fn *done;
    void *ctx;
};

static void ask_page(struct mcp_listing *listing);

/* --- one tool ----------------------------------------------------------------------------- */

static bool listing_is_name(struct str name) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    for (size_t i = 0; i < name.len; i++) {
        if (!name.at[i] || !strchr(plain, name.at[i])) return false;
    }
    return name.len > 0 && name.len <= NAME_MAX_BYTES;
}

static bool is_listed(const struct mcp_listing *listing, struct str name) {
    for (size_t i = 0; i < listing->count; i++) {
        if (str_equal(listing->tools[i].name, name)) return true;
    }
    return false;
}

static bool says(struct json annotations, const char *hint) {
    bool yes = false;
    return json_bool(json_find(annotations, str_from(hint)), &yes) && yes;
}

static bool listing_keep_text(struct mcp_listing *listing, struct json string,
                              struct str *ret) {
    struct str text = STR_EMPTY;
    if (string.kind == JSON_STRING && !json_str(string, listing->arena, &text)) return false;
    return arena_str(listing->arena, text, ret);
}

/* Over HTTP, a tool with invalid headers is left out. */
static bool is_usable(const struct mcp_listing *listing, struct str name, struct json schema) {
    struct err e;
    if (!mcp_client_is_http(listing->client) || !param_headers_wanted(schema.raw) ||
        param_headers_check(schema, &e))
        return true;
    log_often(LOG_WARNING, "the tool '" STR_FMT "' of the MCP server is left out: %s",
              STR_ARG(name), e.text);
    return false;
}

/* False: the arena is full. A tool that cannot be offered is skipped. */
static bool take_tool(struct mcp_listing *listing, struct json item) {
    struct mcp_tool_info *tool = &listing->tools[listing->count];
    struct json schema = json_find(item, STR("inputSchema"));
    struct json annotations = json_find(item, STR("annotations"));
    struct str parameters = STR("{\"type\":\"object\"}");
    if (schema.kind == JSON_OBJECT) parameters = schema.raw;
    if (!listing_keep_text(listing, json_find(item, STR("name")), &tool->name)) return false;
    if (!listing_is_name(tool->name) || is_listed(listing, tool->name)) {
        log_often(LOG_WARNING, "a tool of the MCP server is left out: its name is %s",
                  listing_is_name(tool->name) ? "there twice" : "none that models accept");
        return true;
    }
    if (!is_usable(listing, tool->name, schema)) return true;
    tool->idempotent = says(annotations, "idempotentHint") || says(annotations, "readOnlyHint");
    if (!listing_keep_text(listing, json_find(item, STR("description")), &tool->description) ||
        !arena_str(listing->arena, parameters, &tool->schema))
        return false;
    listing->count++;
    return true;
}

/* --- pages -------------------------------------------------------------------------------- */

static bool too_much(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "the MCP server has more than %zu tools, or too long ones",
                   MCP_TOOLS_MAX);
}

static bool take_page(struct mcp_listing *listing, struct json result, struct err *e) {
    struct json item, tools = json_find(result, STR("tools"));
    if (tools.kind != JSON_ARRAY)
        return err_set(e, ERR_UNAVAILABLE, "the MCP server's list of tools is %s",
                       json_kind_name(tools.kind));
    struct json_reader reader = json_enter(tools);
    while (json_next_item(&reader, &item)) {
        if (listing->count == MCP_TOOLS_MAX || !take_tool(listing, item)) return too_much(e);
    }
    return listing_keep_text(listing, json_find(result, STR("nextCursor")), &listing->cursor) ||
           too_much(e);
}

static void listing_on_page(struct json result, const struct err *failed, void *ctx) {
    struct mcp_listing *listing = ctx;
    struct err e;
    listing->call = NULL;
    if (failed) {
        listing->done(failed, listing->ctx);
    } else if (!take_page(listing, result, &e)) {
        listing->done(&e, listing->ctx);
    } else if (!listing->cursor.len) {
        listing->done(NULL, listing->ctx);
    } else if (++listing->pages == MCP_PAGES_MAX) {
        err_set(&e, ERR_TOO_LARGE, "the MCP server's list of tools has more than %d pages",
                MCP_PAGES_MAX);
        listing->done(&e, listing->ctx);
    } else {
        ask_page(listing);
    }
}

static void ask_page(struct mcp_listing *listing) {
    struct buf params;
    buf_init(&params, SIZE_MAX);
    if (listing->cursor.len) {
        struct json_writer w = json_writer(&params);
        json_open_object(&w);
        json_member_str(&w, "cursor", listing->cursor);
        json_close(&w);
    }
    struct mcp_request request = {.caller = listing->caller,
                                  .method = "tools/list",
                                  .params = buf_str(&params),
                                  .total_ms = PAGE_MS,
                                  .repeatable = true};
    listing->call = mcp_call_start(listing->client, &request, listing_on_page, listing);
    buf_done(&params);
}

/* --- public functions --------------------------------------------------------------------- */

struct mcp_listing *mcp_list(struct mcp_client *client, const struct mcp_caller *caller,
                             mcp_listed_fn *done, void *ctx) {
    struct mcp_listing *listing = MEM_NEW(struct mcp_listing);
    size_t names = caller->user.len + caller->workspace.len + caller->conversation.len;
    listing->client = mcp_client_ref(client);
    listing->arena = arena_new(LIST_MAX_BYTES + names);
    listing->tools = mem_zero(MCP_TOOLS_MAX, sizeof(*listing->tools));
    listing->cursor = STR_EMPTY;
    listing->done = done;
    listing->ctx = ctx;
    if (!arena_str(listing->arena, caller->user, &listing->caller.user) ||
        !arena_str(listing->arena, caller->workspace, &listing->caller.workspace) ||
        !arena_str(listing->arena, caller->conversation, &listing->caller.conversation))
        abort(); /* there is room for it */
    ask_page(listing);
    return listing;
}

void mcp_listing_free(struct mcp_listing *listing) {
    if (!listing) return;
    if (listing->call) mcp_call_cancel(listing->call);
    mcp_client_unref(listing->client);
    arena_free(listing->arena);
    free(listing->tools);
    free(listing);
}

const struct mcp_tool_info *mcp_listing_tools(const struct mcp_listing *listing,
                                              size_t *ret_count) {
    *ret_count = listing->count;
    return listing->tools;
}

bool mcp_tool_same(const struct mcp_tool_info *a, const struct mcp_tool_info *b) {
    return str_equal(a->name, b->name) && str_equal(a->description, b->description) &&
           str_equal(a->schema, b->schema) && a->idempotent == b->idempotent;
}

bool mcp_listing_same(const struct mcp_listing *a, const struct mcp_listing *b) {
    if (!a || !b || a->count != b->count) return a == b;
    for (size_t i = 0; i < a->count; i++) {
        if (!mcp_tool_same(&a->tools[i], &b->tools[i])) return false;
    }
    return true;
}
