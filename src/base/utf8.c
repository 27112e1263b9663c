/* utf8.c: see utf8.h; the ranges are those of The Unicode Standard, table 3-7. */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

static int within(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

size_t mull__utf8_char_size(const char *text, size_t left)
{
    const unsigned char *at = (const unsigned char *)text;
    if (left == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;
    size_t size = within(at[0], 0xC2, 0xDF) ? 2 : within(at[0], 0xE0, 0xEF) ? 3 : 4;
    if (!within(at[0], 0xC2, 0xF4) || left < size)
        return 0;
    unsigned char low = at[0] == 0xE0 ? 0xA0 : at[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = at[0] == 0xED ? 0x9F : at[0] == 0xF4 ? 0x8F : 0xBF;
    if (!within(at[1], low, high))
        return 0;
    for (size_t i = 2; i < size; i++)
        if (!within(at[i], 0x80, 0xBF))
            return 0;
    return size;
}

/* ascii_words gives how many bytes at the beginning are ASCII, as far as whole words of them are.
 */
static size_t ascii_words(const char *text, size_t left)
{
    size_t size = 0;
    for (uint64_t word; left - size >= sizeof word; size += sizeof word) {
        memcpy(&word, text + size, sizeof word);
        if (word & 0x8080808080808080u)
            break;
    }
    return size;
}

size_t mull__utf8_prefix(const char *text, size_t length)
{
    size_t at = 0;
    for (size_t size; at < length; at += size) {
        size = ascii_words(text + at, length - at);
        if (size == 0)
            size = mull__utf8_char_size(text + at, length - at);
        if (size == 0)
            break;
    }
    return at;
}

int mull__utf8_valid(const char *text)
{
    size_t length = text ? strlen(text) : 0;
    return mull__utf8_prefix(text, length) == length;
}

void mull__utf8_repair(char *text, size_t length)
{
    for (size_t at = 0; (at += mull__utf8_prefix(text + at, length - at)) < length; at++)
        text[at] = '?';
}
