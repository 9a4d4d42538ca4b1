/* Texts: what is looked for, and joined. */
#include <string.h>

/* A program that has a function of such a name itself keeps it. */
#pragma weak memchr
#pragma weak strncpy
#pragma weak strcat
#pragma weak strncat
#pragma weak strrchr
#pragma weak strstr
#pragma weak strspn
#pragma weak strcspn

void *memchr(const void *memory, int byte, size_t size) {
    const unsigned char *bytes = memory;
    for (size_t at = 0; at < size; at++)
        if (bytes[at] == (unsigned char)byte) return (void *)(bytes + at);
    return NULL;
}

char *strncpy(char *restrict to, const char *restrict from, size_t size) {
    size_t at = 0;
    for (; at < size && from[at]; at++) to[at] = from[at];
    memset(to + at, 0, size - at);
    return to;
}

char *strcat(char *restrict to, const char *restrict from) {
    strcpy(to + strlen(to), from);
    return to;
}

char *strncat(char *restrict to, const char *restrict from, size_t size) {
    char *end = to + strlen(to);
    size_t at = 0;
    for (; at < size && from[at]; at++) end[at] = from[at];
    end[at] = 0;
    return to;
}

char *strrchr(const char *text, int byte) {
    const char *last = NULL;
    for (;; text++) {
        if (*text == (char)byte) last = text;
        if (!*text) return (char *)last;
    }
}

char *strstr(const char *text, const char *part) {
    size_t length = strlen(part);
    for (;; text++) {
        if (strncmp(text, part, length) == 0) return (char *)text;
        if (!*text) return NULL;
    }
}

size_t strspn(const char *text, const char *bytes) {
    size_t length = 0;
    while (text[length] && strchr(bytes, text[length])) length++;
    return length;
}

size_t strcspn(const char *text, const char *bytes) {
    size_t length = 0;
    while (text[length] && !strchr(bytes, text[length])) length++;
    return length;
}
