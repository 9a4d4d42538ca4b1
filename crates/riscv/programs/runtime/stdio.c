/* Files and what is printed. A large read goes where it is wanted at once, so that what is secret is not moved. */
#include "system.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct tacit_file {
    int descriptor;
    /* What the buffer has: read and not taken yet, or written and not sent yet. */
    size_t from, to;
    char writes, at_end, failed, is_open;
    unsigned char *buffer;
};

enum { FILES = 16, HERE = -100, CREATES = 0100, TRUNCATES = 01000, APPENDS = 02000 };

static unsigned char buffers[FILES][BUFSIZ] __attribute__((aligned(16)));

static FILE files[FILES] = {
    {.descriptor = 0, .is_open = 1, .buffer = buffers[0]},
    {.descriptor = 1, .is_open = 1, .buffer = buffers[1], .writes = 1},
    {.descriptor = 2, .is_open = 1, .buffer = buffers[2], .writes = 1},
};

FILE *const stdin = &files[0], *const stdout = &files[1], *const stderr = &files[2];

FILE *fopen(const char *name, const char *mode) {
    int writes = mode[0] != 'r';
    int both = strchr(mode, '+') != NULL;
    long flags = (both ? 2 : writes) | (writes ? CREATES : 0) | (mode[0] == 'w' ? TRUNCATES : 0) |
                 (mode[0] == 'a' ? APPENDS : 0);
    for (FILE *file = files; file < files + FILES; file++) {
        if (file->is_open) continue;
        long descriptor = tacit_call(TACIT_OPEN_AT, HERE, (long)name, flags);
        if (descriptor < 0) {
            errno = ENOENT;
            return NULL;
        }
        file->descriptor = (int)descriptor;
        file->buffer = buffers[file - files];
        file->from = file->to = 0;
        file->at_end = file->failed = 0;
        file->writes = (char)writes;
        file->is_open = 1;
        return file;
    }
    return NULL;
}

int fflush(FILE *file) {
    if (!file) {
        tacit_close_all();
        return 0;
    }
    while (file->writes && file->from < file->to) {
        long sent = tacit_call(TACIT_WRITE, file->descriptor, (long)(file->buffer + file->from),
                               (long)(file->to - file->from));
        if (sent <= 0) {
            file->failed = 1;
            return EOF;
        }
        file->from += (size_t)sent;
    }
    if (file->writes) file->from = file->to = 0;
    return 0;
}

void tacit_close_all(void) {
    for (FILE *file = files; file < files + FILES; file++)
        if (file->is_open) fflush(file);
}

int fclose(FILE *file) {
    int wrong = fflush(file);
    tacit_call(TACIT_CLOSE, file->descriptor, 0, 0);
    file->is_open = 0;
    return wrong;
}

/* Goes over to reading or to writing. */
static void turn(FILE *file, int writes) {
    if (file->writes == writes) return;
    if (file->writes)
        fflush(file);
    else if (file->from < file->to)
        tacit_call(TACIT_SEEK, file->descriptor, (long)file->from - (long)file->to, SEEK_CUR);
    file->from = file->to = 0;
    file->writes = (char)writes;
}

size_t fread(void *to, size_t size, size_t count, FILE *file) {
    size_t wanted = size * count, done = 0;
    turn(file, 0);
    while (done < wanted) {
        size_t there = file->to - file->from, left = wanted - done;
        if (there > 0) {
            size_t taken = there < left ? there : left;
            memcpy((char *)to + done, file->buffer + file->from, taken);
            file->from += taken;
            done += taken;
            continue;
        }
        int direct = left >= BUFSIZ;
        char *place = direct ? (char *)to + done : (char *)file->buffer;
        long got = tacit_call(TACIT_READ, file->descriptor, (long)place, direct ? (long)left : BUFSIZ);
        if (got <= 0) {
            file->at_end = got == 0;
            file->failed |= got < 0;
            break;
        }
        if (direct) {
            done += (size_t)got;
        } else {
            file->from = 0;
            file->to = (size_t)got;
        }
    }
    return size ? done / size : 0;
}

unsigned long tacit_put(const void *from, unsigned long wanted, FILE *file) {
    size_t done = 0;
    turn(file, 1);
    while (done < wanted) {
        size_t room = BUFSIZ - file->to, left = wanted - done;
        size_t taken = room < left ? room : left;
        memcpy(file->buffer + file->to, (const char *)from + done, taken);
        file->to += taken;
        done += taken;
        if (file->to == BUFSIZ && fflush(file)) break;
    }
    return done;
}

void tacit_show(FILE *file) {
    if (file == stdout || file == stderr) fflush(file);
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *file) {
    size_t done = tacit_put(from, size * count, file);
    tacit_show(file);
    return size ? done / size : 0;
}

int fseek(FILE *file, long offset, int from) {
    if (file->writes)
        fflush(file);
    else if (from == SEEK_CUR)
        offset -= (long)(file->to - file->from);
    file->from = file->to = 0;
    file->at_end = 0;
    return tacit_call(TACIT_SEEK, file->descriptor, offset, from) < 0 ? -1 : 0;
}

long ftell(FILE *file) {
    long place = tacit_call(TACIT_SEEK, file->descriptor, 0, SEEK_CUR);
    long buffered = (long)(file->to - file->from);
    return place < 0 ? -1 : file->writes ? place + buffered : place - buffered;
}

void rewind(FILE *file) { fseek(file, 0, SEEK_SET); }

int feof(FILE *file) { return file->at_end; }

int ferror(FILE *file) { return file->failed; }

int fgetc(FILE *file) {
    unsigned char byte;
    return fread(&byte, 1, 1, file) ? byte : EOF;
}

int ungetc(int byte, FILE *file) {
    if (byte == EOF || file->writes || file->from == 0) return EOF;
    file->buffer[--file->from] = (unsigned char)byte;
    file->at_end = 0;
    return byte;
}

int getchar(void) { return fgetc(stdin); }

char *fgets(char *line, int size, FILE *file) {
    int at = 0;
    while (at + 1 < size) {
        int byte = fgetc(file);
        if (byte == EOF) break;
        line[at++] = (char)byte;
        if (byte == '\n') break;
    }
    if (at == 0) return NULL;
    line[at] = 0;
    return line;
}

int fputc(int byte, FILE *file) {
    unsigned char written = (unsigned char)byte;
    if (!tacit_put(&written, 1, file)) return EOF;
    return written;
}

int putchar(int byte) { return fputc(byte, stdout); }

int fputs(const char *text, FILE *file) {
    size_t length = strlen(text);
    return fwrite(text, 1, length, file) == length ? 0 : EOF;
}

int puts(const char *text) {
    size_t length = strlen(text);
    int failed = tacit_put(text, length, stdout) < length || putchar('\n') == EOF;
    tacit_show(stdout);
    return failed ? EOF : 0;
}
