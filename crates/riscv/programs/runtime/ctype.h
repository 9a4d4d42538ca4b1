#ifndef TACIT_CTYPE_H
#define TACIT_CTYPE_H

/* As in C's own locale: bytes from 128 on are of no kind. */
int isalnum(int byte);
int isalpha(int byte);
int isblank(int byte);
int iscntrl(int byte);
int isdigit(int byte);
int isgraph(int byte);
int islower(int byte);
int isprint(int byte);
int ispunct(int byte);
int isspace(int byte);
int isupper(int byte);
int isxdigit(int byte);
int tolower(int byte);
int toupper(int byte);

#endif
