/* pbgen: write C structs and field tables (wire/pb.h) for .proto files.
 *
 *     protoc --include_imports --descriptor_set_out=x.desc x.proto
 *     pbgen --dir OUT --name proto/x [options] x.desc     writes OUT/proto/x.pb.h and .pb.c
 *     pbgen --list x.desc                                 prints one line for each promise
 *     pbgen --baseline promises.txt x.desc                fails when one is gone or changed
 *
 *     --prefix PACKAGE=NAME    what C names of that package begin with; else "google" for
 *                              google.protobuf, and the package itself for others
 *     --import FOLDER=HEADER   .proto files in FOLDER are not generated: HEADER has them
 *     --descriptor SYMBOL      also store the set's bytes as `const struct str SYMBOL`
 *
 * It runs while the program is built, so where the daemon would return an error it ends and
 * prints why.
 */
#include "base/mem.h"
#include "wire/pb_descriptor.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define OPTIONS_MAX 32
#define INPUT_MAX_BYTES (64 * MIB)
#define OUTPUT_MAX_BYTES (64 * MIB)
#define NAME_BYTES 256

struct pair { /* --prefix and --import */
    struct str key, value;
};

struct options {
    struct str dir, name, baseline, input;
    const char *descriptor;
    bool list;
    struct pair prefixes[OPTIONS_MAX], imports[OPTIONS_MAX];
    size_t prefix_count, import_count;
};

/* A message with its two names. */
struct message {
    char proto[NAME_BYTES]; /* ".package.Outer.Inner", as fields refer to it */
    char c[NAME_BYTES];     /* "prefix_outer_inner" */
    const struct pb_message_descriptor *descriptor;
};

struct enumeration {
    char proto[NAME_BYTES], c[NAME_BYTES];
    char scope[NAME_BYTES]; /* what its constants begin with: "PREFIX_OUTER_" */
    const struct pb_enum_descriptor *descriptor;
};

struct generator {
    struct options options;
    struct buf bytes; /* of the descriptor set */
    struct pb_file_set set;
    /* Of all files, imports too: fields refer to them. */
    struct message *messages;
    size_t message_count;
    struct enumeration *enums;
    size_t enum_count;
};

NORETURN PRINTF_LIKE(1, 2) static void die(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("pbgen: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

/* --- files -------------------------------------------------------------------------------- */

static void read_file(struct str path, struct buf *ret) {
    char *name = str_dup(path);
    FILE *file = fopen(name, "rb");
    if (!file) die("%s: %s", name, strerror(errno));
    buf_init(ret, INPUT_MAX_BYTES);
    for (size_t got = 1; got;) {
        char *room = buf_room(ret, 64 * KIB);
        if (!room) die("%s: larger than %zu bytes", name, INPUT_MAX_BYTES);
        got = fread(room, 1, 64 * KIB, file);
        buf_grew(ret, got);
    }
    if (ferror(file)) die("%s: %s", name, strerror(errno));
    fclose(file);
    free(name);
}

static void write_file(const struct options *options, const char *suffix, struct str bytes) {
    struct buf path;
    buf_init(&path, 4 * KIB);
    buf_printf(&path, STR_FMT "/" STR_FMT "%s", STR_ARG(options->dir), STR_ARG(options->name),
               suffix);
    char *name = str_dup(buf_str(&path));
    FILE *file = fopen(name, "wb");
    if (!file) die("%s: %s", name, strerror(errno));
    if (fwrite(bytes.at, 1, bytes.len, file) != bytes.len || fclose(file) != 0)
        die("%s: %s", name, strerror(errno));
    free(name);
    buf_done(&path);
}

/* --- names -------------------------------------------------------------------------------- */

static void copy_name(char *ret, const char *format, ...) PRINTF_LIKE(2, 3);
static void copy_name(char *ret, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int len = vsnprintf(ret, NAME_BYTES, format, values);
    va_end(values);
    if (len >= NAME_BYTES) die("a name of more than %d bytes: %s...", NAME_BYTES - 1, ret);
}

/* "HTTPServer2Options" becomes "http_server2_options": a capital begins a word unless it
 * stands in a row of capitals. */
static void snake(struct str name, char *ret) {
    if (name.len * 2 >= NAME_BYTES) die("a name too long: " STR_FMT, STR_ARG(name));
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        bool after_small = i > 0 && !isupper((unsigned char)name.at[i - 1]);
        bool before_small = i + 1 < name.len && islower((unsigned char)name.at[i + 1]);
        bool after_line = i > 0 && name.at[i - 1] == '_';
        if (isupper(c) && i > 0 && !after_line && (after_small || before_small)) *ret++ = '_';
        *ret++ = c == '.' ? '_' : (char)tolower(c);
    }
    *ret = '\0';
}

static void capitals(char *name) {
    for (; *name; name++) *name = (char)toupper((unsigned char)*name);
}

/* A field's name in C. The words are those of C and C++, for whoever includes from there. */
static const char *member(struct str name, char *ret) {
    static const char *const reserved[] = {
        "and",       "asm",       "auto",     "bool",     "break",    "case",     "catch",
        "char",      "class",     "const",    "default",  "delete",   "do",       "double",
        "else",      "enum",      "explicit", "export",   "extern",   "false",    "float",
        "for",       "friend",    "goto",     "if",       "inline",   "int",      "long",
        "mutable",   "namespace", "new",      "not",      "operator", "or",       "private",
        "protected", "public",    "register", "restrict", "return",   "short",    "signed",
        "sizeof",    "static",    "struct",   "switch",   "template", "this",     "throw",
        "true",      "try",       "typedef",  "typename", "union",    "unsigned", "using",
        "virtual",   "void",      "volatile", "while",    "xor",
    };
    bool taken = false;
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        taken |= str_equal(name, str_from(reserved[i]));
    copy_name(ret, STR_FMT "%s", STR_ARG(name), taken ? "_" : "");
    return ret;
}

static void package_prefix(const struct generator *g, struct str package, char *ret) {
    for (size_t i = 0; i < g->options.prefix_count; i++)
        if (str_equal(g->options.prefixes[i].key, package)) {
            copy_name(ret, STR_FMT, STR_ARG(g->options.prefixes[i].value));
            return;
        }
    snake(str_equal(package, STR("google.protobuf")) ? STR("google") : package, ret);
}

/* --- what the set declares ------------------------------------------------------------------
 */

static void add_enum(struct generator *g, const struct pb_enum_descriptor *descriptor,
                     const char *proto_scope, const char *c_scope) {
    g->enums = mem_resize(g->enums, (g->enum_count + 1) * sizeof(*g->enums));
    struct enumeration *added = &g->enums[g->enum_count++];
    char name[NAME_BYTES];
    snake(descriptor->name, name);
    added->descriptor = descriptor;
    copy_name(added->proto, "%s." STR_FMT, proto_scope, STR_ARG(descriptor->name));
    copy_name(added->c, "%s_%s", c_scope, name);
    copy_name(added->scope, "%s_", c_scope);
    capitals(added->scope);
}

static void add_message(struct generator *g, const struct pb_message_descriptor *descriptor,
                        const char *proto_scope, const char *c_scope) {
    struct message added = {.descriptor = descriptor};
    char name[NAME_BYTES];
    snake(descriptor->name, name);
    copy_name(added.proto, "%s." STR_FMT, proto_scope, STR_ARG(descriptor->name));
    copy_name(added.c, "%s_%s", c_scope, name);

    g->messages = mem_resize(g->messages, (g->message_count + 1) * sizeof(*g->messages));
    g->messages[g->message_count++] = added;
    for (size_t i = 0; i < descriptor->nested_type_count; i++)
        add_message(g, &descriptor->nested_type[i], added.proto, added.c);
    for (size_t i = 0; i < descriptor->enum_type_count; i++)
        add_enum(g, &descriptor->enum_type[i], added.proto, added.c);
}

static void add_file(struct generator *g, const struct pb_file_descriptor *file) {
    if (!str_equal(file->syntax, STR("proto3")))
        die(STR_FMT ": only proto3 is known here", STR_ARG(file->name));
    char proto[NAME_BYTES] = "", c[NAME_BYTES];
    if (file->package.len) copy_name(proto, "." STR_FMT, STR_ARG(file->package));
    package_prefix(g, file->package, c);
    for (size_t i = 0; i < file->enum_type_count; i++)
        add_enum(g, &file->enum_type[i], proto, c);
    for (size_t i = 0; i < file->message_type_count; i++)
        add_message(g, &file->message_type[i], proto, c);
}

static const struct message *message_get(const struct generator *g, struct str proto) {
    for (size_t i = 0; i < g->message_count; i++)
        if (str_equal(str_from(g->messages[i].proto), proto)) return &g->messages[i];
    die("no message " STR_FMT " in the set; was it made with --include_imports?",
        STR_ARG(proto));
}

/* The --import that has this file, or NULL when it is ours to generate. */
static const struct pair *import_of(const struct generator *g,
                                    const struct pb_file_descriptor *file) {
    for (size_t i = 0; i < g->options.import_count; i++) {
        const struct pair *import = &g->options.imports[i];
        struct str rest = str_skip(file->name, import->key.len);
        if (str_starts(file->name, import->key) && str_starts(rest, STR("/"))) return import;
    }
    return NULL;
}

/* --- fields ---------------------------------------------------------------------------------
 */

static const struct {
    const char *proto, *kind, *c;
} types[PB_TYPE_COUNT] = {
    /* clang-format off */
    [PB_TYPE_DOUBLE]   = {"double",   "PB_DOUBLE",   "double "},
    [PB_TYPE_FLOAT]    = {"float",    "PB_FLOAT",    "float "},
    [PB_TYPE_INT64]    = {"int64",    "PB_INT64",    "int64_t "},
    [PB_TYPE_UINT64]   = {"uint64",   "PB_UINT64",   "uint64_t "},
    [PB_TYPE_INT32]    = {"int32",    "PB_INT32",    "int32_t "},
    [PB_TYPE_FIXED64]  = {"fixed64",  "PB_FIXED64",  "uint64_t "},
    [PB_TYPE_FIXED32]  = {"fixed32",  "PB_FIXED32",  "uint32_t "},
    [PB_TYPE_BOOL]     = {"bool",     "PB_BOOL",     "bool "},
    [PB_TYPE_STRING]   = {"string",   "PB_STRING",   "struct str "},
    [PB_TYPE_MESSAGE]  = {"message",  "PB_MESSAGE",  NULL},
    [PB_TYPE_BYTES]    = {"bytes",    "PB_BYTES",    "struct str "},
    [PB_TYPE_UINT32]   = {"uint32",   "PB_UINT32",   "uint32_t "},
    [PB_TYPE_ENUM]     = {"enum",     "PB_ENUM",     "int32_t "},
    [PB_TYPE_SFIXED32] = {"sfixed32", "PB_SFIXED32", "int32_t "},
    [PB_TYPE_SFIXED64] = {"sfixed64", "PB_SFIXED64", "int64_t "},
    [PB_TYPE_SINT32]   = {"sint32",   "PB_SINT32",   "int32_t "},
    [PB_TYPE_SINT64]   = {"sint64",   "PB_SINT64",   "int64_t "},
    /* clang-format on */
};

static bool is_repeated(const struct pb_field_descriptor *field) {
    return field->label == PB_LABEL_REPEATED;
}

static bool is_packed(const struct pb_field_descriptor *field) {
    if (!is_repeated(field) || field->type == PB_TYPE_STRING || field->type == PB_TYPE_BYTES ||
        field->type == PB_TYPE_MESSAGE)
        return false;
    return !field->options || !field->options->has_packed || field->options->packed;
}

static bool in_oneof(const struct pb_field_descriptor *field) {
    return field->has_oneof_index && !field->proto3_optional;
}

static bool has_flag(const struct pb_field_descriptor *field) {
    return field->proto3_optional && field->type != PB_TYPE_MESSAGE;
}

static void check_field(const struct message *message,
                        const struct pb_field_descriptor *field) {
    if (field->type < 1 || field->type >= PB_TYPE_COUNT || !types[field->type].proto)
        die("%s." STR_FMT ": a type unknown here", message->proto, STR_ARG(field->name));
}

/* --- the header ------------------------------------------------------------------------------
 */

static void put_enum(const struct enumeration *e, struct buf *out) {
    buf_printf(out, "\n/* %s */\nenum %s {\n", e->proto + 1, e->c);
    for (size_t i = 0; i < e->descriptor->value_count; i++)
        buf_printf(out, "    %s" STR_FMT " = %d,\n", e->scope,
                   STR_ARG(e->descriptor->value[i].name), e->descriptor->value[i].number);
    buf_printf(out, "};\n");
}

static void put_declaration(const struct generator *g, const struct pb_field_descriptor *field,
                            const char *indent, struct buf *out) {
    char name[NAME_BYTES];
    member(field->name, name);
    if (has_flag(field)) buf_printf(out, "%sbool has_%s;\n", indent, name);

    const char *star = is_repeated(field) || field->type == PB_TYPE_MESSAGE ? "*" : "";
    const char *fixed = *star ? "const " : "";
    if (field->type == PB_TYPE_MESSAGE)
        buf_printf(out, "%s%sstruct %s %s%s;\n", indent, fixed,
                   message_get(g, field->type_name)->c, star, name);
    else
        buf_printf(out, "%s%s%s%s%s;", indent, fixed, types[field->type].c, star, name);
    if (field->type == PB_TYPE_ENUM)
        buf_printf(out, " /* " STR_FMT " */", STR_ARG(str_skip(field->type_name, 1)));
    if (field->type != PB_TYPE_MESSAGE) buf_printf(out, "\n");
    if (is_repeated(field)) buf_printf(out, "%ssize_t %s_count;\n", indent, name);
}

/* At its first member, a oneof is declared whole. */
static void put_oneof(const struct generator *g, const struct pb_message_descriptor *message,
                      int32_t oneof, struct buf *out) {
    buf_printf(out, "    int32_t which_" STR_FMT ";\n    union {\n",
               STR_ARG(message->oneof_decl[oneof].name));
    for (size_t i = 0; i < message->field_count; i++)
        if (in_oneof(&message->field[i]) && message->field[i].oneof_index == oneof)
            put_declaration(g, &message->field[i], "        ", out);
    buf_printf(out, "    };\n");
}

static bool is_first_of_oneof(const struct pb_message_descriptor *message, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (in_oneof(&message->field[i]) &&
            message->field[i].oneof_index == message->field[at].oneof_index)
            return false;
    return true;
}

static bool is_enum_constant(const struct generator *g, const char *name) {
    for (size_t i = 0; i < g->enum_count; i++) {
        const struct enumeration *e = &g->enums[i];
        struct str tail = str_skip(str_from(name), strlen(e->scope));
        if (!str_starts(str_from(name), str_from(e->scope))) continue;
        for (size_t k = 0; k < e->descriptor->value_count; k++)
            if (str_equal(e->descriptor->value[k].name, tail)) return true;
    }
    return false;
}

/* The values of which_x: the numbers of the members, by name. One that an enum has already, as
 * RealtimeEventType has REALTIME_EVENT_OPENED beside RealtimeEvent.opened, ends in _CASE. */
static void put_which(const struct generator *g, const struct message *message,
                      struct buf *out) {
    const struct pb_message_descriptor *descriptor = message->descriptor;
    bool begun = false;
    for (size_t i = 0; i < descriptor->field_count; i++) {
        const struct pb_field_descriptor *field = &descriptor->field[i];
        if (!in_oneof(field)) continue;
        char name[NAME_BYTES];
        copy_name(name, "%s_" STR_FMT, message->c, STR_ARG(field->name));
        capitals(name);
        buf_printf(out, "%s    %s%s = %d,\n", begun ? "" : "\nenum {\n", name,
                   is_enum_constant(g, name) ? "_CASE" : "", field->number);
        begun = true;
    }
    if (begun) buf_printf(out, "};\n");
}

static void put_struct(const struct generator *g, const struct message *message,
                       struct buf *out) {
    const struct pb_message_descriptor *descriptor = message->descriptor;
    put_which(g, message, out);
    buf_printf(out, "\n/* %s */\nstruct %s {\n", message->proto + 1, message->c);
    for (size_t i = 0; i < descriptor->field_count; i++) {
        const struct pb_field_descriptor *field = &descriptor->field[i];
        check_field(message, field);
        if (!in_oneof(field))
            put_declaration(g, field, "    ", out);
        else if (is_first_of_oneof(descriptor, i))
            put_oneof(g, descriptor, field->oneof_index, out);
    }
    if (!descriptor->field_count) buf_printf(out, "    char none; /* it has no fields */\n");
    buf_printf(out, "};\nextern const struct pb_message %s_table;\n", message->c);
}

static void put_guard(struct str name, struct buf *out) {
    buf_printf(out, "WEIR_");
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        buf_append_byte(out, isalnum(c) ? (char)toupper(c) : '_');
    }
    buf_printf(out, "_PB_H");
}

/* Each header once, however many of its files are imported. */
static void put_includes(const struct generator *g, struct buf *out) {
    buf_printf(out, "#include \"wire/pb.h\"\n");
    for (size_t i = 0; i < g->options.import_count; i++)
        for (size_t f = 0; f < g->set.file_count; f++)
            if (import_of(g, &g->set.file[f]) == &g->options.imports[i]) {
                buf_printf(out, "#include \"" STR_FMT "\"\n",
                           STR_ARG(g->options.imports[i].value));
                break;
            }
}

static void put_banner(const struct generator *g, struct buf *out) {
    buf_printf(out, "/* Written by pbgen; change the .proto files instead:\n");
    for (size_t i = 0; i < g->set.file_count; i++)
        if (!import_of(g, &g->set.file[i]))
            buf_printf(out, " *   " STR_FMT "\n", STR_ARG(g->set.file[i].name));
    buf_printf(out, " */\n");
}

/* Messages and enums of imported files are other headers' business. They are told apart by
 * building a second generator from our own files only. */
static void put_header(const struct generator *g, const struct generator *own,
                       struct buf *out) {
    put_banner(g, out);
    buf_printf(out, "#ifndef ");
    put_guard(g->options.name, out);
    buf_printf(out, "\n#define ");
    put_guard(g->options.name, out);
    buf_printf(out, "\n\n");
    put_includes(g, out);

    for (size_t i = 0; i < own->enum_count; i++) put_enum(&own->enums[i], out);
    buf_printf(out, "\n");
    for (size_t i = 0; i < own->message_count; i++)
        buf_printf(out, "struct %s;\n", own->messages[i].c);
    for (size_t i = 0; i < own->message_count; i++) put_struct(g, &own->messages[i], out);

    if (g->options.descriptor)
        buf_printf(out,
                   "\n/* The FileDescriptorSet of all this, imports included. */\n"
                   "extern const struct str %s;\n",
                   g->options.descriptor);
    buf_printf(out, "\n#endif\n");
}

/* --- the tables ------------------------------------------------------------------------------
 */

static int by_number(const void *a, const void *b) {
    const struct pb_field_descriptor *const *left = a, *const *right = b;
    return ((*left)->number > (*right)->number) - ((*left)->number < (*right)->number);
}

static void put_field(const struct generator *g, const struct message *message,
                      const struct pb_field_descriptor *field, struct buf *out) {
    char name[NAME_BYTES], mark[NAME_BYTES] = "0", sub[NAME_BYTES + 16] = "NULL";
    const char *label = "PB_IMPLICIT";
    member(field->name, name);
    if (in_oneof(field)) {
        struct str oneof = message->descriptor->oneof_decl[field->oneof_index].name;
        label = "PB_ONEOF";
        copy_name(mark, "offsetof(struct %s, which_" STR_FMT ")", message->c, STR_ARG(oneof));
    } else if (is_repeated(field)) {
        label = is_packed(field) ? "PB_PACKED" : "PB_REPEATED";
        copy_name(mark, "offsetof(struct %s, %s_count)", message->c, name);
    } else if (has_flag(field)) {
        label = "PB_OPTIONAL";
        copy_name(mark, "offsetof(struct %s, has_%s)", message->c, name);
    }
    if (field->type == PB_TYPE_MESSAGE)
        snprintf(sub, sizeof(sub), "&%s_table", message_get(g, field->type_name)->c);
    buf_printf(out, "    {%d, %s, %s, offsetof(struct %s, %s), %s, %s, \"" STR_FMT "\"},\n",
               field->number, types[field->type].kind, label, message->c, name, mark, sub,
               STR_ARG(field->name));
}

static void put_table(const struct generator *g, const struct message *message,
                      struct buf *out) {
    size_t count = message->descriptor->field_count, dense = 0;
    const struct pb_field_descriptor **sorted = mem_zero(count + 1, sizeof(*sorted));
    for (size_t i = 0; i < count; i++) sorted[i] = &message->descriptor->field[i];
    qsort(sorted, count, sizeof(*sorted), by_number);
    while (dense < count && (size_t)sorted[dense]->number == dense + 1) dense++;

    if (count) {
        buf_printf(out, "\nstatic const struct pb_field %s_fields[] = {\n", message->c);
        for (size_t i = 0; i < count; i++) put_field(g, message, sorted[i], out);
        buf_printf(out, "};\n");
    }
    buf_printf(out, "%sconst struct pb_message %s_table = {\n    \"%s\", %s%s, %zu, %zu,\n",
               count ? "" : "\n", message->c, message->proto + 1, count ? message->c : "NULL",
               count ? "_fields" : "", count, dense);
    bool entry = message->descriptor->options && message->descriptor->options->map_entry;
    buf_printf(out, "    sizeof(struct %s), %s,\n};\n", message->c, entry ? "true" : "false");
    free(sorted);
}

static void put_descriptor(const struct generator *g, struct buf *out) {
    struct str bytes = buf_str(&g->bytes);
    buf_printf(out, "\nstatic const unsigned char descriptor_bytes[] = {");
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%s%u,", i % 20 ? "" : "\n    ", (unsigned)(uint8_t)bytes.at[i]);
    buf_printf(out,
               "\n};\nconst struct str %s = {(const char *)descriptor_bytes,\n"
               "    sizeof(descriptor_bytes)};\n",
               g->options.descriptor);
}

static void put_source(const struct generator *g, const struct generator *own,
                       struct buf *out) {
    put_banner(g, out);
    buf_printf(out, "#include \"" STR_FMT ".pb.h\"\n", STR_ARG(g->options.name));
    for (size_t i = 0; i < own->message_count; i++) put_table(g, &own->messages[i], out);
    if (g->options.descriptor) put_descriptor(g, out);
}

static void generate(const struct generator *g) {
    struct generator own = {.options = g->options};
    for (size_t i = 0; i < g->set.file_count; i++)
        if (!import_of(g, &g->set.file[i])) add_file(&own, &g->set.file[i]);

    struct buf out;
    buf_init(&out, OUTPUT_MAX_BYTES);
    put_header(g, &own, &out);
    write_file(&g->options, ".pb.h", buf_str(&out));
    buf_clear(&out);
    put_source(g, &own, &out);
    write_file(&g->options, ".pb.c", buf_str(&out));
    buf_done(&out);
    free(own.messages);
    free(own.enums);
}

/* --- promises --------------------------------------------------------------------------------
 */

static void list_field(const struct message *message, const struct pb_field_descriptor *field,
                       struct buf *out) {
    check_field(message, field);
    struct str type = field->type_name.len ? str_skip(field->type_name, 1)
                                           : str_from(types[field->type].proto);
    const char *label = is_packed(field)         ? "packed "
                        : is_repeated(field)     ? "repeated "
                        : field->proto3_optional ? "optional "
                                                 : "";
    struct str oneof =
        in_oneof(field) ? message->descriptor->oneof_decl[field->oneof_index].name : STR_EMPTY;
    buf_printf(out, "field %s." STR_FMT " = %d %s" STR_FMT "%s" STR_FMT "\n",
               message->proto + 1, STR_ARG(field->name), field->number, label, STR_ARG(type),
               oneof.len ? " oneof " : "", STR_ARG(oneof));
}

static void list_service(struct str package, const struct pb_service_descriptor *service,
                         struct buf *out) {
    for (size_t i = 0; i < service->method_count; i++) {
        const struct pb_method_descriptor *method = &service->method[i];
        buf_printf(
            out, "rpc " STR_FMT "." STR_FMT "/" STR_FMT " (%s" STR_FMT ") (%s" STR_FMT ")\n",
            STR_ARG(package), STR_ARG(service->name), STR_ARG(method->name),
            method->client_streaming ? "stream " : "", STR_ARG(str_skip(method->input_type, 1)),
            method->server_streaming ? "stream " : "",
            STR_ARG(str_skip(method->output_type, 1)));
    }
}

/* What callers may rely on, a line each. Google's own files are not ours to promise. */
static void list(const struct generator *g, struct buf *out) {
    struct str google = STR(".google.protobuf.");
    for (size_t i = 0; i < g->message_count; i++) {
        const struct message *message = &g->messages[i];
        if (str_starts(str_from(message->proto), google)) continue;
        buf_printf(out, "message %s\n", message->proto + 1);
        for (size_t f = 0; f < message->descriptor->field_count; f++)
            list_field(message, &message->descriptor->field[f], out);
    }
    for (size_t i = 0; i < g->enum_count; i++) {
        const struct pb_enum_descriptor *descriptor = g->enums[i].descriptor;
        if (str_starts(str_from(g->enums[i].proto), google)) continue;
        for (size_t v = 0; v < descriptor->value_count; v++)
            buf_printf(out, "value %s." STR_FMT " = %d\n", g->enums[i].proto + 1,
                       STR_ARG(descriptor->value[v].name), descriptor->value[v].number);
    }
    for (size_t i = 0; i < g->set.file_count; i++)
        for (size_t s = 0; s < g->set.file[i].service_count; s++)
            list_service(g->set.file[i].package, &g->set.file[i].service[s], out);
}

static bool has_line(struct str text, struct str wanted) {
    while (text.len)
        if (str_equal(str_split(text, '\n', &text), wanted)) return true;
    return false;
}

/* The number of promises that are no longer kept. */
static size_t compare(struct str baseline, struct str now) {
    size_t broken = 0;
    while (baseline.len) {
        struct str line = str_split(baseline, '\n', &baseline);
        if (line.len == 0 || line.at[0] == '#' || has_line(now, line)) continue;
        fprintf(stderr, "gone or changed: " STR_FMT "\n", STR_ARG(line));
        broken++;
    }
    return broken;
}

static int check_baseline(const struct generator *g, struct str now) {
    struct buf baseline;
    read_file(g->options.baseline, &baseline);
    size_t broken = compare(buf_str(&baseline), now);
    buf_done(&baseline);
    if (!broken) return 0;
    fprintf(stderr,
            "pbgen: %zu promises of " STR_FMT " are broken; published fields and calls\n"
            "may be added, never removed, renamed, renumbered or retyped\n",
            broken, STR_ARG(g->options.baseline));
    return 1;
}

/* --- the command line ------------------------------------------------------------------------
 */

static struct pair split_pair(const char *argument) {
    struct pair pair;
    pair.key = str_split(str_from(argument), '=', &pair.value);
    if (!pair.value.at) die("'%s' has no '='", argument);
    return pair;
}

static void add_pair(struct pair *pairs, size_t *count, const char *argument) {
    if (*count == OPTIONS_MAX) die("more than %d of one option", OPTIONS_MAX);
    pairs[(*count)++] = split_pair(argument);
}

static struct options parse_options(int argc, char **argv) {
    struct options options = {0};
    for (int i = 1; i < argc; i++) {
        struct str name = str_from(argv[i]);
        if (!str_starts(name, STR("--"))) {
            options.input = name;
            continue;
        }
        if (str_equal(name, STR("--list"))) {
            options.list = true;
            continue;
        }
        if (++i == argc) die("%s needs a value", argv[i - 1]);
        const char *value = argv[i];
        if (str_equal(name, STR("--dir")))
            options.dir = str_from(value);
        else if (str_equal(name, STR("--name")))
            options.name = str_from(value);
        else if (str_equal(name, STR("--baseline")))
            options.baseline = str_from(value);
        else if (str_equal(name, STR("--descriptor")))
            options.descriptor = value;
        else if (str_equal(name, STR("--prefix")))
            add_pair(options.prefixes, &options.prefix_count, value);
        else if (str_equal(name, STR("--import")))
            add_pair(options.imports, &options.import_count, value);
        else
            die("no option %s; the top of tools/pbgen.c lists them", argv[i - 1]);
    }
    bool writes = options.dir.len && options.name.len;
    if (!options.input.len || !(writes || options.list || options.baseline.len))
        die("usage: pbgen (--dir DIR --name NAME | --list | --baseline FILE) SET.desc");
    return options;
}

int main(int argc, char **argv) {
    struct generator g = {.options = parse_options(argc, argv)};
    read_file(g.options.input, &g.bytes);

    struct err e;
    struct arena *arena = arena_new(INPUT_MAX_BYTES);
    if (!pb_decode_view(&pb_file_set_table, buf_str(&g.bytes), arena, &g.set, &e))
        die(STR_FMT ": %s", STR_ARG(g.options.input), e.text);
    for (size_t i = 0; i < g.set.file_count; i++) add_file(&g, &g.set.file[i]);

    struct buf promises;
    buf_init(&promises, OUTPUT_MAX_BYTES);
    list(&g, &promises);
    int status = 0;
    if (g.options.list) fwrite(promises.at, 1, promises.len, stdout);
    if (g.options.baseline.len) status = check_baseline(&g, buf_str(&promises));
    if (g.options.dir.len) generate(&g);

    buf_done(&promises);
    arena_free(arena);
    buf_done(&g.bytes);
    free(g.messages);
    free(g.enums);
    return status;
}
