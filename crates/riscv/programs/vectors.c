/* Every instruction of V that the machine has, on edges of integers and floats, for each length of elements, with more
 * and fewer registers, with masks and without: a digest of what it leaves. A processor or an emulator of RISC-V that
 * is known to be right says what they must be; conversions toward zero are apart, which qemu 7.2 cannot do. */
#include <stdint.h>

/* Eight bytes each: an instruction, a return, and the least and greatest length of elements that it is for. Operands:
 * v8, v16; v4 indices; result v24; integers t4 and t3; floats ft0 and ft1; memory t5, and t6 apart. */
#define ENTRY(TEXT, LEAST, MOST) TEXT "\n c.jr ra\n .byte " #LEAST ", " #MOST "\n"
#define BOTH(TEXT, LEAST, MOST) ENTRY(TEXT, LEAST, MOST) ENTRY(TEXT ", v0.t", LEAST, MOST)
#define VV(NAME, LEAST, MOST) BOTH(NAME " v24, v8, v16", LEAST, MOST)
#define VX(NAME, LEAST, MOST) BOTH(NAME " v24, v8, t4", LEAST, MOST)
#define VI(NAME, LEAST, MOST) BOTH(NAME " v24, v8, -7", LEAST, MOST)
#define VU(NAME, LEAST, MOST) BOTH(NAME " v24, v8, 3", LEAST, MOST)
#define VF(NAME) BOTH(NAME " v24, v8, ft0", 2, 3)
#define THREE(NAME) VV(NAME ".vv", 0, 3) VX(NAME ".vx", 0, 3) VI(NAME ".vi", 0, 3)
#define SHIFTS(NAME) VV(NAME ".vv", 0, 3) VX(NAME ".vx", 0, 3) VU(NAME ".vi", 0, 3)
#define TWO(NAME) VV(NAME ".vv", 0, 3) VX(NAME ".vx", 0, 3)
#define WIDE(NAME) VV(NAME "v", 0, 2) VX(NAME "x", 0, 2)
#define SUMS(NAME, MOST) BOTH(NAME ".vv v24, v16, v8", 0, MOST) BOTH(NAME ".vx v24, t4, v8", 0, MOST)
#define FLOATS(NAME) VV(NAME ".vv", 2, 3) VF(NAME ".vf")
#define FLOAT_SUMS(NAME) BOTH(NAME ".vv v24, v16, v8", 2, 3) BOTH(NAME ".vf v24, ft0, v8", 2, 3)
#define ONE(NAME, LEAST, MOST) BOTH(NAME " v24, v8", LEAST, MOST)
#define MASKS(NAME) ENTRY(NAME " v24, v8, v16", 0, 3)

/* Vectors in memory: of one length, whose elements are not shorter in registers. */
#define LENGTH(BITS, AT)                                                                                           \
    BOTH("vle" #BITS ".v v24, (t5)", AT, 3) BOTH("vse" #BITS ".v v8, (t5)", AT, 3)                                 \
    BOTH("vlse" #BITS ".v v24, (t5), t6", AT, 3) BOTH("vsse" #BITS ".v v8, (t5), t6", AT, 3)                       \
    BOTH("vluxei" #BITS ".v v24, (t5), v4", AT, 3) BOTH("vsuxei" #BITS ".v v8, (t5), v4", AT, 3)                   \
    ENTRY("vl1re" #BITS ".v v24, (t5)", 0, 3) ENTRY("vl2re" #BITS ".v v24, (t5)", 0, 3)                            \
    ENTRY("vl4re" #BITS ".v v24, (t5)", 0, 3) ENTRY("vl8re" #BITS ".v v24, (t5)", 0, 3)                            \
    FIELDS(2, BITS, AT) FIELDS(3, BITS, AT) FIELDS(4, BITS, AT)
#define FIELDS(N, BITS, AT)                                                                                        \
    BOTH("vlseg" #N "e" #BITS ".v v24, (t5)", AT, AT) BOTH("vsseg" #N "e" #BITS ".v v8, (t5)", AT, AT)

__asm__(".text\n .balign 8\n .globl entries\n entries:\n" 
    THREE("vadd") TWO("vsub") VX("vrsub.vx", 0, 3) VI("vrsub.vi", 0, 3) TWO("vminu") TWO("vmin") TWO("vmaxu")
    TWO("vmax") THREE("vand") THREE("vor") THREE("vxor") VV("vrgather.vv", 0, 3) VX("vrgather.vx", 0, 3)
    VU("vrgather.vi", 0, 3) VX("vslideup.vx", 0, 3) VU("vslideup.vi", 0, 3) VX("vslidedown.vx", 0, 3)
    VU("vslidedown.vi", 0, 3) ENTRY("vmerge.vvm v24, v8, v16, v0", 0, 3) ENTRY("vmerge.vxm v24, v8, t4, v0", 0, 3)
    ENTRY("vmerge.vim v24, v8, -5, v0", 0, 3) ENTRY("vfmerge.vfm v24, v8, ft0, v0", 2, 3)
    ENTRY("vmv.v.v v24, v8", 0, 3) ENTRY("vmv.v.x v24, t4", 0, 3) ENTRY("vmv.v.i v24, -2", 0, 3)
    ENTRY("vfmv.v.f v24, ft0", 2, 3) ENTRY("vmv1r.v v24, v8", 0, 3) ENTRY("vmv2r.v v24, v8", 0, 3)
    ENTRY("vmv4r.v v24, v8", 0, 3) ENTRY("vmv8r.v v24, v8", 0, 3)
    THREE("vmseq") THREE("vmsne") TWO("vmsltu") TWO("vmslt") THREE("vmsleu") THREE("vmsle")
    VX("vmsgtu.vx", 0, 3) VI("vmsgtu.vi", 0, 3) VX("vmsgt.vx", 0, 3) VI("vmsgt.vi", 0, 3)
    SHIFTS("vsll") SHIFTS("vsrl") SHIFTS("vsra") WIDE("vnsrl.w") WIDE("vnsra.w") VU("vnsrl.wi", 0, 2) VU("vnsra.wi", 0, 2)
    VV("vwredsumu.vs", 0, 2) VV("vwredsum.vs", 0, 2) VV("vredsum.vs", 0, 3) VV("vredand.vs", 0, 3) VV("vredor.vs", 0, 3)
    VV("vredxor.vs", 0, 3) VV("vredminu.vs", 0, 3) VV("vredmin.vs", 0, 3) VV("vredmaxu.vs", 0, 3) VV("vredmax.vs", 0, 3)
    VX("vslide1up.vx", 0, 3) VX("vslide1down.vx", 0, 3) VF("vfslide1up.vf") VF("vfslide1down.vf")
    ENTRY("vmv.x.s t3, v8", 0, 3) ENTRY("vmv.s.x v24, t4", 0, 3) ENTRY("vfmv.f.s ft1, v8", 2, 3) ENTRY("vfmv.s.f v24, ft0", 2, 3)
    BOTH("vcpop.m t3, v8", 0, 3) BOTH("vfirst.m t3, v8", 0, 3) ENTRY("vid.v v24", 0, 3) ENTRY("vid.v v24, v0.t", 0, 3)
    ONE("vzext.vf8", 3, 3) ONE("vsext.vf8", 3, 3) ONE("vzext.vf4", 2, 3) ONE("vsext.vf4", 2, 3) ONE("vzext.vf2", 1, 3) ONE("vsext.vf2", 1, 3)
    MASKS("vmandn.mm") MASKS("vmand.mm") MASKS("vmor.mm") MASKS("vmxor.mm") MASKS("vmorn.mm") MASKS("vmnand.mm") MASKS("vmnor.mm") MASKS("vmxnor.mm")
    TWO("vdivu") TWO("vdiv") TWO("vremu") TWO("vrem") TWO("vmulhu") TWO("vmul") TWO("vmulhsu") TWO("vmulh")
    SUMS("vmadd", 3) SUMS("vnmsub", 3) SUMS("vmacc", 3) SUMS("vnmsac", 3)
    WIDE("vwaddu.v") WIDE("vwadd.v") WIDE("vwsubu.v") WIDE("vwsub.v") WIDE("vwaddu.w") WIDE("vwadd.w") WIDE("vwsubu.w") WIDE("vwsub.w")
    WIDE("vwmulu.v") WIDE("vwmulsu.v") WIDE("vwmul.v") SUMS("vwmaccu", 2) SUMS("vwmacc", 2) SUMS("vwmaccsu", 2) BOTH("vwmaccus.vx v24, t4, v8", 0, 2)
    FLOATS("vfadd") FLOATS("vfsub") FLOATS("vfmin") FLOATS("vfmax") FLOATS("vfsgnj") FLOATS("vfsgnjn") FLOATS("vfsgnjx") FLOATS("vfdiv") FLOATS("vfmul")
    VF("vfrdiv.vf") VF("vfrsub.vf") VV("vfredusum.vs", 2, 3) VV("vfredosum.vs", 2, 3) VV("vfredmin.vs", 2, 3) VV("vfredmax.vs", 2, 3)
    FLOATS("vmfeq") FLOATS("vmfle") FLOATS("vmflt") FLOATS("vmfne") VF("vmfgt.vf") VF("vmfge.vf") ONE("vfsqrt.v", 2, 3)
    ONE("vfcvt.xu.f.v", 2, 3) ONE("vfcvt.x.f.v", 2, 3) ONE("vfcvt.f.xu.v", 2, 3) ONE("vfcvt.f.x.v", 2, 3)
    ONE("vfwcvt.xu.f.v", 2, 2) ONE("vfwcvt.x.f.v", 2, 2) ONE("vfwcvt.f.xu.v", 1, 2) ONE("vfwcvt.f.x.v", 1, 2) ONE("vfwcvt.f.f.v", 2, 2)
    ONE("vfncvt.xu.f.w", 1, 2) ONE("vfncvt.x.f.w", 1, 2) ONE("vfncvt.f.xu.w", 2, 2) ONE("vfncvt.f.x.w", 2, 2) ONE("vfncvt.f.f.w", 2, 2)
    FLOAT_SUMS("vfmadd") FLOAT_SUMS("vfnmadd") FLOAT_SUMS("vfmsub") FLOAT_SUMS("vfnmsub") FLOAT_SUMS("vfmacc") FLOAT_SUMS("vfnmacc") FLOAT_SUMS("vfmsac") FLOAT_SUMS("vfnmsac")
    LENGTH(8, 0) LENGTH(16, 1) LENGTH(32, 2) LENGTH(64, 3)
    ENTRY("vlm.v v24, (t5)", 0, 3) ENTRY("vsm.v v8, (t5)", 0, 3) ENTRY("vs1r.v v8, (t5)", 0, 3) ENTRY("vs2r.v v8, (t5)", 0, 3)
    ENTRY("vs4r.v v8, (t5)", 0, 3) ENTRY("vs8r.v v8, (t5)", 0, 3)
    ".globl entries_end\n entries_end:\n");

extern const uint8_t entries[], entries_end[];

/* Edges of integers and of floats of both lengths. */
static const uint64_t edges[] = {
    0x3ff0000000000000, 0xbff8000040490fdb, 0x7ff0000000000000, 0x7ff8000000000000, 0x0000000000000001, 0x7fefffffffffffff,
    0x3f800000bf800000, 0x7f800000ff800000, 0x00000001ffffffff, 0x8000000080000000, 0x7fffffff80808080, 0xffffffffffffffff,
    0x41dfffffffc00000, 0x4f0000004effffff, 0x0001020304050607, 0x43e0000000000000, 0xc004000000000000, 0x3fe000003f000000,
    0x0010000000000000, 0x00800000007fffff, 0x7f8000017fc00000, 0x4008000040400000, 0xc1e0000000200000, 0x123456789abcdef0};

#define COUNT (sizeof(edges) / sizeof(edges[0]))
static uint64_t first[32], second[32], before[32], after[32], place[128];
static uint64_t indices[8];

static inline uint64_t taken(uint64_t digest, uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15;
    return digest ^ digest >> 32;
}

/* One entry on one choice of operands. */
static uint64_t carried_out(uint64_t digest, const uint8_t *entry, uint64_t kind, uint64_t count, uint64_t turn) {
    uint64_t flags;
    for (uint64_t at = 0; at < 16; at++) {
        first[at] = edges[(at + 5 * turn) % COUNT];
        second[at] = edges[(3 * at + 7 * turn + 1) % COUNT];
        before[at] = edges[(5 * at + 2 * turn + 3) % COUNT];
    }
    for (uint64_t at = 0; at < 128; at++) place[at] = edges[(7 * at + turn) % COUNT];
    uint64_t mask = 0x9d6b35a7c3e1f00d >> turn;
    register uint64_t in __asm__("t4") = edges[(turn + 2) % COUNT] >> (turn & 1 ? 0 : 60);
    register uint64_t out __asm__("t3") = 0;
    register void *memory __asm__("t5") = place + 32;
    register int64_t apart __asm__("t6") = turn & 1 ? -24 : 16;
    __asm__ volatile("vl8re8.v v8, (%[first])\n vl8re8.v v16, (%[second])\n vl8re8.v v24, (%[before])\n"
                     "vl4re8.v v4, (%[indices])\n vsetvli zero, zero, e64, m1, ta, ma\n vmv.s.x v0, %[mask]\n"
                     "fmv.d.x ft0, %[real]\n fmv.d.x ft1, zero\n fsflags zero\n vsetvl zero, %[count], %[kind]\n"
                     "jalr %[entry]\n frflags %[flags]\n vs8r.v v24, (%[after])\n fmv.x.d a7, ft1\n xor t3, t3, a7\n"
                     : "+r"(out), [flags] "=&r"(flags)
                     : [first] "r"(first), [second] "r"(second), [before] "r"(before), [indices] "r"(indices),
                       [mask] "r"(mask), [real] "r"(edges[(turn + 4) % COUNT]), [count] "r"(count), [kind] "r"(kind),
                       [entry] "r"(entry), [after] "r"(after), "r"(in), "r"(memory), "r"(apart)
                     : "ra", "a7", "ft0", "ft1", "memory");
    digest = taken(taken(digest, out), flags);
    for (uint64_t at = 0; at < 16; at++) digest = taken(digest, after[at]);
    for (uint64_t at = 0; at < 128; at++) digest = taken(digest, place[at]);
    return digest;
}

/* The digest of one entry: in one register and in two; all elements and three. */
uint64_t vectors(uint64_t number) {
    const uint8_t *entry = entries + 8 * number;
    uint64_t digest = 0xcbf29ce484222325;
    for (uint64_t at = 0; at < 8; at++) indices[at] = 8 * ((5 * at + 3) % 8);
    for (uint64_t length = entry[6]; length <= entry[7]; length++)
        for (uint64_t registers = 0; registers < 2; registers++)
            for (uint64_t turn = 0; turn < 6; turn++)
                digest = carried_out(digest, entry, length << 3 | registers, turn & 1 ? 3 : 64, turn);
    return digest;
}

uint64_t count(void) { return (entries_end - entries) / 8; }

static void written(uint64_t digest) {
    char line[17];
    for (uint64_t digit = 0; digit < 16; digit++) line[digit] = "0123456789abcdef"[digest >> (60 - 4 * digit) & 15];
    line[16] = '\n';
    register uint64_t file __asm__("a0") = 1;
    register const char *text __asm__("a1") = line;
    register uint64_t size __asm__("a2") = 17;
    register uint64_t number __asm__("a7") = 64;
    __asm__ volatile("ecall" : "+r"(file) : "r"(text), "r"(size), "r"(number) : "memory");
}

void _start(void) {
    for (uint64_t number = 0; number < count(); number++) written(vectors(number));
    register uint64_t status __asm__("a0") = 0;
    register uint64_t number __asm__("a7") = 93;
    __asm__ volatile("ecall" : : "r"(number), "r"(status));
    __builtin_unreachable();
}
