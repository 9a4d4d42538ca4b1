/* Formats of printf: numbers, characters and texts. */
#include "decimal.h"
#include "system.h"
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
    if (target->file) tacit_put(text, length, target->file);
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

/* What stands behind the digits of a float; its length. */
static int power(char *to, char kind, int exponent) {
    unsigned rest = (unsigned)(exponent < 0 ? -exponent : exponent);
    int length = rest < 100 ? 4 : 5;
    to[0] = kind < 'a' ? 'E' : 'e';
    to[1] = exponent < 0 ? '-' : '+';
    for (int at = length; at-- > 2; rest /= 10) to[at] = (char)('0' + rest % 10);
    return length;
}

/* A float to its width: from its first digit on or from before its point, the rest behind. */
static void placed(struct target *target, const struct form *form, char kind, const struct tacit_decimal *of,
                   int scientific, int behind) {
    const char *sign = of->negative ? "-" : form->plus ? "+" : form->space ? " " : "";
    int from = scientific || of->first < of->point ? of->first : of->point - 1;
    int end = scientific ? from + 1 : of->point, has_point = behind > 0 || form->prefix;
    char text[8];
    int last = scientific ? power(text, kind, of->point - 1 - from) : 0;
    int room = form->width - (int)strlen(sign) - (end - from) - has_point - behind - last;
    if (!form->left && !form->zeros) fill(target, ' ', room);
    put(target, sign, strlen(sign));
    if (!form->left && form->zeros) fill(target, '0', room);
    put(target, of->digits + from, (size_t)(end - from));
    if (has_point) put(target, ".", 1);
    int there = behind < of->end - end ? behind : of->end - end;
    put(target, of->digits + end, (size_t)there);
    fill(target, '0', behind - there);
    put(target, text, (size_t)last);
    if (form->left) fill(target, ' ', room);
}

/* What is 0 has its first digit before the point. */
static void rounded(struct tacit_decimal *of, int end) {
    tacit_round(of, end);
    if (of->first == of->end) of->first = of->point - 1;
}

static void floating(struct target *target, const struct form *form, char kind, double value) {
    struct tacit_decimal all;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    tacit_printed(bits);
    int is_none = tacit_decimal(&all, value), precision = form->precision < 0 ? 6 : form->precision;
    if (is_none) {
        struct form plain = *form;
        plain.zeros = 0;
        const char *sign = all.negative ? "-" : form->plus ? "+" : form->space ? " " : "";
        padded(target, &plain, sign, is_none == 1 ? kind < 'a' ? "INF" : "inf" : kind < 'a' ? "NAN" : "nan", 3, 0);
        return;
    }
    if (all.first == all.end) all.first = all.point - 1;
    int wanted = precision < all.end ? precision : all.end, scientific = (kind | 32) == 'e';
    if ((kind | 32) == 'g') {
        if (precision == 0) precision = wanted = 1;
        struct tacit_decimal tried = all;
        rounded(&tried, all.first + wanted);
        int exponent = tried.point - 1 - tried.first;
        scientific = exponent < -4 || exponent >= precision;
        int end = scientific ? tried.first + 1 : tried.point;
        precision -= scientific ? 1 : exponent + 1;
        /* Zeros at the end go. */
        if (!form->prefix) {
            if (precision > tried.end - end) precision = tried.end - end;
            while (precision > 0 && tried.digits[end + precision - 1] == '0') precision--;
        }
        placed(target, form, kind, &tried, scientific, precision);
        return;
    }
    rounded(&all, (scientific ? all.first + 1 : all.point) + wanted);
    placed(target, form, kind, &all, scientific, precision);
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
    if (form->longs > 0) return (int64_t)tacit_printed(va_arg(*values, uint64_t));
    int value = (int)tacit_printed((unsigned long)va_arg(*values, int));
    return form->longs == 0 ? value : form->longs == -1 ? (short)value : (signed char)value;
}

static uint64_t unsigned_value(const struct form *form, va_list *values) {
    if (form->longs > 0) return tacit_printed(va_arg(*values, uint64_t));
    unsigned value = (unsigned)tacit_printed(va_arg(*values, unsigned));
    return form->longs == 0 ? value : form->longs == -1 ? (unsigned short)value : (unsigned char)value;
}

/* An octal number begins with 0, where it would not do so yet. */
static void leading_zero(struct form *form, uint64_t value) {
    int digits = 0;
    for (; value; value /= 8) digits++;
    int is_filled = form->zeros && !form->left && form->precision < 0 && form->width > digits;
    if (!is_filled && form->precision <= digits) form->precision = digits + 1;
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
    case 'o':
        value = unsigned_value(form, values);
        if (form->prefix) leading_zero(form, value);
        number(target, form, value, "", 8, 0);
        break;
    case 'x':
    case 'X':
        value = unsigned_value(form, values);
        number(target, form, value, !form->prefix || !value ? "" : kind == 'x' ? "0x" : "0X", 16, kind == 'X');
        break;
    case 'p': number(target, form, (uint64_t)va_arg(*values, void *), "0x", 16, 0); break;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G': floating(target, form, kind, va_arg(*values, double)); break;
    case 's':
        text = va_arg(*values, const char *);
        if (!text) text = "(null)";
        if (form->precision) tacit_printed((unsigned char)*text);
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
    int length = formatted(&target, format, values);
    tacit_show(file);
    return length;
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

int vprintf(const char *format, va_list values) { return vfprintf(stdout, format, values); }

/* No size is given, and none is more than half of all addresses. */
int vsprintf(char *to, const char *format, va_list values) { return vsnprintf(to, SIZE_MAX / 2, format, values); }

int sprintf(char *to, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsprintf(to, format, values);
    va_end(values);
    return length;
}
