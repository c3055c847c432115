/* The items of an agent.yaml's lists: which keys they have, and whether a tool asks a person.
 *
 * Upstream's schema lets a tool have keys of its own, so an unknown one is only warned of; but one
 * that looks like a known key is a slip, and `aproval` must not run what it meant to ask about. */
#include "config/breeder_item.h"

#include "base/nearest.h"
#include "wire/json.h"

#include <stddef.h>

#define SHOWN_BYTES 60
#define NAME_MAX_BYTES 256

/* The members that have to be looked at; the others are read where they are used. */
struct item {
    struct str ref, name;
    const struct yaml *type, *transport, *approval, *rest;
};

#define ITEM(key, type, member)                                                                \
    { key, type, offsetof(struct item, member), false }
#define REST(key) ITEM(key, YAML_NODE, rest)

static const struct yaml_field tool_fields[] = {
    ITEM("ref", YAML_NAME, ref),   ITEM("name", YAML_NAME, name),
    ITEM("type", YAML_NODE, type), ITEM("approval", YAML_NODE, approval),
    REST("description"),           REST("schema"),
};
static const struct yaml_field knowledge_fields[] = {ITEM("ref", YAML_NAME, ref),
                                                     REST("entity_extraction"),
                                                     REST("retrieval"), REST("backend_url")};
static const struct yaml_field server_fields[] = {ITEM("ref", YAML_NAME, ref),
                                                  ITEM("transport", YAML_NODE, transport),
                                                  REST("url"), REST("image"), REST("port")};
static const struct yaml_field subagent_fields[] = {
    ITEM("ref", YAML_NAME, ref), ITEM("name", YAML_NAME, name), REST("description")};

static const char *const tool_types[] = {"function", "computer_use_20260401",
                                         "agent_toolset_20260401", "a2a", NULL};
static const char *const transports[] = {"stdio", "sse", "streamable_http", NULL};

struct item_form {
    const char *what, *example;
    const struct yaml_field *fields;
    size_t count;
    bool name_alone; /* `name` may stand without `ref` */
};

static const struct item_form forms[] = {
    [BREEDER_TOOL] = {"tool", "{ref: tools/web-search}", tool_fields, ARRAY_LEN(tool_fields),
                      true},
    [BREEDER_SERVER] = {"server", "{ref: mcp/github}", server_fields, ARRAY_LEN(server_fields),
                        false},
    [BREEDER_KNOWLEDGE] = {"knowledge base", "{ref: kb/docs}", knowledge_fields,
                           ARRAY_LEN(knowledge_fields), false},
    [BREEDER_SUBAGENT] = {"subagent", "{ref: agents/summarizer}", subagent_fields,
                          ARRAY_LEN(subagent_fields), false},
};

static bool is_known(const struct item_form *form, struct str key) {
    for (size_t i = 0; i < form->count; i++) {
        if (str_equal(key, str_from(form->fields[i].key))) return true;
    }
    return false;
}

static void offer_keys(const struct item_form *form, struct nearest *ret) {
    for (size_t i = 0; i < form->count; i++) nearest_offer(ret, str_from(form->fields[i].key));
}

/* --- approval ----------------------------------------------------------------------------- */

struct approval {
    const struct yaml *require, *timeout, *notify;
};

static const struct yaml_field approval_fields[] = {
    {"require", YAML_NODE, offsetof(struct approval, require), false},
    {"timeout", YAML_NODE, offsetof(struct approval, timeout), false},
    {"notify", YAML_NODE, offsetof(struct approval, notify), false},
};

/* As YAML 1.1 writes them, whose readers upstream uses. */
static bool read_word(struct str text, bool *ret) {
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"off", "on"}, {"", "required"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        for (int is = 0; is <= 1; is++) {
            if (!*words[i][is] || !str_equal_nocase(text, str_from(words[i][is]))) continue;
            *ret = is;
            return true;
        }
    }
    return false;
}

static bool read_require(const struct yaml *node, bool *ret, struct err *e) {
    if (node->kind == YAML_SCALAR && read_word(node->text, ret)) return true;
    return yaml_err(e, node, "an approval is true or false, or {require: true}");
}

/* 30m, as upstream's schema has it. */
static bool check_timeout(const struct yaml *node, struct err *e) {
    struct str text = node->kind == YAML_SCALAR ? node->text : STR_EMPTY;
    size_t digits = 0;
    while (digits < text.len && text.at[digits] >= '0' && text.at[digits] <= '9') digits++;
    bool good =
        digits && text.len == digits + 1 && str_find_byte(STR("smh"), text.at[digits]) < 3;
    return good || yaml_err(e, node, "a timeout is a number with s, m or h, such as 30m");
}

static bool read_approval(const struct yaml *node, bool *ret, bool *waits, struct err *e) {
    struct approval approval = {0};
    *waits = false;
    *ret = false;
    if (!node || yaml_is_null(node)) return true;
    if (node->kind != YAML_MAP) return read_require(node, ret, e);
    if (!yaml_fields(node, "an approval", approval_fields, ARRAY_LEN(approval_fields),
                     &approval, e))
        return false;
    *waits = approval.timeout || approval.notify;
    *ret = true; /* who writes how long to wait for a person means to ask one */
    if (approval.timeout && !check_timeout(approval.timeout, e)) return false;
    return !approval.require || read_require(approval.require, ret, e);
}

bool breeder_asks(const struct yaml *tool) {
    struct err e;
    bool asks, waits;
    /* The file was refused if this cannot be read. */
    return !read_approval(yaml_find(tool, STR("approval")), &asks, &waits, &e) || asks;
}

static bool is_slip(struct str name, struct err *e) {
    struct nearest nearest;
    if (is_known(&forms[BREEDER_TOOL], name) || str_equal(name, STR("schema_"))) return false;
    nearest_init(&nearest, name);
    offer_keys(&forms[BREEDER_TOOL], &nearest);
    return nearest.found.len > 0 &&
           !err_set(e, ERR_INVALID_ARGUMENT, "a tool has no key '" STR_FMT "'%s",
                    STR_ARG(str_head(name, SHOWN_BYTES)), nearest_hint(&nearest));
}

bool breeder_check_json(struct json tool, struct err *e) {
    struct json_reader members = json_enter(tool);
    struct json key, value;
    bool good = true;
    while (good && json_next_member(&members, &key, &value)) {
        struct buf name;
        buf_init(&name, NAME_MAX_BYTES);
        good = !json_text(key, &name) || !is_slip(buf_str(&name), e);
        buf_done(&name);
    }
    return good;
}

bool breeder_asks_json(struct json tool, bool *ret, struct err *e) {
    enum json_kind said = json_find(tool, STR("approval")).kind;
    enum json_kind require = json_find(json_find(tool, STR("approval")), STR("require")).kind;
    bool is_map = said == JSON_OBJECT;
    enum json_kind word = is_map ? require : said;
    *ret = word == JSON_TRUE || (is_map && word == JSON_NONE);
    return *ret || word == JSON_NONE || (word == JSON_NULL && !is_map) || word == JSON_FALSE ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "a tool's approval is true or false, or {\"require\": true}");
}

/* --- one item ----------------------------------------------------------------------------- */

/* False: one that was meant to be another, or one of the file's closed lists. */
static bool check_unknown(struct config *config, const struct item_form *form,
                          const struct yaml *value, struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, value->key);
    offer_keys(form, &nearest);
    yaml_err_key(e, value, "a %s has no key '" STR_FMT "'%s", form->what,
                 STR_ARG(str_head(value->key, SHOWN_BYTES)), nearest_hint(&nearest));
    if (form != &forms[BREEDER_TOOL] || nearest.found.len) return false;
    config_warn(config, "%s", e->text);
    return true;
}

static bool check_word(const struct yaml *node, const char *const *words, struct err *e) {
    struct str text = node && node->kind == YAML_SCALAR ? node->text : STR_EMPTY;
    struct buf known;
    if (!node || yaml_is_null(node)) return true;
    for (size_t i = 0; words[i]; i++) {
        if (str_equal(text, str_from(words[i]))) return true;
    }
    buf_init(&known, KIB);
    for (size_t i = 0; words[i]; i++) buf_printf(&known, "%s%s", i ? ", " : "", words[i]);
    yaml_err(e, node, "'" STR_FMT "' is none of " STR_FMT, STR_ARG(str_head(text, SHOWN_BYTES)),
             STR_ARG(buf_str(&known)));
    buf_done(&known);
    return false;
}

static bool check_approval(struct config *config, const struct yaml *node, struct err *e) {
    bool asks, waits;
    if (!read_approval(node, &asks, &waits, e)) return false;
    if (waits)
        config_warn(config,
                    STR_FMT ":%u: 'timeout' and 'notify' of an approval have no effect here; "
                            "approvals.deadline says how long a turn waits",
                    STR_ARG(str_head(config->file, 256)), node->line);
    return true;
}

static bool read_item(struct config *config, const struct item_form *form,
                      const struct yaml *node, struct item *ret, struct err *e) {
    for (const struct yaml *value = node->first; value; value = value->next) {
        if (!is_known(form, value->key) && !check_unknown(config, form, value, e)) return false;
    }
    for (size_t i = 0; i < form->count; i++) {
        const struct yaml_field *field = &form->fields[i];
        const struct yaml *value = yaml_find(node, str_from(field->key));
        void *at = (char *)ret + field->offset;
        if (value && !yaml_value(value, field->type, at, e)) return false;
    }
    return true;
}

static bool check_names(const struct item_form *form, const struct yaml *node,
                        const struct item *item, struct err *e) {
    if (!item->ref.len && !(item->name.len && form->name_alone))
        return yaml_err(e, node, "a %s needs the key 'ref'%s", form->what,
                        form->name_alone ? " or 'name'" : "");
    return !item->ref.len || breeder_last_part(item->ref).len ||
           yaml_err(e, yaml_find(node, STR("ref")), "'" STR_FMT "' names nothing",
                    STR_ARG(item->ref));
}

static bool check_item(struct config *config, const struct item_form *form,
                       const struct yaml *node, struct err *e) {
    struct item item = {0};
    if (node->kind != YAML_MAP)
        return yaml_err(e, node, "expected a %s as a map, such as %s", form->what,
                        form->example);
    return read_item(config, form, node, &item, e) && check_names(form, node, &item, e) &&
           check_word(item.type, tool_types, e) && check_word(item.transport, transports, e) &&
           check_approval(config, item.approval, e);
}

bool breeder_check_items(struct config *config, const struct yaml *list,
                         enum breeder_list which, struct err *e) {
    const struct item_form *form = &forms[which];
    if (list->kind != YAML_LIST) return yaml_err(e, list, "expected a list of %ss", form->what);
    for (const struct yaml *node = list->first; node; node = node->next) {
        if (!check_item(config, form, node, e)) return false;
    }
    return true;
}
