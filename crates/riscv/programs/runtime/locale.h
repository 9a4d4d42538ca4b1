#ifndef TACIT_LOCALE_H
#define TACIT_LOCALE_H

#define LC_CTYPE 0
#define LC_NUMERIC 1
#define LC_TIME 2
#define LC_COLLATE 3
#define LC_MONETARY 4
#define LC_MESSAGES 5
#define LC_ALL 6

/* There is one locale, "C". */
static inline char *setlocale(int category, const char *name) {
    int is_known = !name || !*name || (*name == 'C' && !name[1]);
    return is_known && category >= LC_CTYPE && category <= LC_ALL ? (char *)"C" : (char *)0;
}

#endif
