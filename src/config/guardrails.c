/* The section `guardrails`: rules for the text that agents read and write. */
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

/* One that is compiled here is compiled again where it is used; what is wrong with it is
 * reported at its line. */
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

static bool check_name(const struct reading *reading, const struct yaml *node, struct err *e) {
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
     .read = check_name,
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
    rules[config->guardrail_count++] = *rule; /* with a mistake it still is a name */
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

/* --- an agent's own ------------------------------------------------------------------------- */

static bool is_known(const struct config *config, struct str name) {
    return config_guardrail_is_personal(name) || config_guardrail_find(config, name);
}

static bool refuse_name(const struct config *config, const struct yaml *name, struct err *e) {
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;
    nearest_init(&nearest, name->text);
    nearest_offer(&nearest, STR("pii_detection"));
    for (size_t i = 0; i < config->guardrail_count; i++)
        nearest_offer(&nearest, config->guardrails[i].rule.name);
    nearest_hint(&nearest, hint);
    return yaml_err(
        e, name, "no guardrail is called '" STR_FMT "'%s", STR_ARG(str_head(name->text, 80)),
        nearest.found.len ? hint : "; list it under 'guardrails', or use pii_detection");
}

bool config_read_agent_guardrails(const struct reading *reading, const struct yaml *node,
                                  struct err *e) {
    struct config_agent *agent = reading->entry;
    if (!config_want(node, YAML_LIST, "a list of guardrails", e)) return false;
    struct str *names =
        arena_alloc(reading->config->arena, (node->count + 1) * sizeof(struct str));
    if (!names) return config_too_large(node, e);
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || !item->text.len)
            return yaml_err(e, item,
                            "a guardrail is named here; its rule stands in the "
                            "section 'guardrails'");
        names[agent->guardrail_count++] = item->text;
    }
    agent->guardrails = names;
    agent->guardrails_at = node;
    return true;
}

/* --- those of an agent.yaml ----------------------------------------------------------------- */

struct breeder_rule {
    struct config_guardrail rule;
    struct str endpoint;
    unsigned upstream_action; /* one of `upstream_actions` */
};

/* hitl_approve: a human decides about the agent's tools. Nobody can be asked about a text while
 * it is said, so what the rule finds is blocked. */
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

/* Nothing here says what it looks for. */
static bool refuse_unresolved(struct config *config, const struct yaml *item, struct err *e) {
    const struct yaml *key = yaml_find(item, STR("name"));
    struct str name = key ? key->text : item->text;
    yaml_err(e, item,
             "guardrail '" STR_FMT "' has no rule here; write - {name: " STR_FMT
             ", type: keyword, pattern: 'word, other word', action: block}, or set "
             "agent_yaml.missing: warn to go without it",
             STR_ARG(str_head(name, 60)), STR_ARG(str_head(name, 60)));
    if (!config->agent_yaml.missing_warns) return false;
    config_warn(config, "%s", e->text);
    return true;
}

/* The built-in rules with another action: each of them under a name of its own. */
static void add_personal(struct config_guardrail *rules, size_t *count,
                         enum guardrail_action action, const struct yaml *at) {
    for (size_t i = 0; i < GUARDRAIL_PERSONAL_COUNT; i++) {
        rules[*count] = (struct config_guardrail){.rule = guardrail_personal[i], .at = at};
        rules[(*count)++].rule.action = action;
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
                              struct config_guardrail *rules, size_t *count, bool *ret_asks,
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
    *ret_asks |= human || from.upstream_action == HITL_APPROVE;
    if (personal) add_personal(rules, count, rule.rule.action, item);
    if (personal || (human && !rule.rule.pattern.len)) return true;
    if (!rule.rule.pattern.len) { /* whether that is a mistake, all settings together say */
        reading->config->agent_yaml.missing[reading->config->agent_yaml.missing_count++] = item;
        return true;
    }
    struct reading inner = *reading;
    inner.map = item;
    rules[*count] = rule;
    return check_rule(&inner, &rules[(*count)++], e);
}

bool config_read_breeder_guardrails(const struct reading *reading, const struct yaml *node,
                                    struct config_agent *ret, bool *ret_asks, struct err *e) {
    struct config *config = reading->config;
    if (!config_want(node, YAML_LIST, "a list of guardrails", e)) return false;
    size_t room = node->count * GUARDRAIL_PERSONAL_COUNT, count = 0;
    struct config_guardrail *rules =
        arena_alloc(config->arena, (room + 1) * sizeof(struct config_guardrail));
    struct str *names = arena_alloc(config->arena, (room + 1) * sizeof(struct str));
    if (!rules || !names) return config_too_large(node, e);
    config->agent_yaml.missing =
        arena_alloc(config->arena, (node->count + 1) * sizeof(struct yaml *));
    if (!config->agent_yaml.missing) return config_too_large(node, e);
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!take_breeder_rule(reading, item, rules, &count, ret_asks, e)) return false;
    }
    for (size_t i = 0; i < count; i++) names[i] = rules[i].rule.name;
    config->guardrails = rules;
    config->guardrail_count = count;
    ret->guardrails = names;
    ret->guardrail_count = count;
    return true;
}

/* --- when everything has been read ---------------------------------------------------------- */

bool config_resolve_guardrails(struct config *config, struct err *e) {
    for (size_t i = 0; i < config->agent_yaml.missing_count; i++) {
        bool done = refuse_unresolved(config, config->agent_yaml.missing[i], e);
        if (!done && !config_goes_on(config, e)) return false;
    }
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct yaml *list = config->agents[i].guardrails_at;
        for (const struct yaml *name = list ? list->first : NULL; name; name = name->next) {
            if (is_known(config, name->text)) continue;
            if (!refuse_name(config, name, e) && !config_goes_on(config, e)) return false;
        }
    }
    return true;
}
