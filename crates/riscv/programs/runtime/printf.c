/* Formats of printf: whole numbers, characters and texts. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Where it goes: a file, or memory of some size. */
struct target {
    FILE *file;
    char *memory;
    size_t size, length;
};

/* What stands between % and the kind of a value. */
struct form {
    int left, zeros, plus, space, prefix, width, precision, longs;
};

static void put(struct target *target, const char *text, size_t length) {
    if (target->file) fwrite(text, 1, length, target->file);
    for (size_t at = 0; !target->file && at < length; at++)
        if (target->length + at + 1 < target->size) target->memory[target->length + at] = text[at];
    target->length += length;
}

static void fill(struct target *target, char byte, int count) {
    for (; count > 0; count--) put(target, &byte, 1);
}

/* A number's text with what comes before it, to its width. */
static void padded(struct target *target, const struct form *form, const char *before, const char *text,
                   int length, int zeros) {
    int room = form->width - (int)strlen(before) - length - zeros;
    if (form->zeros && !form->left && form->precision < 0 && room > 0) {
        zeros += room;
        room = 0;
    }
    if (!form->left) fill(target, ' ', room);
    put(target, before, strlen(before));
    fill(target, '0', zeros);
    put(target, text, (size_t)length);
    if (form->left) fill(target, ' ', room);
}

static void number(struct target *target, const struct form *form, uint64_t value, const char *before,
                   unsigned base, int capital) {
    char digits[24];
    int at = sizeof digits;
    for (; value; value /= base) {
        unsigned digit = (unsigned)(value % base);
        digits[--at] = (char)(digit < 10 ? '0' + digit : (capital ? 'A' : 'a') + digit - 10);
    }
    int length = (int)sizeof digits - at;
    int least = form->precision < 0 ? 1 : form->precision;
    padded(target, form, before, digits + at, length, least > length ? least - length : 0);
}

static const char *read_form(const char *format, struct form *form, va_list *values) {
    *form = (struct form){.precision = -1};
    for (;; format++) {
        if (*format == '-') form->left = 1;
        else if (*format == '0') form->zeros = 1;
        else if (*format == '+') form->plus = 1;
        else if (*format == ' ') form->space = 1;
        else if (*format == '#') form->prefix = 1;
        else break;
    }
    for (int *field = &form->width;; field = &form->precision) {
        if (*format == '*') {
            *field = va_arg(*values, int);
            format++;
        } else {
            for (; *format >= '0' && *format <= '9'; format++) *field = 10 * *field + *format - '0';
        }
        if (field == &form->precision || *format != '.') break;
        form->precision = 0;
        format++;
    }
    if (form->width < 0) {
        form->left = 1;
        form->width = -form->width;
    }
    for (;; format++) {
        if (*format == 'l' || *format == 'z' || *format == 'j' || *format == 't') form->longs++;
        else if (*format == 'h') form->longs--;
        else return format;
    }
}

static int64_t signed_value(const struct form *form, va_list *values) {
    if (form->longs > 0) return va_arg(*values, int64_t);
    int value = va_arg(*values, int);
    return form->longs == 0 ? value : form->longs == -1 ? (short)value : (signed char)value;
}

static uint64_t unsigned_value(const struct form *form, va_list *values) {
    if (form->longs > 0) return va_arg(*values, uint64_t);
    unsigned value = va_arg(*values, unsigned);
    return form->longs == 0 ? value : form->longs == -1 ? (unsigned short)value : (unsigned char)value;
}

static void one(struct target *target, char kind, struct form *form, va_list *values) {
    char byte = kind;
    uint64_t value;
    const char *text;
    int64_t with_sign;
    size_t length;
    switch (kind) {
    case 'd':
    case 'i':
        with_sign = signed_value(form, values);
        value = with_sign < 0 ? -(uint64_t)with_sign : (uint64_t)with_sign;
        number(target, form, value, with_sign < 0 ? "-" : form->plus ? "+" : form->space ? " " : "", 10, 0);
        break;
    case 'u': number(target, form, unsigned_value(form, values), "", 10, 0); break;
    case 'o': number(target, form, unsigned_value(form, values), form->prefix ? "0" : "", 8, 0); break;
    case 'x':
    case 'X':
        value = unsigned_value(form, values);
        number(target, form, value, !form->prefix || !value ? "" : kind == 'x' ? "0x" : "0X", 16, kind == 'X');
        break;
    case 'p': number(target, form, (uint64_t)va_arg(*values, void *), "0x", 16, 0); break;
    case 's':
        text = va_arg(*values, const char *);
        if (!text) text = "(null)";
        for (length = 0; (form->precision < 0 || length < (size_t)form->precision) && text[length];) length++;
        form->zeros = 0;
        padded(target, form, "", text, (int)length, 0);
        break;
    case 'c':
        byte = (char)va_arg(*values, int);
        form->zeros = 0;
        padded(target, form, "", &byte, 1, 0);
        break;
    default: put(target, &byte, 1);
    }
}

static int formatted(struct target *target, const char *format, va_list values) {
    va_list left;
    va_copy(left, values);
    while (*format) {
        const char *percent = strchr(format, '%');
        size_t plain = percent ? (size_t)(percent - format) : strlen(format);
        put(target, format, plain);
        format += plain;
        if (!*format) break;
        struct form form;
        format = read_form(format + 1, &form, &left);
        if (!*format) break;
        one(target, *format++, &form, &left);
    }
    va_end(left);
    return (int)target->length;
}

int vfprintf(FILE *file, const char *format, va_list values) {
    struct target target = {.file = file};
    return formatted(&target, format, values);
}

int vsnprintf(char *to, size_t size, const char *format, va_list values) {
    struct target target = {.memory = to, .size = size};
    int length = formatted(&target, format, values);
    if (size) to[target.length < size ? target.length : size - 1] = 0;
    return length;
}

int printf(const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vfprintf(stdout, format, values);
    va_end(values);
    return length;
}

int fprintf(FILE *file, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vfprintf(file, format, values);
    va_end(values);
    return length;
}

int snprintf(char *to, size_t size, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsnprintf(to, size, format, values);
    va_end(values);
    return length;
}
