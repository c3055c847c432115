#include "rpc/reflection.h"

#include "base/arena.h"
#include "base/mem.h"
#include "proto/reflection.pb.h"
#include "wire/pb_descriptor.h"

#include <assert.h>
#include <stdlib.h>

#define REQUEST_MAX_BYTES (16 * KIB)
#define WORK_MAX_BYTES (4 * MIB) /* all sets together, decoded */
#define QUEUE_HIGH_BYTES (32 * KIB)
#define QUEUE_LOW_BYTES (8 * KIB)

struct reflection {
    struct str sets[REFLECTION_SETS_MAX];
    size_t set_count;
    const struct rpc_service *services;
    size_t service_count;
};

struct reflection *reflection_new(void) {
    struct reflection *reflection = MEM_NEW(struct reflection);
    reflection_add(reflection, grpc_reflection_descriptor);
    return reflection;
}

void reflection_free(struct reflection *reflection) {
    free(reflection);
}

void reflection_add(struct reflection *reflection, struct str descriptor_set) {
    assert(reflection->set_count < REFLECTION_SETS_MAX);
    reflection->sets[reflection->set_count++] = descriptor_set;
}

void reflection_list(struct reflection *reflection, const struct rpc_service *services,
                     size_t count) {
    reflection->services = services;
    reflection->service_count = count;
}

/* --- files -------------------------------------------------------------------------------- */

struct file {
    const struct pb_file_descriptor *descriptor;
    struct str bytes;
};

struct files {
    struct file *at;
    size_t count;
};

static const struct file *file_named(const struct files *files, struct str name) {
    for (size_t i = 0; i < files->count; i++) {
        if (str_equal(files->at[i].descriptor->name, name)) return &files->at[i];
    }
    return NULL;
}

static size_t add_set(struct files *files, struct str bytes, struct arena *arena) {
    struct pb_file_set set;
    struct pb_file_set_raw raw;
    struct err e;
    bool ok = pb_decode_view(&pb_file_set_table, bytes, arena, &set, &e) &&
              pb_decode_view(&pb_file_set_raw_table, bytes, arena, &raw, &e);
    assert(ok && set.file_count == raw.file_count); /* the sets were made by the build */
    (void)ok;
    for (size_t i = 0; files->at && i < set.file_count; i++)
        files->at[files->count++] = (struct file){&set.file[i], raw.file[i]};
    return set.file_count;
}

/* All known files, in the order of the sets. */
static struct files all_files(const struct reflection *reflection, struct arena *arena) {
    struct files files = {NULL, 0};
    size_t count = 0;
    for (size_t i = 0; i < reflection->set_count; i++)
        count += add_set(&files, reflection->sets[i], arena);
    files.at = arena_alloc(arena, count * sizeof(struct file));
    assert(files.at);
    for (size_t i = 0; i < reflection->set_count; i++)
        add_set(&files, reflection->sets[i], arena);
    return files;
}

/* --- symbols ------------------------------------------------------------------------------ */

/* Whether `symbol` is "scope" itself or inside it; *ret is then the part after the scope. */
static bool reflection_enter(struct str symbol, struct str scope, struct str *ret) {
    if (!str_starts(symbol, scope)) return false;
    *ret = str_skip(symbol, scope.len);
    if (scope.len == 0 || ret->len == 0) return true;
    if (ret->at[0] != '.') return false;
    *ret = str_skip(*ret, 1);
    return ret->len > 0;
}

static bool enum_has(const struct pb_enum_descriptor *type, struct str symbol) {
    if (str_equal(symbol, type->name)) return true;
    for (size_t i = 0; i < type->value_count; i++) { /* siblings of their type */
        if (str_equal(symbol, type->value[i].name)) return true;
    }
    return false;
}

static bool message_has(const struct pb_message_descriptor *type, struct str symbol) {
    struct str rest;
    if (!reflection_enter(symbol, type->name, &rest)) return false;
    if (rest.len == 0) return true;
    for (size_t i = 0; i < type->field_count; i++) {
        if (str_equal(rest, type->field[i].name)) return true;
    }
    for (size_t i = 0; i < type->oneof_decl_count; i++) {
        if (str_equal(rest, type->oneof_decl[i].name)) return true;
    }
    for (size_t i = 0; i < type->enum_type_count; i++) {
        if (enum_has(&type->enum_type[i], rest)) return true;
    }
    for (size_t i = 0; i < type->nested_type_count; i++) {
        if (message_has(&type->nested_type[i], rest)) return true;
    }
    return false;
}

static bool service_has(const struct pb_service_descriptor *service, struct str symbol) {
    struct str rest;
    if (!reflection_enter(symbol, service->name, &rest)) return false;
    for (size_t i = 0; i < service->method_count; i++) {
        if (str_equal(rest, service->method[i].name)) return true;
    }
    return rest.len == 0;
}

static bool file_has(const struct pb_file_descriptor *file, struct str symbol) {
    struct str rest;
    if (!reflection_enter(symbol, file->package, &rest) || rest.len == 0) return false;
    for (size_t i = 0; i < file->message_type_count; i++) {
        if (message_has(&file->message_type[i], rest)) return true;
    }
    for (size_t i = 0; i < file->enum_type_count; i++) {
        if (enum_has(&file->enum_type[i], rest)) return true;
    }
    for (size_t i = 0; i < file->service_count; i++) {
        if (service_has(&file->service[i], rest)) return true;
    }
    return false;
}

static const struct file *file_with(const struct files *files, struct str symbol) {
    for (size_t i = 0; i < files->count; i++) {
        if (file_has(files->at[i].descriptor, symbol)) return &files->at[i];
    }
    return NULL;
}

static bool is_message(const struct pb_message_descriptor *types, size_t count,
                       struct str name) {
    struct str rest;
    for (size_t i = 0; i < count; i++) {
        if (!reflection_enter(name, types[i].name, &rest)) continue;
        return rest.len == 0 ||
               is_message(types[i].nested_type, types[i].nested_type_count, rest);
    }
    return false;
}

static bool has_message(const struct files *files, struct str name) {
    const struct file *file = file_with(files, name);
    struct str rest;
    return file && reflection_enter(name, file->descriptor->package, &rest) &&
           is_message(file->descriptor->message_type, file->descriptor->message_type_count,
                      rest);
}

/* --- answers ------------------------------------------------------------------------------ */

/* The data that one answer is made from. */
struct asked {
    const struct reflection *reflection;
    const struct grpc_server_reflection_request *request;
    struct arena *arena;
    struct files files;
    struct grpc_server_reflection_response response;
};

static void *room_for(const struct asked *asked, size_t count, size_t size) {
    void *at = arena_alloc(asked->arena, count * size + 1);
    assert(at); /* the sets bound it */
    return at;
}

static void say_error(struct asked *asked, enum err_code code, const char *text) {
    struct grpc_error_response *error = room_for(asked, 1, sizeof(*error));
    error->error_code = err_kinds[code].grpc_status;
    error->error_message = str_from(text);
    asked->response.which_message_response = GRPC_SERVER_REFLECTION_RESPONSE_ERROR_RESPONSE;
    asked->response.error_response = error;
}

static bool among(const size_t *list, size_t count, size_t index) {
    for (size_t i = 0; i < count; i++) {
        if (list[i] == index) return true;
    }
    return false;
}

/* The file, followed by all its dependencies. */
static void say_file(struct asked *asked, const struct file *file) {
    if (!file) {
        say_error(asked, ERR_NOT_FOUND, "not known here");
        return;
    }
    const struct file *all = asked->files.at;
    size_t *list = room_for(asked, asked->files.count, sizeof(*list)); /* indexes into `all` */
    size_t count = 0;
    list[count++] = (size_t)(file - all);
    for (size_t i = 0; i < count; i++) {
        const struct pb_file_descriptor *from = all[list[i]].descriptor;
        for (size_t j = 0; j < from->dependency_count; j++) {
            const struct file *needed = file_named(&asked->files, from->dependency[j]);
            if (needed && !among(list, count, (size_t)(needed - all)))
                list[count++] = (size_t)(needed - all);
        }
    }
    struct str *bytes = room_for(asked, count, sizeof(*bytes));
    for (size_t i = 0; i < count; i++) bytes[i] = all[list[i]].bytes;
    struct grpc_file_descriptor_response *said = room_for(asked, 1, sizeof(*said));
    said->file_descriptor_proto = bytes;
    said->file_descriptor_proto_count = count;
    asked->response.which_message_response =
        GRPC_SERVER_REFLECTION_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    asked->response.file_descriptor_response = said;
}

/* proto3 has no extensions, so a known type has none. */
static void say_extensions(struct asked *asked, struct str type) {
    if (!has_message(&asked->files, type)) {
        say_error(asked, ERR_NOT_FOUND, "no such message type");
        return;
    }
    struct grpc_extension_number_response *said = room_for(asked, 1, sizeof(*said));
    said->base_type_name = type;
    asked->response.which_message_response =
        GRPC_SERVER_REFLECTION_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    asked->response.all_extension_numbers_response = said;
}

static void say_services(struct asked *asked) {
    size_t count = asked->reflection->service_count;
    struct grpc_service_response *names = room_for(asked, count, sizeof(*names));
    for (size_t i = 0; i < count; i++) names[i].name = asked->reflection->services[i].name;
    struct grpc_list_service_response *said = room_for(asked, 1, sizeof(*said));
    said->service = names;
    said->service_count = count;
    asked->response.which_message_response =
        GRPC_SERVER_REFLECTION_RESPONSE_LIST_SERVICES_RESPONSE;
    asked->response.list_services_response = said;
}

static void reflection_answer(struct asked *asked) {
    const struct grpc_server_reflection_request *request = asked->request;
    switch (request->which_message_request) {
    case GRPC_SERVER_REFLECTION_REQUEST_FILE_BY_FILENAME:
        say_file(asked, file_named(&asked->files, request->file_by_filename));
        break;
    case GRPC_SERVER_REFLECTION_REQUEST_FILE_CONTAINING_SYMBOL:
        say_file(asked, file_with(&asked->files, request->file_containing_symbol));
        break;
    case GRPC_SERVER_REFLECTION_REQUEST_FILE_CONTAINING_EXTENSION:
        say_error(asked, ERR_NOT_FOUND, "there are no extensions here");
        break;
    case GRPC_SERVER_REFLECTION_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        say_extensions(asked, request->all_extension_numbers_of_type);
        break;
    case GRPC_SERVER_REFLECTION_REQUEST_LIST_SERVICES: say_services(asked); break;
    default: say_error(asked, ERR_INVALID_ARGUMENT, "nothing was asked"); break;
    }
}

/* --- the call ----------------------------------------------------------------------------- */

static void *reflection_on_open(struct rpc_call *call, void *service_ctx) {
    (void)call;
    return service_ctx;
}

static void reflection_go_on(struct rpc_call *call) {
    if (rpc_pressure(call) > QUEUE_HIGH_BYTES) {
        rpc_wake_at(call, QUEUE_LOW_BYTES);
    } else {
        rpc_next(call);
    }
}

static void reflection_on_message(struct rpc_call *call, struct lent message, void *ctx) {
    struct grpc_server_reflection_request request;
    struct err e;
    struct arena *arena = arena_new(WORK_MAX_BYTES);
    if (pb_decode(&grpc_server_reflection_request_table, message, arena, &request, &e)) {
        struct asked asked = {.reflection = ctx,
                              .request = &request,
                              .arena = arena,
                              .files = all_files(ctx, arena)};
        asked.response.valid_host = request.host;
        asked.response.original_request = &request;
        reflection_answer(&asked);
        pb_encode(&grpc_server_reflection_response_table, &asked.response,
                  rpc_message_begin(call));
        rpc_message_end(call);
        reflection_go_on(call);
    } else {
        rpc_end(call, ERR_INTERNAL, err_text(&e));
    }
    arena_free(arena);
}

static void reflection_on_drained(struct rpc_call *call, void *ctx) {
    (void)ctx;
    rpc_next(call);
}

static void reflection_on_half_closed(struct rpc_call *call, void *ctx) {
    (void)ctx;
    rpc_end(call, ERR_NONE, STR_EMPTY);
}

static void reflection_on_stopping(struct rpc_call *call, void *ctx) {
    (void)ctx;
    rpc_end(call, ERR_UNAVAILABLE, STR("the server is stopping"));
}

static const struct rpc_handler handler = {
    .open = reflection_on_open,
    .message = reflection_on_message,
    .half_closed = reflection_on_half_closed,
    .drained = reflection_on_drained,
    .stopping = reflection_on_stopping,
};

/* --- the services ------------------------------------------------------------------------- */

#define NAME(version) "grpc.reflection." version ".ServerReflection"
#define ROW(version)                                                                           \
    {                                                                                          \
        .path = STR_INIT("/" NAME(version) "/ServerReflectionInfo"), .kind = RPC_BIDI,         \
        .handler = &handler, .ends = CLOSE_SUBSCRIPTION, .established = RPC_BY_HANDLER,        \
        .auth = RPC_OPEN, .request_max_bytes = REQUEST_MAX_BYTES                               \
    }

static const struct rpc_method methods[REFLECTION_SERVICES] = {ROW("v1"), ROW("v1alpha")};

void reflection_services(struct reflection *reflection,
                         struct rpc_service ret[REFLECTION_SERVICES]) {
    static const struct str names[REFLECTION_SERVICES] = {STR_INIT(NAME("v1")),
                                                          STR_INIT(NAME("v1alpha"))};
    for (size_t i = 0; i < REFLECTION_SERVICES; i++) {
        ret[i] = (struct rpc_service){
            .name = names[i], .methods = &methods[i], .method_count = 1, .ctx = reflection};
    }
}
