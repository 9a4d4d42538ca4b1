#ifndef TACIT_MATH_H
#define TACIT_MATH_H

/* Functions of floats, also of secret ones. There is none of Bessel's, no gamma function, and no erf. */
#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

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

double exp(double power);
double exp2(double power);
double expm1(double power);
double log(double value);
double log2(double value);
double log10(double value);
double log1p(double value);
double pow(double base, double exponent);
double cbrt(double value);
double hypot(double x, double y);
double fmod(double dividend, double divisor);
double fdim(double x, double y);
double fma(double left, double right, double more);
double ldexp(double value, int power);
double scalbn(double value, int power);
double frexp(double value, int *power);
double modf(double value, double *whole);
double nearbyint(double value);
long lrint(double value);
long lround(double value);
long long llround(double value);

double sinh(double value);
double cosh(double value);
double tanh(double value);
double asinh(double value);
double acosh(double value);
double atanh(double value);
double sin(double angle);
double cos(double angle);
double tan(double angle);
double asin(double value);
double acos(double value);
double atan(double value);
double atan2(double y, double x);

float expf(float power);
float exp2f(float power);
float expm1f(float power);
float logf(float value);
float log2f(float value);
float log10f(float value);
float log1pf(float value);
float powf(float base, float exponent);
float cbrtf(float value);
float hypotf(float x, float y);
float fmodf(float dividend, float divisor);
float fdimf(float x, float y);
float sinhf(float value);
float coshf(float value);
float tanhf(float value);
float sinf(float angle);
float cosf(float angle);
float tanf(float angle);
float asinf(float value);
float acosf(float value);
float atanf(float value);
float atan2f(float y, float x);

#endif
