#include "contract/nimi/audit/view.h"

#include "base/utf8.h"
#include "helper/assert_str.h"
#include "wire/pb.h"

/* Earlier versions kept what a header said; one such record made a list unreadable. */
static void texts_of_a_record_are_utf_8(void **state) {
    (void)state;
    struct audit_record record = {.at_ms = 1500};
    for (size_t i = 0; i < AUDIT_TEXTS; i++) record.texts[i] = STR("caller\xff\xfe one");
    record.texts[AUDIT_MODEL] = STR("Gr\xc3\xbc\xc3\x9f"
                                    "e");
    struct audit_view view;
    audit_view_init(&view, &record);
    assert_str(view.event.caller_id, "caller");
    assert_str(view.event.surface_id, "caller");
    assert_str(view.event.app_id, "caller");
    bool model = false;
    for (size_t i = 0; i < view.payload.fields_count; i++) {
        const struct google_struct_fields_entry *field = &view.payload.fields[i];
        if (field->value->which_kind != GOOGLE_VALUE_STRING_VALUE) continue;
        assert_true(utf8_valid(field->value->string_value));
        if (!str_equal(field->key, STR("model"))) continue;
        assert_str(field->value->string_value, "Gr\xc3\xbc\xc3\x9f"
                                               "e");
        model = true;
    }
    assert_true(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_a_record_are_utf_8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
