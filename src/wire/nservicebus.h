/* nservicebus.h: the headers that NServiceBus puts on a message in its error queue. ServiceControl
 * reads them there, and ServicePulse shows the message and sends it back. It reads these:
 *
 *   NServiceBus.FailedQ, .TimeOfFailure, .ProcessingEndpoint, .ProcessingMachine
 *   NServiceBus.ExceptionInfo.ExceptionType, .InnerExceptionType, .Message, .StackTrace, .Source,
 *                             .HelpLink, .Data.NAME
 *   $.diagnostics.hostid, $.diagnostics.hostdisplayname
 *
 * A message that was sent back asks to be told once it is handled; what answers it is here, too. */
#ifndef MULL__NSERVICEBUS_H
#define MULL__NSERVICEBUS_H

#include "headers.h"

/* Names and values of an error's fields take so many bytes at most; further ones are left out. */
enum { MULL__FAULT_HEADERS = 76, MULL__FAULT_TEXT = 16 * 1024 };

/* mull__fault_headers is what a dead letter gets: `list` points into `text` and to what it was made
 * from. */
typedef struct mull__fault_headers {
    mull_header list[MULL__FAULT_HEADERS];
    size_t count, used;
    char text[MULL__FAULT_TEXT];
} mull__fault_headers;

/* mull__nservicebus_faults lists the headers of a failure. `machine` is the name of this one. */
void mull__nservicebus_faults(mull__fault_headers *faults, const mull__header_values *values,
                              const char *machine);

/* mull__retry_answer is what tells ServiceControl that a message it sent back was handled. */
typedef struct mull__retry_answer {
    mull_message message;
    mull_header headers[3];
    char handled_at[32];
} mull__retry_answer;

/* mull__nservicebus_answer makes the answer to a message. Its texts are the message's, but for the
 * moment. 0: nobody asks for one. */
int mull__nservicebus_answer(mull__retry_answer *answer, const mull_message *message,
                             int64_t wall_ms);

#endif
