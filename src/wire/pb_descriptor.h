/* pb_descriptor: .proto files as messages.
 *
 * protoc turns .proto files into a FileDescriptorSet, itself a protobuf message. Its tables
 * are written here by hand, so that the generator of all other tables can read it, and gRPC
 * reflection can search the built-in sets. Only what these two need is here; the rest of a
 * descriptor reads as unknown fields.
 *
 * Source   google/protobuf/descriptor.proto */
#ifndef WEIR_WIRE_PB_DESCRIPTOR_H
#define WEIR_WIRE_PB_DESCRIPTOR_H

#include "wire/pb.h"

/* FieldDescriptorProto.Type */
enum pb_descriptor_type {
    PB_TYPE_DOUBLE = 1,
    PB_TYPE_FLOAT = 2,
    PB_TYPE_INT64 = 3,
    PB_TYPE_UINT64 = 4,
    PB_TYPE_INT32 = 5,
    PB_TYPE_FIXED64 = 6,
    PB_TYPE_FIXED32 = 7,
    PB_TYPE_BOOL = 8,
    PB_TYPE_STRING = 9,
    PB_TYPE_GROUP = 10,
    PB_TYPE_MESSAGE = 11,
    PB_TYPE_BYTES = 12,
    PB_TYPE_UINT32 = 13,
    PB_TYPE_ENUM = 14,
    PB_TYPE_SFIXED32 = 15,
    PB_TYPE_SFIXED64 = 16,
    PB_TYPE_SINT32 = 17,
    PB_TYPE_SINT64 = 18,
    PB_TYPE_COUNT,
};

#define PB_LABEL_REPEATED 3 /* FieldDescriptorProto.Label */

struct pb_field_options {
    bool has_packed;
    bool packed;
};

struct pb_field_descriptor {
    struct str name;
    int32_t number;
    int32_t label;
    int32_t type;
    struct str type_name; /* ".package.Message" */
    bool has_oneof_index;
    int32_t oneof_index;
    bool proto3_optional; /* its oneof is synthetic, made by protoc */
    const struct pb_field_options *options;
};

struct pb_enum_value_descriptor {
    struct str name;
    int32_t number;
};

struct pb_enum_descriptor {
    struct str name;
    const struct pb_enum_value_descriptor *value;
    size_t value_count;
};

struct pb_oneof_descriptor {
    struct str name;
};

struct pb_message_options {
    bool map_entry;
};

struct pb_message_descriptor {
    struct str name;
    const struct pb_field_descriptor *field;
    size_t field_count;
    const struct pb_message_descriptor *nested_type;
    size_t nested_type_count;
    const struct pb_enum_descriptor *enum_type;
    size_t enum_type_count;
    const struct pb_oneof_descriptor *oneof_decl;
    size_t oneof_decl_count;
    const struct pb_message_options *options;
};

struct pb_method_descriptor {
    struct str name;
    struct str input_type;
    struct str output_type;
    bool client_streaming;
    bool server_streaming;
};

struct pb_service_descriptor {
    struct str name;
    const struct pb_method_descriptor *method;
    size_t method_count;
};

struct pb_file_descriptor {
    struct str name; /* "google/protobuf/timestamp.proto" */
    struct str package;
    const struct str *dependency;
    size_t dependency_count;
    const struct pb_message_descriptor *message_type;
    size_t message_type_count;
    const struct pb_enum_descriptor *enum_type;
    size_t enum_type_count;
    const struct pb_service_descriptor *service;
    size_t service_count;
    struct str syntax;
};

struct pb_file_set {
    const struct pb_file_descriptor *file;
    size_t file_count;
};

/* The same set with each file kept as bytes, which is what reflection returns. */
struct pb_file_set_raw {
    const struct str *file;
    size_t file_count;
};

extern const struct pb_message pb_message_descriptor_table;
extern const struct pb_message pb_file_descriptor_table;
extern const struct pb_message pb_file_set_table;
extern const struct pb_message pb_file_set_raw_table;

#endif
