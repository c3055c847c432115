#include "contract/nimi/account/bindings.h"

#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* Views of a decoded relation: a text of a byte costs a str, so more than its bytes. */
#define ARENA_MAX_BYTES (16 * BINDINGS_RELATION_MAX_BYTES)

void bindings_init(struct bindings *bindings) {
    list_init(&bindings->all);
    bindings->count = 0;
}

void bindings_done(struct bindings *bindings) {
    LIST_EACH(&bindings->all, link)
    bindings_remove(bindings, CONTAINER_OF(link, struct binding, link));
}

static bool copy_relation(struct binding *binding,
                          const struct nimi_scoped_app_binding_relation *from) {
    const struct pb_message *type = &nimi_scoped_app_binding_relation_table;
    struct buf bytes;
    struct err e;
    buf_init(&bytes, BINDINGS_RELATION_MAX_BYTES);
    bool ok = pb_encode(type, from, &bytes) &&
              pb_decode(type, lent_of(buf_str(&bytes)), binding->arena, &binding->relation, &e);
    buf_done(&bytes);
    return ok;
}

static size_t count_of_instance(const struct bindings *bindings,
                                const struct nimi_scoped_app_binding_relation *of) {
    size_t count = 0;
    LIST_EACH(&bindings->all, link) {
        const struct nimi_scoped_app_binding_relation *one =
            &CONTAINER_OF(link, struct binding, link)->relation;
        count += str_equal(one->runtime_app_id, of->runtime_app_id) &&
                 str_equal(one->app_instance_id, of->app_instance_id);
    }
    return count;
}

struct binding *bindings_add(struct bindings *bindings,
                             const struct nimi_scoped_app_binding_relation *relation) {
    if (bindings->count >= BINDINGS_MAX ||
        count_of_instance(bindings, relation) >= BINDINGS_PER_INSTANCE)
        return NULL;
    struct binding *binding = MEM_NEW(struct binding);
    binding->arena = arena_new(ARENA_MAX_BYTES);
    if (!copy_relation(binding, relation)) {
        arena_free(binding->arena);
        free(binding);
        return NULL;
    }
    ulid_new(binding->id);
    binding->state = BINDING_ISSUED;
    binding->relation.binding_id = str_of(binding->id, ULID_LEN);
    binding->relation.state = BINDING_ISSUED;
    binding->relation.reason_code = NIMI_ACCOUNT_REASON_CODE_ACTION_EXECUTED;
    binding->relation.issued_at = &binding->issued;
    binding->relation.expires_at = &binding->expires;
    list_append(&bindings->all, &binding->link);
    bindings->count++;
    return binding;
}

void bindings_remove(struct bindings *bindings, struct binding *binding) {
    list_remove(&binding->link);
    bindings->count--;
    arena_free(binding->arena);
    free(binding);
}

struct binding *bindings_find(struct bindings *bindings, struct str id) {
    LIST_EACH(&bindings->all, link) {
        struct binding *binding = CONTAINER_OF(link, struct binding, link);
        if (str_equal(str_of(binding->id, ULID_LEN), id)) return binding;
    }
    return NULL;
}

void binding_move(struct binding *binding, enum binding_state next, int reason) {
    assert(states_allow(binding_states, binding->state, next));
    binding->state = next;
    binding->relation.state = (int32_t)next;
    binding->relation.reason_code = reason;
}

bool binding_same_relation(const struct nimi_scoped_app_binding_relation *one,
                           const struct nimi_scoped_app_binding_relation *other) {
    return str_equal(one->runtime_app_id, other->runtime_app_id) &&
           str_equal(one->app_instance_id, other->app_instance_id) &&
           str_equal(one->window_id, other->window_id) &&
           str_equal(one->avatar_instance_id, other->avatar_instance_id) &&
           str_equal(one->agent_id, other->agent_id) &&
           str_equal(one->conversation_anchor_id, other->conversation_anchor_id) &&
           str_equal(one->world_id, other->world_id);
}
