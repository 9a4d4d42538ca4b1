#ifndef TACIT_ERRNO_H
#define TACIT_ERRNO_H

/* Why the last function failed, as numbered on Linux. */
extern int errno;

enum { TACIT_ENOENT = 2, TACIT_ENOMEM = 12, TACIT_EINVAL = 22, TACIT_EDOM = 33, TACIT_ERANGE = 34 };

#define ENOENT TACIT_ENOENT
#define ENOMEM TACIT_ENOMEM
#define EINVAL TACIT_EINVAL
#define EDOM TACIT_EDOM
#define ERANGE TACIT_ERANGE

#endif
