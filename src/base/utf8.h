/* utf8.h: is it UTF-8, and how to make it so. */
#ifndef MULL__UTF8_H
#define MULL__UTF8_H

#include <stddef.h>

/* mull__utf8_char_size gives the size of the character at `text`, of which `left` bytes are there;
 * 0: it is none (cut off, overlong, a surrogate, beyond U+10FFFF). */
size_t mull__utf8_char_size(const char *text, size_t left);

/* mull__utf8_prefix gives how many bytes at the beginning are characters. */
size_t mull__utf8_prefix(const char *text, size_t length);

/* mull__utf8_valid says whether a string is UTF-8; NULL is. */
int mull__utf8_valid(const char *text);

/* mull__utf8_repair writes a question mark over each byte that is part of no character. */
void mull__utf8_repair(char *text, size_t length);

#endif
