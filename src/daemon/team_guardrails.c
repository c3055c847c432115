#include "daemon/team_guardrails.h"

#include "base/mem.h"

#include <stdlib.h>

/* The configured rules come first, then the built-in ones. */
bool team_make_guardrails(struct team *team, const struct config *config, bool noting,
                          struct err *e) {
    size_t listed = config->guardrail_count;
    team->guardrails = mem_zero(listed + GUARDRAIL_PERSONAL_COUNT, sizeof(struct guardrail *));
    for (size_t i = 0; i < listed + GUARDRAIL_PERSONAL_COUNT; i++) {
        const struct guardrail_rule *rule =
            i < listed ? &config->guardrails[i].rule : &guardrail_personal[i - listed];
        struct err why;
        if (!guardrail_new(rule, &team->guardrails[team->guardrail_count++], &why) && !noting)
            return err_set(e, why.code, "guardrail '" STR_FMT "': %s", STR_ARG(rule->name),
                           why.text);
    }
    return true;
}

void team_free_guardrails(struct team *team) {
    for (size_t i = 0; i < team->guardrail_count; i++) guardrail_free(team->guardrails[i]);
    free(team->guardrails);
}

/* The rules of an agent for one direction. */
struct picked {
    struct guardrail **rules;
    size_t count;
};

static void pick_named(const struct team *team, const struct config *config, struct str name,
                       enum config_guard_direction other, struct picked *ret) {
    for (size_t i = 0; i < config->guardrail_count; i++) {
        const struct config_guardrail *from = &config->guardrails[i];
        bool named = str_equal(from->rule.name, name) && from->direction != other;
        if (named && team->guardrails[i]) ret->rules[ret->count++] = team->guardrails[i];
    }
    if (!config_guardrail_is_personal(name)) return;
    for (size_t i = 0; i < GUARDRAIL_PERSONAL_COUNT; i++)
        ret->rules[ret->count++] = team->guardrails[config->guardrail_count + i];
}

struct guardrail **team_pick_guardrails(const struct team *team, const struct config *config,
                                        const struct config_agent *from, struct agent *ret) {
    size_t room = from->guardrail_count * (GUARDRAIL_PERSONAL_COUNT + 1);
    if (!room) return NULL;
    struct guardrail **list = mem_zero(2 * room, sizeof(struct guardrail *));
    struct picked input = {list, 0}, output = {list + room, 0};
    for (size_t i = 0; i < from->guardrail_count; i++) {
        pick_named(team, config, from->guardrails[i], CONFIG_GUARD_OUTPUT, &input);
        pick_named(team, config, from->guardrails[i], CONFIG_GUARD_INPUT, &output);
    }
    ret->input_rules = (struct guardrails){input.rules, input.count};
    ret->output_rules = (struct guardrails){output.rules, output.count};
    return list;
}
