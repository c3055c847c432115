#include "orchestrator/runtimes.h"

#include "base/mem.h"
#include "base/text.h"
#include "wire/digest.h"

#include <stdlib.h>

struct runtimes {
    const struct runtimes_driver *driver;
    void *state;
};

static const struct runtimes_driver *const drivers[] = {&runtimes_address, &runtimes_child,
                                                        &runtimes_fake, &runtimes_kubernetes};

/* --- names -------------------------------------------------------------------------------- */

#define NAME_MAX_BYTES 52
#define NAME_HEAD_BYTES 41
#define NAME_DIGITS 10

void runtimes_service_name(struct str workspace, struct buf *out) {
    struct buf name;
    buf_init(&name, KIB);
    buf_append(&name, STR("agent-runtime-workspace-"));
    for (size_t i = 0; i < workspace.len; i++) {
        char c = workspace.at[i];
        buf_append_byte(&name, c >= 'A' && c <= 'Z' ? (char)(c | 32) : c);
    }
    struct str whole = buf_str(&name), head = whole;
    if (whole.len > NAME_MAX_BYTES) {
        head = str_head(whole, NAME_HEAD_BYTES);
        while (str_ends(head, STR("-"))) head.len--;
    }
    buf_append(out, head);
    if (whole.len > NAME_MAX_BYTES) {
        uint8_t digest[DIGEST_BYTES];
        char digits[NAME_DIGITS];
        digest_text(whole, digest);
        digest_digits(digest, NAME_DIGITS, digits);
        buf_append_byte(out, '-');
        buf_append(out, str_of(digits, NAME_DIGITS));
    }
    buf_done(&name);
}

static const struct runtimes_word *word_at(struct str text, const struct runtimes_word *words,
                                           size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_starts(text, words[i].name)) return &words[i];
    }
    return NULL;
}

void runtimes_fill(struct str template, const struct runtimes_word *words, size_t count,
                   struct buf *out) {
    while (template.len) {
        const struct runtimes_word *word = word_at(template, words, count);
        buf_append(out, word ? word->value : str_head(template, 1));
        template = str_skip(template, word ? word->name.len : 1);
    }
}

/* --- drivers ------------------------------------------------------------------------------ */

bool runtimes_open(struct str name, const struct runtimes_options *options,
                   struct runtimes **ret, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        void *state = NULL;
        if (!str_equal(drivers[i]->name, name)) continue;
        if (!drivers[i]->open(options, &state, e)) return false;
        *ret = MEM_NEW(struct runtimes);
        **ret = (struct runtimes){drivers[i], state};
        return true;
    }
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "there is no runtime driver '" STR_FMT
                   "'; it is address, child, kubernetes or fake",
                   STR_ARG(str_head(name, 100)));
}

struct runtimes_need *runtimes_need(struct runtimes *runtimes, struct str workspace,
                                    struct str user, runtimes_found_fn *found, void *ctx) {
    struct runtimes_need *need = runtimes->driver->need(runtimes->state, workspace, user);
    need->driver = runtimes->driver;
    need->found = found;
    need->ctx = ctx;
    return need;
}

void runtimes_leave(struct runtimes_need *need) {
    need->driver->leave(need);
}

void runtimes_stop(struct runtimes *runtimes) {
    if (runtimes->driver->stop) runtimes->driver->stop(runtimes->state);
}

void runtimes_free(struct runtimes *runtimes) {
    if (!runtimes) return;
    runtimes->driver->close(runtimes->state);
    free(runtimes);
}

/* --- an address that is known; and none ----------------------------------------------------- */

struct known {
    struct loop *loop;
    struct text address; /* a template */
};

struct known_need {
    struct runtimes_need base;
    struct task task;
    struct text address;
};

static bool known_open(const struct runtimes_options *options, void **ret, struct err *e) {
    if (!options->address.len)
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "the runtime driver 'address' needs orchestrator.runtime.address, such as "
            "127.0.0.1:42618 or {service}.agents.svc.cluster.local:42618");
    struct known *known = MEM_NEW(struct known);
    *known = (struct known){options->loop, text_copy(options->address)};
    *ret = known;
    return true;
}

static bool fake_open(const struct runtimes_options *options, void **ret, struct err *e) {
    struct known *known = MEM_NEW(struct known);
    (void)e;
    known->loop = options->loop;
    *ret = known;
    return true;
}

static void known_tell(void *ctx) {
    struct known_need *need = ctx;
    need->base.found(text_str(need->address), NULL, need->base.ctx);
}

static struct runtimes_need *known_need(void *ctx, struct str workspace, struct str user) {
    const struct known *known = ctx;
    struct known_need *need = MEM_NEW(struct known_need);
    struct buf service, address;
    buf_init(&service, KIB);
    buf_init(&address, 4 * KIB);
    runtimes_service_name(workspace, &service);
    const struct runtimes_word words[] = {{STR("{service}"), buf_str(&service)},
                                          {STR("{workspace}"), workspace},
                                          {STR("{user}"), user}};
    runtimes_fill(text_str(known->address), words, ARRAY_LEN(words), &address);
    need->address = text_copy(buf_str(&address));
    buf_done(&service);
    buf_done(&address);
    task_init(&need->task, known_tell, need);
    loop_defer(known->loop, &need->task);
    return &need->base;
}

static void known_leave(struct runtimes_need *base) {
    struct known_need *need = CONTAINER_OF(base, struct known_need, base);
    task_cancel(&need->task);
    text_done(&need->address);
    free(need);
}

static void known_close(void *ctx) {
    struct known *known = ctx;
    text_done(&known->address);
    free(known);
}

const struct runtimes_driver runtimes_address = {.name = STR_INIT("address"),
                                                 .open = known_open,
                                                 .need = known_need,
                                                 .leave = known_leave,
                                                 .close = known_close};

const struct runtimes_driver runtimes_fake = {.name = STR_INIT("fake"),
                                              .open = fake_open,
                                              .need = known_need,
                                              .leave = known_leave,
                                              .close = known_close};
