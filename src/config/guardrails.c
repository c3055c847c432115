/* The section `guardrails`: rules for the text that agents read and write. */
#include "config/breeder.h"
#include "config/rows.h"

#include "base/nearest.h"
#include "guardrail/guardrail.h"

static const char *const kinds[] = {
    [GUARDRAIL_REGEX] = "regex", [GUARDRAIL_KEYWORD] = "keyword", NULL};
const char *const config_guardrail_actions[] = {[GUARDRAIL_REDACT] = "redact",
                                                [GUARDRAIL_BLOCK] = "block",
                                                [GUARDRAIL_WARN] = "warn",
                                                NULL};
static const char *const directions[] = {[CONFIG_GUARD_BOTH] = "both",
                                         [CONFIG_GUARD_INPUT] = "input",
                                         [CONFIG_GUARD_OUTPUT] = "output",
                                         NULL};

bool config_guardrail_is_personal(struct str name) {
    return str_equal(name, STR("pii_detection"));
}

/* Compile the rule here only to report errors at its line; it is compiled again where it is
 * used. */
static bool check_rule(const struct reading *reading, struct config_guardrail *ret,
                       struct err *e) {
    const struct yaml *map = reading->map;
    const struct yaml *pattern = yaml_find(map, STR("pattern"));
    const struct yaml *replace = yaml_find(map, STR("replace"));
    struct guardrail *compiled;
    struct err why;
    if (replace) ret->rule.replacement = ret->replace;
    if (guardrail_new(&ret->rule, &compiled, &why)) {
        guardrail_free(compiled);
        return true;
    }
    bool in_replacement = str_find(err_text(&why), STR("the replacement")) == 0;
    return yaml_err(e, in_replacement && replace ? replace : pattern, "%s", why.text);
}

static bool guardrails_check_name(const struct reading *reading, const struct yaml *node,
                                  struct err *e) {
    struct str name = node->text;
    if (config_guardrail_is_personal(name))
        return yaml_err(e, node,
                        "pii_detection is the name of the built-in rules; choose another");
    if (config_guardrail_find(reading->config, name))
        return yaml_err(e, node, "a second guardrail '" STR_FMT "'; give it another name",
                        STR_ARG(str_head(name, 80)));
    return true;
}

#define ROW_OF struct config_guardrail

static const struct setting rows[] = {
    {.key = "name",
     NAME(rule.name),
     .required = true,
     .read = guardrails_check_name,
     .help = "what agents and messages call it"},
    {.key = "type",
     CHOICE(rule.kind),
     .choices = kinds,
     .help = "regex, or keyword: a list with commas, found in any case"},
    {.key = "pattern", TEXT(rule.pattern), .required = true, .help = "what it looks for"},
    {.key = "action",
     CHOICE(rule.action),
     .choices = config_guardrail_actions,
     .help = "redact puts `replace` in its place, block ends the turn, warn counts it"},
    {.key = "replace",
     TEXT(replace),
     .help = "[REDACTED] where it is left out; $1 and ${name} are groups of the pattern"},
    {.key = "luhn",
     BOOL(rule.luhn),
     .help = "only where the digits of the match end with the check digit of a card"},
    {.key = "on",
     CHOICE(direction),
     .choices = directions,
     .help = "both, or only the agent's input or its output"},
};

static bool keep_guardrail(const struct reading *reading, const struct yaml *node,
                           struct err *e) {
    struct config *config = reading->config;
    struct config_guardrail *rules = (struct config_guardrail *)config->guardrails;
    struct config_guardrail *rule = reading->entry;
    struct reading inner = *reading;
    inner.map = node;
    rules[config->guardrail_count++] = *rule; /* with an error its name still counts */
    return !rule->rule.pattern.len ||
           check_rule(&inner, &rules[config->guardrail_count - 1], e);
}

const struct config_list config_guardrail_list = {
    .key = "guardrails",
    .what = "a list of guardrails",
    .schema = {.what = "a guardrail", ROWS(rows), .every = true},
    KEPT_IN(guardrails, guardrail_count),
    .at = offsetof(struct config_guardrail, at),
    .keep = keep_guardrail};

const struct config_guardrail *config_guardrail_find(const struct config *config,
                                                     struct str name) {
    for (size_t i = 0; i < config->guardrail_count; i++) {
        if (str_equal(config->guardrails[i].rule.name, name)) return &config->guardrails[i];
    }
    return NULL;
}

/* --- an agent's list ---------------------------------------------------------------------- */

static bool guardrails_is_known(const struct config *config, struct str name) {
    return config_guardrail_is_personal(name) || config_guardrail_find(config, name);
}

static bool refuse_name(const struct config *config, const struct yaml *name, struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, name->text);
    nearest_offer(&nearest, STR("pii_detection"));
    for (size_t i = 0; i < config->guardrail_count; i++)
        nearest_offer(&nearest, config->guardrails[i].rule.name);
    return yaml_err(e, name, "no guardrail is called '" STR_FMT "'%s",
                    STR_ARG(str_head(name->text, 80)),
                    nearest.found.len ? nearest_hint(&nearest)
                                      : "; list it under 'guardrails', or use pii_detection");
}

bool config_read_agent_guardrails(const struct reading *reading, const struct yaml *node,
                                  struct err *e) {
    struct config_agent *agent = reading->entry;
    if (!config_want(node, YAML_LIST, "a list of guardrails", e)) return false;
    struct str *names =
        arena_alloc(reading->config->arena, (node->count + 1) * sizeof(struct str));
    if (!names) return config_too_large(node, e);
    agent->guardrails = names; /* before any is counted */
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || !item->text.len)
            return yaml_err(e, item,
                            "a guardrail is named here; its rule stands in the "
                            "section 'guardrails'");
        names[agent->guardrail_count++] = item->text;
    }
    agent->guardrails_at = node;
    return true;
}

/* --- the list of an agent.yaml ------------------------------------------------------------ */

struct breeder_rule {
    struct config_guardrail rule;
    struct str endpoint;
    unsigned upstream_action; /* one of `upstream_actions` */
};

/* hitl_approve: a human decides about the agent's tools. Text is not held for approval, so a
 * match in it is blocked. */
#define HITL_APPROVE (GUARDRAIL_WARN + 1)

static const char *const upstream_actions[] = {[GUARDRAIL_REDACT] = "redact",
                                               [GUARDRAIL_BLOCK] = "block",
                                               [GUARDRAIL_WARN] = "warn",
                                               [HITL_APPROVE] = "hitl_approve",
                                               NULL};

#undef ROW_OF
#define ROW_OF struct breeder_rule

static const struct setting breeder_rows[] = {
    {.key = "name", NAME(rule.rule.name), .required = true},
    {.key = "endpoint", TEXT(endpoint)},
    {.key = "action", CHOICE(upstream_action), .choices = upstream_actions},
    {.key = "type", CHOICE(rule.rule.kind), .choices = kinds},
    {.key = "pattern", TEXT(rule.rule.pattern)},
    {.key = "replace", TEXT(rule.replace)},
    {.key = "luhn", BOOL(rule.rule.luhn)},
    {.key = "on", CHOICE(rule.direction), .choices = directions},
};

static const struct entry_schema breeder_schema = {.what = "a guardrail", ROWS(breeder_rows)};

/* The rules of a file, and the names of all its guardrails in order. */
struct breeder_rules {
    struct config_guardrail *rules;
    struct str *names;
    size_t count, name_count;
};

/* Add the built-in rules with another action, each under its own name. */
static void add_personal(struct breeder_rules *ret, enum guardrail_action action,
                         const struct yaml *at) {
    for (size_t i = 0; i < GUARDRAIL_PERSONAL_COUNT; i++) {
        ret->rules[ret->count] =
            (struct config_guardrail){.rule = guardrail_personal[i], .at = at};
        ret->rules[ret->count++].rule.action = action;
        ret->names[ret->name_count++] = guardrail_personal[i].name;
    }
}

static bool read_breeder_rule(const struct reading *reading, const struct yaml *item,
                              struct breeder_rule *ret, struct err *e) {
    const struct reading inner = {reading->config, reading->input, item, ret, 0};
    entry_blank(&breeder_schema, ret);
    if (item->kind == YAML_SCALAR) {
        ret->rule.rule.name = item->text;
        return item->text.len || yaml_err(e, item, "a guardrail needs a name");
    }
    return entry_read(&breeder_schema, &inner, item, e);
}

static bool take_breeder_rule(const struct reading *reading, const struct yaml *item,
                              struct breeder_rules *ret, struct config_breeder *ret_names,
                              struct err *e) {
    struct breeder_rule from = {0};
    if (!read_breeder_rule(reading, item, &from, e)) return false;
    struct config_guardrail rule = from.rule;
    struct str name = rule.rule.name;
    bool personal = config_guardrail_is_personal(name);
    bool human = str_equal(name, STR("hitl_approve"));
    rule.at = item;
    rule.rule.action = (enum guardrail_action)from.upstream_action;
    if (from.upstream_action == HITL_APPROVE)
        rule.rule.action = personal ? GUARDRAIL_REDACT : GUARDRAIL_BLOCK;
    ret_names->asks |= human || from.upstream_action == HITL_APPROVE;
    if (personal) add_personal(ret, rule.rule.action, item);
    if (personal || (human && !rule.rule.pattern.len)) return true;
    ret->names[ret->name_count++] = name;
    if (!rule.rule.pattern.len) { /* checked once all settings are known */
        ret_names->missing[ret_names->missing_count++] = item;
        return true;
    }
    struct reading inner = *reading;
    inner.map = item;
    ret->rules[ret->count] = rule;
    return check_rule(&inner, &ret->rules[ret->count++], e);
}

bool config_read_breeder_guardrails(const struct reading *reading, const struct yaml *node,
                                    struct config_agent *ret, struct config_breeder *ret_names,
                                    struct err *e) {
    struct arena *arena = reading->config->arena;
    size_t room = node->count * GUARDRAIL_PERSONAL_COUNT + 1;
    struct breeder_rules all = {0};
    if (!config_want(node, YAML_LIST, "a list of guardrails", e)) return false;
    all.rules = arena_alloc(arena, room * sizeof(struct config_guardrail));
    all.names = arena_alloc(arena, room * sizeof(struct str));
    ret_names->missing = arena_alloc(arena, (node->count + 1) * sizeof(struct yaml *));
    if (!all.rules || !all.names || !ret_names->missing) return config_too_large(node, e);
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!take_breeder_rule(reading, item, &all, ret_names, e)) return false;
    }
    ret_names->rules = all.rules;
    ret_names->rule_count = all.count;
    ret->guardrails = all.names;
    ret->guardrail_count = all.name_count;
    return true;
}

/* --- resolving ---------------------------------------------------------------------------- */

static void drop_name(struct config_agent *agent, struct str name) {
    struct str *names = (struct str *)agent->guardrails; /* not shared yet */
    size_t kept = 0;
    for (size_t i = 0; i < agent->guardrail_count; i++) {
        if (!str_equal(names[i], name)) names[kept++] = names[i];
    }
    agent->guardrail_count = kept;
}

/* Find a rule of this name in the section. Without one the name is dropped, or it is an
 * error. */
static bool find_missing(struct config *config, struct config_agent *agent,
                         const struct yaml *item, struct err *e) {
    struct str name = item->kind == YAML_SCALAR ? item->text : breeder_text(item, "name");
    struct str shown = str_head(name, 60);
    if (config_guardrail_find(config, name)) return true;
    if (!breeder_missing(config, item, e,
                         "guardrail '" STR_FMT "' has no rule here; write - {name: " STR_FMT
                         ", type: keyword, pattern: 'word, other word', action: block}",
                         STR_ARG(shown), STR_ARG(shown)))
        return false;
    drop_name(agent, name);
    return true;
}

static bool is_same_rule(const struct config_guardrail *a, const struct config_guardrail *b) {
    return a->rule.kind == b->rule.kind && a->rule.action == b->rule.action &&
           a->rule.luhn == b->rule.luhn && a->direction == b->direction &&
           str_equal(a->rule.pattern, b->rule.pattern) &&
           str_equal(a->rule.replacement, b->rule.replacement);
}

static bool name_apart(struct config *config, struct config_agent *agent,
                       struct config_guardrail *rule, struct err *e) {
    struct str *names = (struct str *)agent->guardrails; /* not shared yet */
    struct str old = rule->rule.name;
    struct buf name;
    buf_init(&name, KIB);
    buf_printf(&name, STR_FMT "@" STR_FMT, STR_ARG(old), STR_ARG(agent->slug));
    bool kept = arena_str(config->arena, buf_str(&name), &rule->rule.name);
    buf_done(&name);
    for (size_t i = 0; kept && i < agent->guardrail_count; i++) {
        if (str_equal(names[i], old)) names[i] = rule->rule.name;
    }
    return kept || config_too_large(rule->at, e);
}

/* If two files have different rules with one name, the second gets the agent's name added. */
static bool add_rule(struct config *config, struct config_agent *agent,
                     struct config_guardrail rule, struct config_guardrail *ret,
                     struct err *e) {
    const struct config_guardrail *other = config_guardrail_find(config, rule.rule.name);
    if (other && is_same_rule(other, &rule)) return true;
    if (other && !name_apart(config, agent, &rule, e)) return false;
    ret[config->guardrail_count++] = rule;
    return true;
}

/* Add the rules of all files to those of the section. */
static bool join_rules(struct config *config, struct config_agent *agents, struct err *e) {
    size_t room = config->guardrail_count;
    for (size_t i = 0; i < config->agent_count; i++)
        room += agents[i].breeder ? agents[i].breeder->rule_count : 0;
    if (room == config->guardrail_count) return true;
    struct config_guardrail *all = arena_alloc(config->arena, room * sizeof(*all));
    if (!all) return err_set(e, ERR_TOO_LARGE, "the settings are too large");
    for (size_t i = 0; i < config->guardrail_count; i++) all[i] = config->guardrails[i];
    config->guardrails = all;
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_breeder *from = agents[i].breeder;
        for (size_t r = 0; from && r < from->rule_count; r++) {
            if (!add_rule(config, &agents[i], from->rules[r], all, e)) return false;
        }
    }
    return true;
}

static bool resolve_agent(struct config *config, struct config_agent *agent, struct err *e) {
    const struct config_breeder *from = agent->breeder;
    for (size_t i = 0; from && i < from->missing_count; i++) {
        if (!find_missing(config, agent, from->missing[i], e) && !config_goes_on(config, e))
            return false;
    }
    const struct yaml *list = agent->guardrails_at;
    for (const struct yaml *name = list ? list->first : NULL; name; name = name->next) {
        if (guardrails_is_known(config, name->text)) continue;
        if (!refuse_name(config, name, e) && !config_goes_on(config, e)) return false;
    }
    return true;
}

bool config_resolve_guardrails(struct config *config, struct err *e) {
    struct config_agent *agents = (struct config_agent *)config->agents; /* not shared yet */
    for (size_t i = 0; i < config->agent_count; i++) {
        if (!resolve_agent(config, &agents[i], e)) return false;
    }
    return join_rules(config, agents, e);
}
