#include "wire/pb_descriptor.h"

#define AT(member) offsetof(struct OF, member)

#define PLAIN(number, kind, member)                                                            \
    { number, kind, PB_IMPLICIT, AT(member), 0, NULL, #member }
#define MAYBE(number, kind, member)                                                            \
    { number, kind, PB_OPTIONAL, AT(member), AT(has_##member), NULL, #member }
#define MANY(number, kind, member, sub)                                                        \
    { number, kind, PB_REPEATED, AT(member), AT(member##_count), sub, #member }
#define MESSAGE(number, member, sub)                                                           \
    { number, PB_MESSAGE, PB_IMPLICIT, AT(member), 0, sub, #member }

#define TABLE(proto, fields, dense)                                                            \
    { "google.protobuf." proto, fields, ARRAY_LEN(fields), dense, sizeof(struct OF), false }

#define OF pb_field_options
static const struct pb_field field_options_fields[] = {
    MAYBE(2, PB_BOOL, packed),
};
static const struct pb_message field_options_table =
    TABLE("FieldOptions", field_options_fields, 0);
#undef OF

#define OF pb_field_descriptor
static const struct pb_field field_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),       PLAIN(3, PB_INT32, number),
    PLAIN(4, PB_ENUM, label),        PLAIN(5, PB_ENUM, type),
    PLAIN(6, PB_STRING, type_name),  MESSAGE(8, options, &field_options_table),
    MAYBE(9, PB_INT32, oneof_index), PLAIN(17, PB_BOOL, proto3_optional),
};
static const struct pb_message field_descriptor_table =
    TABLE("FieldDescriptorProto", field_descriptor_fields, 1);
#undef OF

#define OF pb_enum_value_descriptor
static const struct pb_field enum_value_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),
    PLAIN(2, PB_INT32, number),
};
static const struct pb_message enum_value_descriptor_table =
    TABLE("EnumValueDescriptorProto", enum_value_descriptor_fields, 2);
#undef OF

#define OF pb_enum_descriptor
static const struct pb_field enum_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),
    MANY(2, PB_MESSAGE, value, &enum_value_descriptor_table),
};
static const struct pb_message enum_descriptor_table =
    TABLE("EnumDescriptorProto", enum_descriptor_fields, 2);
#undef OF

#define OF pb_oneof_descriptor
static const struct pb_field oneof_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),
};
static const struct pb_message oneof_descriptor_table =
    TABLE("OneofDescriptorProto", oneof_descriptor_fields, 1);
#undef OF

#define OF pb_message_options
static const struct pb_field message_options_fields[] = {
    PLAIN(7, PB_BOOL, map_entry),
};
static const struct pb_message message_options_table =
    TABLE("MessageOptions", message_options_fields, 0);
#undef OF

#define OF pb_message_descriptor
static const struct pb_field message_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),
    MANY(2, PB_MESSAGE, field, &field_descriptor_table),
    MANY(3, PB_MESSAGE, nested_type, &pb_message_descriptor_table),
    MANY(4, PB_MESSAGE, enum_type, &enum_descriptor_table),
    MESSAGE(7, options, &message_options_table),
    MANY(8, PB_MESSAGE, oneof_decl, &oneof_descriptor_table),
};
const struct pb_message pb_message_descriptor_table =
    TABLE("DescriptorProto", message_descriptor_fields, 4);
#undef OF

#define OF pb_method_descriptor
static const struct pb_field method_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),           PLAIN(2, PB_STRING, input_type),
    PLAIN(3, PB_STRING, output_type),    PLAIN(5, PB_BOOL, client_streaming),
    PLAIN(6, PB_BOOL, server_streaming),
};
static const struct pb_message method_descriptor_table =
    TABLE("MethodDescriptorProto", method_descriptor_fields, 3);
#undef OF

#define OF pb_service_descriptor
static const struct pb_field service_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),
    MANY(2, PB_MESSAGE, method, &method_descriptor_table),
};
static const struct pb_message service_descriptor_table =
    TABLE("ServiceDescriptorProto", service_descriptor_fields, 2);
#undef OF

#define OF pb_file_descriptor
static const struct pb_field file_descriptor_fields[] = {
    PLAIN(1, PB_STRING, name),
    PLAIN(2, PB_STRING, package),
    MANY(3, PB_STRING, dependency, NULL),
    MANY(4, PB_MESSAGE, message_type, &pb_message_descriptor_table),
    MANY(5, PB_MESSAGE, enum_type, &enum_descriptor_table),
    MANY(6, PB_MESSAGE, service, &service_descriptor_table),
    PLAIN(12, PB_STRING, syntax),
};
const struct pb_message pb_file_descriptor_table =
    TABLE("FileDescriptorProto", file_descriptor_fields, 6);
#undef OF

#define OF pb_file_set
static const struct pb_field file_set_fields[] = {
    MANY(1, PB_MESSAGE, file, &pb_file_descriptor_table),
};
const struct pb_message pb_file_set_table = TABLE("FileDescriptorSet", file_set_fields, 1);
#undef OF

#define OF pb_file_set_raw
static const struct pb_field file_set_raw_fields[] = {
    MANY(1, PB_BYTES, file, NULL),
};
const struct pb_message pb_file_set_raw_table =
    TABLE("FileDescriptorSet", file_set_raw_fields, 1);
#undef OF
