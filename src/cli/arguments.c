#include "cli/arguments.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool arguments_refuse_act(const char *act, const char *const *acts, const char *usage) {
    struct nearest nearest;
    nearest_init(&nearest, str_from(act));
    for (size_t i = 0; acts[i]; i++) nearest_offer(&nearest, str_from(acts[i]));
    fprintf(stderr, "weir: error: '%s' is unknown%s\n%s", act, nearest_hint(&nearest), usage);
    return false;
}

/* False: the first argument names no act. */
static bool find_act(const char *name, const char *const *acts, int *ret) {
    for (int i = 0; acts[i]; i++) {
        if (strcmp(name, acts[i]) != 0) continue;
        *ret = i;
        return true;
    }
    return false;
}

/* The text after "--NAME": "" or "=VALUE". NULL: this is another argument. */
static const char *after_name(const char *arg, const char *name) {
    size_t len = strlen(name);
    if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, name, len) != 0) return NULL;
    const char *rest = arg + 2 + len;
    return *rest == '\0' || *rest == '=' ? rest : NULL;
}

static const struct argument_flag *find_flag(const char *arg, const struct argument_flag *flags,
                                             const char **ret_rest) {
    for (; flags->name; flags++) {
        *ret_rest = after_name(arg, flags->name);
        if (*ret_rest) return flags;
    }
    return NULL;
}

static bool take_value(const struct argument_flag *flag, const char *value, const char *usage) {
    if (flag->value) {
        *flag->value = value;
        return true;
    }
    if (flag->values->count < ARGUMENT_VALUES_MAX) {
        flag->values->at[flag->values->count++] = value;
        return true;
    }
    fprintf(stderr, "weir: error: --%s is given more than %d times\n%s", flag->name,
            ARGUMENT_VALUES_MAX, usage);
    return false;
}

static bool arguments_take_flag(const struct argument_flag *flag, const char *rest,
                                int arg_count, const char *const *args, int *i,
                                const char *usage) {
    if (flag->given && *rest == '\0') {
        *flag->given = true;
    } else if (flag->given) {
        fprintf(stderr, "weir: error: --%s takes no value\n%s", flag->name, usage);
        return false;
    } else if (*rest == '=') {
        return take_value(flag, rest + 1, usage);
    } else if (++*i < arg_count) {
        return take_value(flag, args[*i], usage);
    } else {
        fprintf(stderr, "weir: error: --%s needs a value\n%s", flag->name, usage);
        return false;
    }
    return true;
}

bool arguments_read(int arg_count, const char *const *args, const char *const *acts,
                    const struct argument_flag *flags, const char *usage,
                    struct arguments *ret) {
    *ret = (struct arguments){.act = 0};
    bool named = acts && arg_count > 0 && args[0][0] != '-';
    if (named && !find_act(args[0], acts, &ret->act))
        return arguments_refuse_act(args[0], acts, usage);
    for (size_t i = 0; flags[i].name; i++) {
        assert(i < ARGUMENT_FLAGS_MAX);
        ret->names[i] = flags[i].name;
    }
    bool ended = false; /* "--": the rest are no flags */
    ret->rest = mem_zero((size_t)arg_count + 1, sizeof(char *));
    for (int i = named; i < arg_count; i++) {
        const char *rest;
        ended = ended || strcmp(args[i], "--") == 0;
        const struct argument_flag *flag = ended ? NULL : find_flag(args[i], flags, &rest);
        if (!flag) {
            ret->rest[ret->rest_count++] = args[i];
        } else if (!arguments_take_flag(flag, rest, arg_count, args, &i, usage)) {
            arguments_done(ret);
            return false;
        }
    }
    return true;
}

void arguments_done(struct arguments *arguments) {
    free(arguments->rest);
    arguments->rest = NULL;
}
