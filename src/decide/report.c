/* report.c: what a policy says to people: mistakes, and what it prints. */
#include "decide.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void mull__report_add(const char *file, int line, const char *text, void *data)
{
    mull__report *report = data;
    if (report->problem)
        report->problem(file, line, text, report->data);
    if (report->count++ > 0)
        return;
    char place[16] = "";
    if (file && line > 0)
        snprintf(place, sizeof place, ":%d", line);
    snprintf(report->first, sizeof report->first, "%s%s%s%s", file ? file : "", place,
             file ? ": " : "", text);
    mull__utf8_repair(report->first, strlen(report->first));
}

void mull__report_say(const mull__report *report, int status, char *text, size_t size)
{
    if (report->count == 0)
        snprintf(text, size, "%s", mull_strerror(status));
    else if (report->count == 1)
        snprintf(text, size, "%s", report->first);
    else
        snprintf(text, size, "%s (and %zu more)", report->first, report->count - 1);
    mull__utf8_repair(text, strlen(text));
}

void mull__log_write(mull__log *log, mull_level level, const char *text)
{
    if (!log->log)
        return;
    pthread_mutex_lock(&log->one);
    log->log(level, text, log->data);
    pthread_mutex_unlock(&log->one);
}
