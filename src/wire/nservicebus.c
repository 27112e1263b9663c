/* nservicebus.c: see nservicebus.h. Names and forms are those of NServiceBus 9. */
#include "nservicebus.h"

#include "base/clock.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ERROR_INFO "NServiceBus.ExceptionInfo."

/* moment writes "2026-11-20 07:08:09:123000 Z": always 28 characters. */
static void moment(int64_t wall_ms, char text[32])
{
    char known[MULL__TIMESTAMP_SIZE]; /* 2026-11-20T07:08:09.123Z */
    mull__timestamp_write(wall_ms, known);
    snprintf(text, 32, "%.10s %.8s:%.3s000 Z", known, known + 11, known + 20);
}

static void add(mull__fault_headers *faults, const char *name, const char *value)
{
    int fits = name && value && faults->count < MULL__FAULT_HEADERS;
    if (fits && !mull__header_find(faults->list, faults->count, name))
        faults->list[faults->count++] = (mull_header){.name = name, .value = value};
}

/* text writes into what is left of the room. NULL: it doesn't fit. */
__attribute__((format(printf, 2, 3))) static const char *text(mull__fault_headers *faults,
                                                              const char *format, ...)
{
    char *at = faults->text + faults->used;
    size_t left = sizeof faults->text - faults->used;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(at, left, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= left)
        return NULL;
    faults->used += (size_t)length + 1;
    return at;
}

/* value_text gives a field's value as a text; NULL: it has none, as lists and maps. */
static const char *value_text(mull__fault_headers *faults, const mull_value *value)
{
    switch (value->kind) {
    case MULL_BOOLEAN:
        return value->as.boolean ? "true" : "false";
    case MULL_INTEGER:
        return text(faults, "%" PRId64, value->as.integer);
    case MULL_NUMBER:
        return text(faults, "%.14g", value->as.number);
    case MULL_STRING:
        return value->as.string ? text(faults, "%s", value->as.string) : NULL;
    default:
        return NULL;
    }
}

/* name_of_field gives the header of a field; two fields have one of their own, where they are
 * texts. */
static const char *name_of_field(mull__fault_headers *faults, const mull_field *field)
{
    int is_text = field->value.kind == MULL_STRING;
    if (is_text && strcmp(field->name, "source") == 0)
        return ERROR_INFO "Source";
    if (is_text && strcmp(field->name, "help_link") == 0)
        return ERROR_INFO "HelpLink";
    return text(faults, ERROR_INFO "Data.%s", field->name);
}

static void add_field(mull__fault_headers *faults, const mull_field *field)
{
    size_t used = faults->used;
    const char *value = value_text(faults, &field->value);
    const char *name = name_of_field(faults, field);
    if (name && value)
        add(faults, name, value);
    else
        faults->used = used;
}

/* host_id gives 32 hex digits, the same for a machine. */
static const char *host_id(mull__fault_headers *faults, const char *machine)
{
    mull__digest digest;
    char hex[33];
    mull__digest_begin(&digest);
    mull__digest_add(&digest, machine, strlen(machine));
    mull__digest_end(&digest, hex);
    return text(faults, "%s", hex);
}

void mull__nservicebus_faults(mull__fault_headers *faults, const mull__header_values *values,
                              const char *machine)
{
    const mull_error *error = values->error;
    char failed_at[32];
    faults->count = faults->used = 0;
    moment(values->last_failure_ms, failed_at);
    add(faults, "NServiceBus.FailedQ", values->queue);
    add(faults, "NServiceBus.TimeOfFailure", text(faults, "%s", failed_at));
    add(faults, ERROR_INFO "ExceptionType", error->type);
    if (error->cause)
        add(faults, ERROR_INFO "InnerExceptionType", error->cause->type);
    add(faults, ERROR_INFO "Message", error->message ? error->message : "");
    add(faults, ERROR_INFO "StackTrace", error->stack ? error->stack : "");
    add(faults, "NServiceBus.ProcessingEndpoint", values->consumer);
    add(faults, "NServiceBus.ProcessingMachine", machine);
    add(faults, "$.diagnostics.hostid", host_id(faults, machine));
    add(faults, "$.diagnostics.hostdisplayname", machine);
    for (size_t i = 0; i < error->field_count; i++)
        if (error->fields[i].name)
            add_field(faults, &error->fields[i]);
}

int mull__nservicebus_answer(mull__retry_answer *answer, const mull_message *message,
                             int64_t wall_ms)
{
    const mull_header *headers = message->headers;
    size_t count = message->header_count;
    const char *id = mull__header_find(headers, count, "ServiceControl.Retry.UniqueMessageId");
    const char *queue =
        mull__header_find(headers, count, "ServiceControl.Retry.AcknowledgementQueue");
    if (!id || !id[0] || !queue || !queue[0])
        return 0;
    moment(wall_ms, answer->handled_at);
    answer->headers[0] = (mull_header){"ServiceControl.Retry.Successful", answer->handled_at};
    answer->headers[1] = (mull_header){"ServiceControl.Retry.UniqueMessageId", id};
    answer->headers[2] = (mull_header){"NServiceBus.ControlMessage", "True"};
    answer->message = (mull_message){.size = sizeof answer->message,
                                     .queue = queue,
                                     .body = "",
                                     .headers = answer->headers,
                                     .header_count = 3};
    return 1;
}
