#ifndef TACIT_STDIO_H
#define TACIT_STDIO_H
#include <stdarg.h>
#include <stddef.h>

typedef struct tacit_file FILE;
extern FILE *const stdin, *const stdout, *const stderr;

#define EOF (-1)
#define BUFSIZ 4096
enum { SEEK_SET, SEEK_CUR, SEEK_END };

FILE *fopen(const char *name, const char *mode);
int fclose(FILE *file);
int fflush(FILE *file);
size_t fread(void *to, size_t size, size_t count, FILE *file);
size_t fwrite(const void *from, size_t size, size_t count, FILE *file);
int fseek(FILE *file, long offset, int from);
long ftell(FILE *file);
void rewind(FILE *file);
int feof(FILE *file);
int ferror(FILE *file);
int fgetc(FILE *file);
int getchar(void);
int ungetc(int byte, FILE *file);
void perror(const char *text);
/* Public text only; a file of secret numbers is read by fread. */
int scanf(const char *format, ...) __attribute__((format(scanf, 1, 2)));
int fscanf(FILE *file, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int vfscanf(FILE *file, const char *format, va_list places);
int vsscanf(const char *text, const char *format, va_list places);
char *fgets(char *line, int size, FILE *file);
int fputc(int byte, FILE *file);
int putchar(int byte);
int fputs(const char *text, FILE *file);
int puts(const char *text);
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int sprintf(char *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *to, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int vprintf(const char *format, va_list values);
int vsprintf(char *to, const char *format, va_list values);
int vfprintf(FILE *file, const char *format, va_list values);
int vsnprintf(char *to, size_t size, const char *format, va_list values);

#define getc fgetc
#define putc fputc

#endif
