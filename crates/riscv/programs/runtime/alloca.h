#ifndef TACIT_ALLOCA_H
#define TACIT_ALLOCA_H

#define alloca __builtin_alloca

#endif
