#include "wire/pb_descriptor.h"

#define AT(of, member) offsetof(struct of, member)

#define PLAIN(of, number, kind, member)                                                        \
    { number, kind, PB_IMPLICIT, AT(of, member), 0, NULL, #member }
#define MAYBE(of, number, kind, member)                                                        \
    { number, kind, PB_OPTIONAL, AT(of, member), AT(of, has_##member), NULL, #member }
#define MANY(of, number, kind, member, sub)                                                    \
    { number, kind, PB_REPEATED, AT(of, member), AT(of, member##_count), sub, #member }
#define MESSAGE(of, number, member, sub)                                                       \
    { number, PB_MESSAGE, PB_IMPLICIT, AT(of, member), 0, sub, #member }

#define TABLE(of, proto, dense)                                                                \
    const struct pb_message of##_table = {"google.protobuf." proto, of##_fields,               \
                                          ARRAY_LEN(of##_fields),   dense,                     \
                                          sizeof(struct of),        false}

static const struct pb_field pb_field_options_fields[] = {
    MAYBE(pb_field_options, 2, PB_BOOL, packed),
};
static TABLE(pb_field_options, "FieldOptions", 0);

static const struct pb_field pb_field_descriptor_fields[] = {
    PLAIN(pb_field_descriptor, 1, PB_STRING, name),
    PLAIN(pb_field_descriptor, 3, PB_INT32, number),
    PLAIN(pb_field_descriptor, 4, PB_ENUM, label),
    PLAIN(pb_field_descriptor, 5, PB_ENUM, type),
    PLAIN(pb_field_descriptor, 6, PB_STRING, type_name),
    MESSAGE(pb_field_descriptor, 8, options, &pb_field_options_table),
    MAYBE(pb_field_descriptor, 9, PB_INT32, oneof_index),
    PLAIN(pb_field_descriptor, 17, PB_BOOL, proto3_optional),
};
static TABLE(pb_field_descriptor, "FieldDescriptorProto", 1);

static const struct pb_field pb_enum_value_descriptor_fields[] = {
    PLAIN(pb_enum_value_descriptor, 1, PB_STRING, name),
    PLAIN(pb_enum_value_descriptor, 2, PB_INT32, number),
};
static TABLE(pb_enum_value_descriptor, "EnumValueDescriptorProto", 2);

static const struct pb_field pb_enum_descriptor_fields[] = {
    PLAIN(pb_enum_descriptor, 1, PB_STRING, name),
    MANY(pb_enum_descriptor, 2, PB_MESSAGE, value, &pb_enum_value_descriptor_table),
};
static TABLE(pb_enum_descriptor, "EnumDescriptorProto", 2);

static const struct pb_field pb_oneof_descriptor_fields[] = {
    PLAIN(pb_oneof_descriptor, 1, PB_STRING, name),
};
static TABLE(pb_oneof_descriptor, "OneofDescriptorProto", 1);

static const struct pb_field pb_message_options_fields[] = {
    PLAIN(pb_message_options, 7, PB_BOOL, map_entry),
};
static TABLE(pb_message_options, "MessageOptions", 0);

static const struct pb_field pb_message_descriptor_fields[] = {
    PLAIN(pb_message_descriptor, 1, PB_STRING, name),
    MANY(pb_message_descriptor, 2, PB_MESSAGE, field, &pb_field_descriptor_table),
    MANY(pb_message_descriptor, 3, PB_MESSAGE, nested_type, &pb_message_descriptor_table),
    MANY(pb_message_descriptor, 4, PB_MESSAGE, enum_type, &pb_enum_descriptor_table),
    MESSAGE(pb_message_descriptor, 7, options, &pb_message_options_table),
    MANY(pb_message_descriptor, 8, PB_MESSAGE, oneof_decl, &pb_oneof_descriptor_table),
};
TABLE(pb_message_descriptor, "DescriptorProto", 4);

static const struct pb_field pb_method_descriptor_fields[] = {
    PLAIN(pb_method_descriptor, 1, PB_STRING, name),
    PLAIN(pb_method_descriptor, 2, PB_STRING, input_type),
    PLAIN(pb_method_descriptor, 3, PB_STRING, output_type),
    PLAIN(pb_method_descriptor, 5, PB_BOOL, client_streaming),
    PLAIN(pb_method_descriptor, 6, PB_BOOL, server_streaming),
};
static TABLE(pb_method_descriptor, "MethodDescriptorProto", 3);

static const struct pb_field pb_service_descriptor_fields[] = {
    PLAIN(pb_service_descriptor, 1, PB_STRING, name),
    MANY(pb_service_descriptor, 2, PB_MESSAGE, method, &pb_method_descriptor_table),
};
static TABLE(pb_service_descriptor, "ServiceDescriptorProto", 2);

static const struct pb_field pb_file_descriptor_fields[] = {
    PLAIN(pb_file_descriptor, 1, PB_STRING, name),
    PLAIN(pb_file_descriptor, 2, PB_STRING, package),
    MANY(pb_file_descriptor, 3, PB_STRING, dependency, NULL),
    MANY(pb_file_descriptor, 4, PB_MESSAGE, message_type, &pb_message_descriptor_table),
    MANY(pb_file_descriptor, 5, PB_MESSAGE, enum_type, &pb_enum_descriptor_table),
    MANY(pb_file_descriptor, 6, PB_MESSAGE, service, &pb_service_descriptor_table),
    PLAIN(pb_file_descriptor, 12, PB_STRING, syntax),
};
TABLE(pb_file_descriptor, "FileDescriptorProto", 6);

static const struct pb_field pb_file_set_fields[] = {
    MANY(pb_file_set, 1, PB_MESSAGE, file, &pb_file_descriptor_table),
};
TABLE(pb_file_set, "FileDescriptorSet", 1);

static const struct pb_field pb_file_set_raw_fields[] = {
    MANY(pb_file_set_raw, 1, PB_BYTES, file, NULL),
};
TABLE(pb_file_set_raw, "FileDescriptorSet", 1);
