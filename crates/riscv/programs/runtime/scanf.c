/* Numbers and words of public text: scanf and its like. What is secret has no public digits, so that a secret byte
 * stops the program here. */
#include "system.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where bytes come from: a text or a file. One byte is looked at before it is taken. */
struct source {
    const char *text;
    FILE *file;
    int next, has_next;
    long taken;
};

static int look(struct source *from) {
    if (!from->has_next) {
        from->next = from->file ? fgetc(from->file) : *from->text ? (unsigned char)*from->text++ : EOF;
        tacit_call(TACIT_TEXT, from->next, 0, 0);
        from->has_next = 1;
    }
    return from->next;
}

static void take(struct source *from) {
    from->has_next = 0;
    from->taken++;
}

static int is_space(int byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

static void skip(struct source *from) {
    while (is_space(look(from))) take(from);
}

enum { LONGEST = 64 };

static int is_of_number(int byte, int is_real, int base) {
    if (byte >= '0' && byte <= '9') return 1;
    if (byte == '-' || byte == '+') return 1;
    if (is_real) return byte == '.' || (byte | 32) == 'e';
    return base != 10 && ((byte | 32) == 'x' || ((byte | 32) >= 'a' && (byte | 32) <= 'f'));
}

/* The bytes that a number may consist of, at most `width`. */
static int digits(struct source *from, char *to, int width, int is_real, int base) {
    int count = 0;
    if (width > LONGEST - 1) width = LONGEST - 1;
    while (count < width && is_of_number(look(from), is_real, base)) {
        int byte = look(from);
        /* A sign begins a number, or an exponent. */
        if (count && (byte == '-' || byte == '+') && (to[count - 1] | 32) != 'e') break;
        to[count++] = (char)byte;
        take(from);
    }
    to[count] = 0;
    return count;
}

static void put_whole(void *to, long value, int length) {
    switch (length) {
    case 'H': *(signed char *)to = (signed char)value; break;
    case 'h': *(short *)to = (short)value; break;
    case 'l': *(long *)to = value; break;
    default: *(int *)to = (int)value;
    }
}

/* Reads what one conversion asks for; whether it was there. */
static int converted(struct source *from, char kind, int length, int width, void *to) {
    char text[LONGEST];
    int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'i' ? 0 : 10;
    char *end;
    switch (kind) {
    case 'd': case 'i': case 'u': case 'x': case 'o':
        if (!digits(from, text, width, 0, base)) return 0;
        long value = kind == 'd' || kind == 'i' ? strtol(text, &end, base) : (long)strtoul(text, &end, base);
        if (end == text) return 0;
        if (to) put_whole(to, value, length);
        return 1;
    case 'f': case 'e': case 'g':
        if (!digits(from, text, width, 1, 10)) return 0;
        double real = strtod(text, &end);
        if (end == text) return 0;
        if (to && length == 'l') *(double *)to = real;
        else if (to) *(float *)to = (float)real;
        return 1;
    case 's': {
        int count = 0;
        for (; count < width && look(from) != EOF && !is_space(look(from)); take(from), count++)
            if (to) ((char *)to)[count] = (char)look(from);
        if (to) ((char *)to)[count] = 0;
        return count > 0;
    }
    default: return 0;
    }
}

static int scan(struct source *from, const char *format, va_list places) {
    int done = 0;
    for (; *format; format++) {
        if (is_space(*format)) {
            skip(from);
            continue;
        }
        if (*format != '%' || format[1] == '%') {
            if (*format == '%') format++, skip(from);
            if (look(from) != (unsigned char)*format) break;
            take(from);
            continue;
        }
        int is_kept = *++format != '*', width = 0, length = 0;
        if (!is_kept) format++;
        while (*format >= '0' && *format <= '9') width = width * 10 + *format++ - '0';
        for (; *format == 'l' || *format == 'h' || *format == 'z' || *format == 'j'; format++)
            length = *format == 'h' ? length == 'h' ? 'H' : 'h' : 'l';
        void *to = is_kept ? va_arg(places, void *) : NULL;
        if (*format == 'n') {
            put_whole(to, from->taken, length);
            continue;
        }
        if (*format == 'c') {
            int count = width ? width : 1, at = 0;
            for (; at < count && look(from) != EOF; at++, take(from))
                if (to) ((char *)to)[at] = (char)look(from);
            if (at < count) return done || at ? done : EOF;
            done += is_kept;
            continue;
        }
        skip(from);
        if (look(from) == EOF) return done ? done : EOF;
        if (!converted(from, *format, length, width ? width : INT32_MAX, to)) break;
        done += is_kept;
    }
    return done;
}

int vsscanf(const char *text, const char *format, va_list places) {
    struct source from = {.text = text};
    return scan(&from, format, places);
}

int vfscanf(FILE *file, const char *format, va_list places) {
    struct source from = {.file = file};
    int done = scan(&from, format, places);
    if (from.has_next && from.next != EOF) ungetc(from.next, file);
    return done;
}

int sscanf(const char *text, const char *format, ...) {
    va_list places;
    va_start(places, format);
    int done = vsscanf(text, format, places);
    va_end(places);
    return done;
}

int fscanf(FILE *file, const char *format, ...) {
    va_list places;
    va_start(places, format);
    int done = vfscanf(file, format, places);
    va_end(places);
    return done;
}

int scanf(const char *format, ...) {
    va_list places;
    va_start(places, format);
    int done = vfscanf(stdin, format, places);
    va_end(places);
    return done;
}
