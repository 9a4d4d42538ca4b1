/* Kinds of bytes. */
#include <ctype.h>

/* A program that has a function of such a name itself keeps it. */
#pragma weak isalnum
#pragma weak isalpha
#pragma weak isblank
#pragma weak iscntrl
#pragma weak isdigit
#pragma weak isgraph
#pragma weak islower
#pragma weak isprint
#pragma weak ispunct
#pragma weak isspace
#pragma weak isupper
#pragma weak isxdigit
#pragma weak tolower
#pragma weak toupper

int isdigit(int byte) { return byte >= '0' && byte <= '9'; }

int isupper(int byte) { return byte >= 'A' && byte <= 'Z'; }

int islower(int byte) { return byte >= 'a' && byte <= 'z'; }

int isalpha(int byte) { return isupper(byte) || islower(byte); }

int isalnum(int byte) { return isalpha(byte) || isdigit(byte); }

int isxdigit(int byte) { return isdigit(byte) || ((byte | 32) >= 'a' && (byte | 32) <= 'f'); }

int isblank(int byte) { return byte == ' ' || byte == '\t'; }

int isspace(int byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

int isprint(int byte) { return byte >= ' ' && byte <= '~'; }

int isgraph(int byte) { return byte > ' ' && byte <= '~'; }

int iscntrl(int byte) { return (byte >= 0 && byte < ' ') || byte == 127; }

int ispunct(int byte) { return isgraph(byte) && !isalnum(byte); }

int tolower(int byte) { return isupper(byte) ? byte + 32 : byte; }

int toupper(int byte) { return islower(byte) ? byte - 32 : byte; }
