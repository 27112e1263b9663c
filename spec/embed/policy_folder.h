/* policy_folder.h: a folder of a test's own, for the files of a policy. */
#ifndef SPEC_POLICY_FOLDER_H
#define SPEC_POLICY_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { FOLDER_FILES = 8, FOLDER_PATH = 96 };

/* folder: `main` is where its policy.lua is to be. */
typedef struct folder {
    char path[32], main[FOLDER_PATH];
    char made[FOLDER_FILES][FOLDER_PATH]; /* files and folders, in the order of their making */
    size_t count;
} folder;

static inline void folder_open(folder *f)
{
    *f = (folder){.path = "/tmp/mulligan-XXXXXX"};
    assert_non_null(mkdtemp(f->path));
    snprintf(f->main, sizeof f->main, "%s/policy.lua", f->path);
}

/* folder_add notes a path in it, and gives that. */
static inline const char *folder_add(folder *f, const char *name)
{
    char path[FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->made[i], path) == 0)
            return f->made[i];
    assert_true(f->count < FOLDER_FILES);
    return strcpy(f->made[f->count++], path);
}

static inline void folder_write(folder *f, const char *name, const char *text)
{
    FILE *file = fopen(folder_add(f, name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void folder_make(folder *f, const char *name)
{
    assert_int_equal(mkdir(folder_add(f, name), 0700), 0);
}

static inline void folder_close(folder *f)
{
    while (f->count > 0)
        remove(f->made[--f->count]);
    assert_int_equal(remove(f->path), 0);
}

#endif
