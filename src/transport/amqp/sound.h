/* sound.h: looks through foreign bytes before the codec does, which follows tables within tables as
 * deep as they go. */
#ifndef MULL__AMQP_SOUND_H
#define MULL__AMQP_SOUND_H

#include <stddef.h>

/* mull__amqp_table_sound says whether a table begins at `*at` that is whole, and no deeper than
 * MULL__AMQP_TABLE_DEPTH; `*at` is moved behind it. */
int mull__amqp_table_sound(const char *bytes, size_t size, size_t *at);

/* mull__amqp_properties_sound says whether encoded properties of a message may be given to the
 * codec: known flags, tables no deeper than allowed, no length beyond the end, nothing behind. */
int mull__amqp_properties_sound(const char *bytes, size_t size);

#endif
