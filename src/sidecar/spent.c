#include "sidecar/spent.h"

void spent_init(struct spent *spent) {
    *spent = (struct spent){.input = TOKENS_UNKNOWN,
                            .output = TOKENS_UNKNOWN,
                            .total = TOKENS_UNKNOWN,
                            .cost_nano = TOKENS_UNKNOWN};
}

void spent_done(struct spent *spent) {
    text_done(&spent->model);
}

static void set_model(struct spent *spent, struct str model) {
    if (!model.len || str_equal(model, text_str(spent->model))) return;
    text_done(&spent->model);
    spent->model = text_copy(model);
}

static int64_t spent_add(int64_t sum, int64_t more) {
    if (sum == TOKENS_UNKNOWN || more == TOKENS_UNKNOWN) return TOKENS_UNKNOWN;
    return usage_sum(sum, more);
}

static void set(struct spent *spent, const struct spent_usage *usage) {
    set_model(spent, usage->model);
    spent->input = usage->input;
    spent->output = usage->output;
    spent->total = usage->total;
    spent->cost_nano = usage->cost_nano;
}

void spent_post(struct spent *spent, const struct spent_usage *usage) {
    if (!spent->posted) {
        spent->posted = true;
        set(spent, usage);
        return;
    }
    set_model(spent, usage->model);
    spent->input = spent_add(spent->input, usage->input);
    spent->output = spent_add(spent->output, usage->output);
    spent->total = spent_add(spent->total, usage->total);
    spent->cost_nano = spent_add(spent->cost_nano, usage->cost_nano);
}

void spent_find(struct spent *spent, const struct spent_usage *usage) {
    set(spent, usage);
}

/* --- reading --------------------------------------------------------------------------------- */

/* The first of these members that is a count. */
static int64_t count_of(struct json usage, const char *const *names) {
    int64_t count;
    for (; *names; names++) {
        struct json member = json_find(usage, str_from(*names));
        if (json_i64(member, &count) && count >= 0) return count;
    }
    return TOKENS_UNKNOWN;
}

static struct str spent_text_of(struct json value, struct arena *arena) {
    struct str text;
    return json_str(value, arena, &text) ? text : STR_EMPTY;
}

bool spent_read(struct json object, struct arena *arena, struct spent_usage *ret) {
    static const char *const inputs[] = {"input_tokens", "prompt_tokens", "promptTokenCount",
                                         "input", NULL};
    static const char *const outputs[] = {"output_tokens", "completion_tokens",
                                          "candidatesTokenCount", "output", NULL};
    static const char *const totals[] = {"total_tokens", "totalTokenCount", "total", NULL};
    struct json metadata = json_find(object, STR("metadata"));
    struct json usage = json_find(object, STR("usage"));
    if (usage.kind != JSON_OBJECT) usage = json_find(metadata, STR("usage"));
    if (usage.kind != JSON_OBJECT) return false;
    *ret = (struct spent_usage){spent_text_of(json_find(usage, STR("model")), arena),
                                count_of(usage, inputs), count_of(usage, outputs),
                                count_of(usage, totals), TOKENS_UNKNOWN};
    if (!ret->model.len) ret->model = spent_text_of(json_find(metadata, STR("model")), arena);
    if (!ret->model.len) ret->model = spent_text_of(json_find(object, STR("model")), arena);
    if (ret->total == TOKENS_UNKNOWN) ret->total = spent_add(ret->input, ret->output);
    return ret->input != TOKENS_UNKNOWN || ret->output != TOKENS_UNKNOWN ||
           ret->total != TOKENS_UNKNOWN;
}
