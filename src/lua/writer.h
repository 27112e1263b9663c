/* writer.h: lines for a descriptor that may stand still, or fail: a pipe that nobody reads, a full
 * disk. They wait in a queue of bounded size for a thread that writes them, each in one write where
 * the descriptor takes it at once.
 *
 *   put ── line ── line ── line ──> thread ── write
 *    └ a line that finds no room is lost, and counted with those that couldn't be written
 *
 * Where lines were lost, and others can be written again, a line between them says how many. */
#ifndef MULL__WRITER_H
#define MULL__WRITER_H

#include <stddef.h>

typedef struct mull__writer mull__writer;

/* mull__writer_new starts a writer for `fd`, which stays the caller's. The lines that wait take up
 * to `most` bytes. `lost` is the line that tells of lost ones, without its line feed: in it the
 * first "@time@" becomes the moment, and the first "@count@" how many there are. MULL_ENOMEM, also
 * where there can't be another thread. */
int mull__writer_new(mull__writer **out, int fd, size_t most, const char *lost);

/* mull__writer_put leaves a line, line feed included, to be written. It never waits. */
void mull__writer_put(mull__writer *writer, const char *line, size_t size);

/* mull__writer_flush waits until all that was put is dealt with, as long as mull__writer_close
 * does.
 */
void mull__writer_flush(mull__writer *writer, int patience_ms, int longest_ms);

/* mull__writer_close waits until all is written, as long as a line is every `patience_ms`, and
 * `longest_ms` at most; then it lets go of what is left, and of the writer. */
void mull__writer_close(mull__writer *writer, int patience_ms, int longest_ms);

#endif
