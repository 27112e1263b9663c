/* stderr_output.h: what the program, and a callback that finds no log, says on stderr. */
#ifndef MULL__STDERR_OUTPUT_H
#define MULL__STDERR_OUTPUT_H

#include <lua.h>

/* mull__stderr_print says "mulligan: ..." in one line, as printf, cut at 2 KiB. */
__attribute__((format(printf, 1, 2))) void mull__stderr_print(const char *format, ...);

/* mull__stderr_flush waits a while for what is queued, on any thread. */
void mull__stderr_flush(void);

/* mull__lua_stderr_write is stderr_write(text), whole lines. It waits for whoever reads, unless
 * there is a queue. */
int mull__lua_stderr_write(lua_State *L);

/* mull__lua_stderr_queue is stderr_queue(lost): from now on nobody waits for stderr: see
 * stderr_queue.h. When the process exits it waits a while for what is left. True; or nil and why.
 * Once only. */
int mull__lua_stderr_queue(lua_State *L);

#endif
