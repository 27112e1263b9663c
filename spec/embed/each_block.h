/* each_block.h: each block that a state of Lua asks for is asked of its allocator, though small
 * ones are else cut from chunks. For an internal test that is linked with --wrap=mull__pool_resize.
 */
#ifndef SPEC_EACH_BLOCK_H
#define SPEC_EACH_BLOCK_H

#include "lua/pool.h"

void *__real_mull__pool_resize(mull__pool *pool, void *pointer, size_t old, size_t wanted);
void *__wrap_mull__pool_resize(mull__pool *pool, void *pointer, size_t old, size_t wanted);

/* enlarged: blocks that are too large to be cut from a chunk are the allocator's. */
static inline size_t enlarged(size_t size)
{
    return size > 0 ? size + MULL__POOL_SMALL : 0;
}

void *__wrap_mull__pool_resize(mull__pool *pool, void *pointer, size_t old, size_t wanted)
{
    return __real_mull__pool_resize(pool, pointer, enlarged(old), enlarged(wanted));
}

#endif
