/* protojson_names: the enums of the descriptors, by the fields that have their type. */
#include "base/map.h"
#include "base/mem.h"
#include "wire/protojson.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (16 * MIB)
#define NAME_MAX_BYTES (4 * KIB)

struct protojson {
    struct arena *arena;
    struct map *enums;    /* ".package.Enum" to its descriptor */
    struct map *messages; /* "package.Message" to its descriptor */
};

static void index_enums(struct protojson *json, const char *scope,
                        const struct pb_enum_descriptor *enums, size_t count) {
    struct buf name;
    buf_init(&name, NAME_MAX_BYTES);
    for (size_t i = 0; i < count; i++) {
        buf_clear(&name);
        buf_printf(&name, ".%s%s" STR_FMT, scope, scope[0] ? "." : "", STR_ARG(enums[i].name));
        map_put(json->enums, buf_str(&name), (void *)(uintptr_t)&enums[i]);
    }
    buf_done(&name);
}

/* The message and the types inside it, `depth` levels of them. */
static void index_message(struct protojson *json, const char *scope,
                          const struct pb_message_descriptor *message, unsigned depth) {
    struct buf name;
    buf_init(&name, NAME_MAX_BYTES);
    buf_printf(&name, "%s%s" STR_FMT, scope, scope[0] ? "." : "", STR_ARG(message->name));
    map_put(json->messages, buf_str(&name), (void *)(uintptr_t)message);
    char *inner = str_dup(buf_str(&name));
    index_enums(json, inner, message->enum_type, message->enum_type_count);
    for (size_t i = 0; depth > 0 && i < message->nested_type_count; i++)
        index_message(json, inner, &message->nested_type[i], depth - 1);
    free(inner);
    buf_done(&name);
}

static void index_file(struct protojson *json, const struct pb_file_descriptor *file) {
    char *package = str_dup(file->package);
    index_enums(json, package, file->enum_type, file->enum_type_count);
    for (size_t i = 0; i < file->message_type_count; i++)
        index_message(json, package, &file->message_type[i], PB_DEPTH_MAX);
    free(package);
}

bool protojson_new(const struct str *sets, size_t count, struct protojson **ret,
                   struct err *e) {
    struct protojson *json = MEM_NEW(struct protojson);
    json->arena = arena_new(ARENA_MAX_BYTES);
    json->enums = map_new();
    json->messages = map_new();
    for (size_t i = 0; i < count; i++) {
        struct pb_file_set set;
        if (!pb_decode_view(&pb_file_set_table, sets[i], json->arena, &set, e)) {
            protojson_free(json);
            return err_add(e, "descriptor set %zu", i);
        }
        for (size_t f = 0; f < set.file_count; f++) index_file(json, &set.file[f]);
    }
    *ret = json;
    return true;
}

void protojson_free(struct protojson *json) {
    if (!json) return;
    map_free(json->enums);
    map_free(json->messages);
    arena_free(json->arena);
    free(json);
}

const struct pb_enum_descriptor *protojson_enum_of(const struct protojson *json,
                                                   const struct pb_message *type,
                                                   const struct pb_field *field) {
    const struct pb_message_descriptor *message =
        map_find(json->messages, str_from(type->name));
    for (size_t i = 0; message && i < message->field_count; i++) {
        if (message->field[i].number == (int32_t)field->number)
            return map_find(json->enums, message->field[i].type_name);
    }
    return NULL;
}

struct str protojson_value_name(const struct protojson *json, struct str enum_name,
                                int32_t number) {
    const struct pb_enum_descriptor *named = map_find(json->enums, enum_name);
    for (size_t i = 0; named && i < named->value_count; i++) {
        if (named->value[i].number == number) return named->value[i].name;
    }
    return STR_EMPTY;
}
