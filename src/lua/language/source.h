/* source.h: the files that a policy is made of, by name and byte for byte, and its host policy,
 * which has no name here. While it is open, a file that it hasn't yet is read from the policy's
 * folder; once closed, it never touches the disk, and any number of threads may read it. */
#ifndef MULL__SOURCE_H
#define MULL__SOURCE_H

#include "mulligan.h"

typedef struct mull__source mull__source;

typedef struct mull__source_file {
    struct mull__source_file *next; /* by name, in the order of bytes */
    char *name;                     /* relative to the folder, with '/' */
    char *text;                     /* `size` bytes and a NUL; NULL: it couldn't be read */
    size_t size;
    int given; /* by mull__source_add: the disk has no say in it */
} mull__source_file;

/* A file's size is bounded, so that a policy that is a device doesn't fill the memory; and so is
 * the number of files, those that aren't there included, so that one that looks for others in a
 * loop neither fills it nor is busy for ever. */
enum { MULL__SOURCE_MAX = 16 * 1024 * 1024, MULL__SOURCE_FILES = 1000 };

/* mull__source_new makes an empty source whose files are in `folder` ("" or ending in '/'; NULL:
 * there is none, and no file can be read). MULL_ENOMEM. */
int mull__source_new(mull__source **out, const mull_allocator *allocator, const char *folder);
void mull__source_free(mull__source *source);

/* mull__source_add takes in a text under a name that it hasn't yet. MULL_ENOMEM. */
int mull__source_add(mull__source *source, const char *name, const char *text, size_t size);

/* mull__source_add_host says where the host policy is: in the file at `path`, or, where there is a
 * text, in that. MULL_ENOMEM. */
int mull__source_add_host(mull__source *source, const char *path, const char *text, size_t size);

/* mull__source_get_host gives the host policy, as mull__source_get. */
int mull__source_get_host(mull__source *source, const mull__source_file **file, char *why,
                          size_t why_size);

/* mull__source_get gives a file with its text. MULL_ENOMEM; MULL_EIO with the reason, and where it
 * was looked for, in `why`. */
int mull__source_get(mull__source *source, const char *name, const mull__source_file **file,
                     char *why, size_t why_size);

/* mull__source_changed reads all files once more. 0: they have the same bytes, and what couldn't be
 * read still can't; so there was a moment at which all of this was so together. 1: else, as where
 * the folder was replaced between two of them. MULL_ENOMEM. */
int mull__source_changed(mull__source *source);

/* mull__source_files lists the paths of all files that were read, or looked for and not there, one
 * behind the other, each with its NUL, and an empty one at the end. NULL: out of memory, or none
 * was looked for, as where all texts were given. Not once it is closed. */
char *mull__source_files(const mull__source *source);

/* mull__source_close ends the reading from disk and writes the content hash of all files: of their
 * names and bytes, and of the bytes of the host policy. */
void mull__source_close(mull__source *source, char name[33]);

#endif
