/* stderr_queue.h: lines for a descriptor that may stand still, or fail: a pipe that nobody reads, a
 * full disk. They wait in a queue of bounded size for a thread that writes them, as many in one
 * write as a pipe takes whole, or one that is longer.
 *
 *   put ── line ── line ── line ──> thread ── write
 *    └ a line that finds no room is lost, and counted with those that couldn't be written
 *
 * Where lines were lost, and others can be written again, a line between them says how many. */
#ifndef MULL__STDERR_QUEUE_H
#define MULL__STDERR_QUEUE_H

#include <stddef.h>

typedef struct mull__writer mull__writer;

/* mull__writer_new starts a writer for `fd`; it lasts as long as the process. The lines that wait
 * take up to `most` bytes. `lost` is the line that tells of lost ones, of some 500 bytes at most,
 * without its line feed: in it "@time@", which comes first, becomes the moment, and "@count@" how
 * many there are. MULL_ENOMEM, also where there can't be another thread. */
int mull__writer_new(mull__writer **out, int fd, size_t most, const char *lost);

/* mull__writer_put leaves a line, line feed included, to be written. It never waits. */
void mull__writer_put(mull__writer *writer, const char *line, size_t size);

/* mull__writer_flush waits until all that was put is dealt with, as long as a line is every
 * `patience_ms`, and `longest_ms` at most. What couldn't be told of before is tried again. */
void mull__writer_flush(mull__writer *writer, int patience_ms, int longest_ms);

#endif
