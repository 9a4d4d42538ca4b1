#!/bin/sh
# Programs of others on the machine of crates/riscv, with public words. Nothing of them is part of this repository:
# they are compiled and run in a folder that is thrown away. What passes, and why the rest does not, stands in
# docs/riscv.md.
#
#   tools/riscv/official.sh torture SOURCES [-O0|-O2]   gcc.c-torture/execute of gcc's sources (Debian: gcc-12-source)
#   tools/riscv/official.sh csmith COUNT                random programs (csmith, qemu-user), against qemu-riscv64
#   tools/riscv/official.sh isa RISCV_TESTS             isa/rv64u? of a checkout of riscv-software-src/riscv-tests
#
# CC (riscv64-linux-gnu-gcc), CSMITH, CSMITH_INCLUDE and QEMU say which programs are used. LOG is a file with a line
# for each program.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-riscv64-linux-gnu-gcc}
log=${LOG:-$work/log}
runtime=$root/crates/riscv/programs/runtime
: > "$log"

cargo build --quiet --release --manifest-path "$root/Cargo.toml" -p tacit-riscv --example plain
plain=$root/target/release/examples/plain

# Functions of the runtime are built once for each set of options.
prepare() {
    own=$("$cc" -print-file-name=include)
    base="-march=rv64gc_zba_zbb_zbs -mabi=lp64d -static -nostdlib -nostdinc -w"
    # The compiler's own, without one of a library behind it.
    echo '#include "stdint-gcc.h"' > "$work/stdint.h"
    base="$base -isystem $work -isystem $runtime -isystem $own -Wl,--gc-sections -Wl,--build-id=none -Wl,-z,noexecstack"
    for source in "$runtime"/*.c; do
        "$cc" -O2 $base -ffreestanding -ffunction-sections -c "$source" -o "$work/$(basename "$source" .c).o"
    done
}

count() {
    grep -c "^$1 " "$log" || true
}

report() {
    "$cc" --version | head -n 1
    echo "$1: $(count passed) passed, $(count failed) failed, $(count stopped) stopped, $(count uncompiled) not compiled"
}

torture() {
    prepare
    level=${2:--O2}
    for source in "$1"/*.c "$1"/ieee/*.c; do
        name=$(basename "$source" .c)
        options=$(sed -n 's/.*{ *dg-\(additional-\)\{0,1\}options *{\{0,1\} *"\([^"]*\)" *}.*/\2/p' "$source" | tr '\n' ' ')
        if "$cc" "$level" $base $options "$source" "$work"/*.o -lgcc -o "$work/$name.elf" 2> "$work/said"; then
            timeout 120 "$plain" "$work/$name.elf" >> "$log" || echo "stopped $name by the end of its time" >> "$log"
            rm "$work/$name.elf"
        else
            why=$(grep -m 1 -o "undefined reference to .*\|error: .*\|fatal error: .*" "$work/said" || echo "no word of why")
            echo "uncompiled $name $why" >> "$log"
        fi
    done
    report "gcc.c-torture, $level"
}

random() {
    prepare
    csmith=${CSMITH:-csmith}
    include=${CSMITH_INCLUDE:-/usr/include/csmith}
    qemu=${QEMU:-qemu-riscv64}
    # Its header wants one for floats, which these programs have not.
    : > "$work/math.h"
    for seed in $(seq 1 "$1"); do
        # It leaves a file where it runs.
        (cd "$work" && "$csmith" --seed "$seed" --no-argc > random.c)
        "$cc" -O2 $base -isystem "$include" "$work/random.c" "$work"/*.o -lgcc -o "$work/random.elf" 2> "$work/said" || {
            echo "uncompiled $seed $(grep -m 1 -o "undefined reference to .*\|error: .*" "$work/said")" >> "$log"
            continue
        }
        expected=$(timeout 20 "$qemu" "$work/random.elf") || {
            echo "endless $seed" >> "$log"
            continue
        }
        found=$(timeout 300 "$plain" "$work/random.elf" || true)
        case $found in
        passed*"\"$expected\"") echo "passed $seed $expected" >> "$log" ;;
        stopped*) echo "stopped $seed $found" >> "$log" ;;
        *) echo "failed $seed $expected $found" >> "$log" ;;
        esac
    done
    "$qemu" --version | head -n 1
    echo "$(count endless) run for longer than 20 seconds"
    report "csmith"
}

isa() {
    # The tests end by a system call in the place of a write to tohost.
    cat > "$work/riscv_test.h" <<'HEADER'
#define RVTEST_RV64U
#define RVTEST_RV64UF
#define RVTEST_CODE_BEGIN .text; .globl _start; _start:
#define RVTEST_CODE_END
#define RVTEST_PASS li a0, 0; li a7, 93; ecall
#define RVTEST_FAIL mv a0, gp; li a7, 93; ecall
#define RVTEST_DATA_BEGIN .align 4;
#define RVTEST_DATA_END
#define EXTRA_DATA
#define TESTNUM gp
/* Assemblers before binutils 2.41 have no Zicond. */
.macro czero.eqz to, of, by; .insn r 0x33, 5, 7, \to, \of, \by; .endm
.macro czero.nez to, of, by; .insn r 0x33, 7, 7, \to, \of, \by; .endm
HEADER
    for source in "$1"/isa/rv64ui/*.S "$1"/isa/rv64um/*.S "$1"/isa/rv64ua/*.S "$1"/isa/rv64uf/*.S \
        "$1"/isa/rv64ud/*.S "$1"/isa/rv64uc/*.S "$1"/isa/rv64uzba/*.S "$1"/isa/rv64uzbb/*.S "$1"/isa/rv64uzbs/*.S \
        "$1"/isa/rv64uzicond/*.S; do
        name=$(basename "$(dirname "$source")")-$(basename "$source" .S)
        if "$cc" -march=rv64gc_zba_zbb_zbs -mabi=lp64d -static -nostdlib -nostartfiles -I "$work" -I "$1/isa/macros/scalar" \
            -Wl,--no-relax "$source" -o "$work/$name.elf" 2> "$work/said"; then
            timeout 120 "$plain" "$work/$name.elf" >> "$log" || echo "stopped $name by the end of its time" >> "$log"
        else
            echo "uncompiled $name $(grep -m 1 -o "rror: .*" "$work/said" || true)" >> "$log"
        fi
    done
    report "riscv-tests"
}

case ${1:-} in
torture) torture "$2" "${3:--O2}" ;;
csmith) random "$2" ;;
isa) isa "$2" ;;
*) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
