/* files_look.c: see files_look.h. */
#include "files_look.h"

#include "hash.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

uint64_t mull__files_look(const char *paths)
{
    uint64_t sum = 0;
    for (const char *path = paths; path && *path; path += strlen(path) + 1) {
        struct stat found = {0};
        uint64_t error = stat(path, &found) == 0 ? 0 : (uint64_t)errno;
        const uint64_t words[] = {sum,
                                  error,
                                  (uint64_t)found.st_dev,
                                  (uint64_t)found.st_ino,
                                  (uint64_t)found.st_size,
                                  (uint64_t)found.st_ctim.tv_sec,
                                  (uint64_t)found.st_ctim.tv_nsec};
        sum = mull__hash_words(words, sizeof words / sizeof words[0]);
    }
    return sum;
}
