#ifndef TACIT_MATH_H
#define TACIT_MATH_H

/* What is an instruction, or a few: no logarithms, no angles. */
#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define M_E 2.71828182845904523536
#define M_PI 3.14159265358979323846
#define M_SQRT2 1.41421356237309504880

#define isnan(value) __builtin_isnan(value)
#define isinf(value) __builtin_isinf(value)
#define isfinite(value) __builtin_isfinite(value)
#define signbit(value) __builtin_signbit(value)

double fabs(double value);
double sqrt(double value);
double floor(double value);
double ceil(double value);
double trunc(double value);
double round(double value);
double rint(double value);
double fmin(double left, double right);
double fmax(double left, double right);
double copysign(double left, double right);

float fabsf(float value);
float sqrtf(float value);
float floorf(float value);
float ceilf(float value);
float truncf(float value);
float roundf(float value);
float rintf(float value);
float fminf(float left, float right);
float fmaxf(float left, float right);
float copysignf(float left, float right);

#endif
