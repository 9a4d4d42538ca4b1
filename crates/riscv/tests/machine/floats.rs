//! Public floats behave as F and D define.

use riscv::Signs::{Signed, Unsigned};
use riscv::elf::program::Segment;
use riscv::floats::ieee;
use riscv::isa::operation::FloatFunction::{
    self, Add, Divide, FromInteger, Multiply, MultiplyAdd, SquareRoot, Subtract, ToInteger,
};
use riscv::isa::operation::{Floating, Negations, Precision};
use riscv::{Fault, Machine, Plain, Program};
use testkit::Random;

/// Every instruction, on edge cases in all rounding modes, has the results and flags of another
/// processor: `floats.txt` is the output of `floats.elf` there (qemu-riscv64 7.2).
#[test]
fn results_and_flags_are_those_of_another_processor() {
    let program =
        Program::parse(include_bytes!("../../programs/floats.elf")).expect("the file is a program");
    let mut functions = 0;
    for line in include_str!("../../programs/floats.txt").lines() {
        let (name, digest) = line
            .split_once(' ')
            .expect("the line has a name and a digest");
        let mut machine = Machine::new(Plain, &program, 1 << 26).expect("the program fits");
        let function = program.function(name).expect("the function exists");
        let got = machine.call(function, &[]).expect("the function returns");
        assert_eq!(format!("{got:016x}"), digest, "{name}");
        functions += 1;
    }
    assert_eq!(functions, 56);
}

/// Returns the NaN-boxed register content of a float.
fn single(bits: u32) -> u64 {
    0xffff_ffff << 32 | u64::from(bits)
}

fn of(precision: Precision, function: FloatFunction, operands: [u64; 3]) -> u64 {
    let floating = Floating {
        precision,
        function,
    };
    let nearest = ieee::rounding(0).expect("0 is a rounding mode");
    ieee::compute(floating, nearest, operands).0
}

/// Compares with the processor that runs this test, which rounds to nearest. Its NaNs differ.
#[test]
fn results_are_those_of_this_processor() {
    let words = Random::new(5).words(6000);
    // Operands of similar size, so that sums cancel, or of any size.
    let near = |word: u64| word & !(0x7fc << 52) | 0x3fc << 52;
    for three in words.chunks(3) {
        for three in [
            [three[0], three[1], three[2]],
            [0, 1, 2].map(|at| near(three[at])),
        ] {
            let [a, b, c] = three.map(f64::from_bits);
            let double = |function| of(Precision::Double, function, three);
            let sum = MultiplyAdd(Negations {
                product: false,
                addend: false,
            });
            let all = [
                (Add, a + b),
                (Subtract, a - b),
                (Multiply, a * b),
                (Divide, a / b),
                (sum, a.mul_add(b, c)),
            ];
            for (function, expected) in all.into_iter().chain([(SquareRoot, a.sqrt())]) {
                let (got, expected) = (double(function), expected.to_bits());
                let same = got == expected || f64::from_bits(expected).is_nan();
                assert!(same, "{function:?} of {a:e}, {b:e}, {c:e}: {got:#x}");
            }
            assert_eq!(
                double(ToInteger(64, Signed)),
                if a.is_nan() {
                    i64::MAX
                } else {
                    a.round_ties_even() as i64
                } as u64
            );
            let narrow = of(
                Precision::Single,
                FloatFunction::FromFloat(Precision::Double),
                three,
            );
            assert!(narrow == single((a as f32).to_bits()) || a.is_nan());
            assert_eq!(
                double(FromInteger(64, Unsigned)),
                (three[0] as f64).to_bits()
            );
            let halves = three.map(|word| single(word as u32));
            let [a, b, _] = halves.map(|half| f32::from_bits(half as u32));
            let product = of(Precision::Single, Multiply, halves);
            assert!(product == single((a * b).to_bits()) || (a * b).is_nan());
            let root = of(Precision::Single, SquareRoot, halves);
            assert!(root == single(a.sqrt().to_bits()) || a.sqrt().is_nan());
        }
    }
}

/// Builds a machine that executes these words and then returns.
fn machine(words: &[u32]) -> Machine<Plain> {
    let file = include_bytes!("../../programs/floats.elf");
    let mut program = Program::parse(file).expect("the file is a program");
    let text = words.iter().chain(&[0x8067]);
    let bytes: Vec<u8> = text.flat_map(|word| word.to_le_bytes()).collect();
    program.entry = 1 << 16;
    program.segments = vec![Segment {
        start: program.entry,
        size: bytes.len() as u64,
        bytes,
        writable: false,
        executable: true,
    }];
    Machine::new(Plain, &program, 100).expect("the program fits")
}

#[test]
fn the_control_register_of_floats_has_mode_and_flags() {
    // fcvt.s.lu fa0, a0; frcsr a0; csrwi fcsr, 1; csrrsi a1, frm, 3; frcsr a2
    let text = [
        0xd035_7553,
        0x0030_2573,
        0x0030_d073,
        0x0021_e5f3,
        0x0030_2673,
    ];
    let mut machine = machine(&text);
    assert_eq!(machine.call(1 << 16, &[u64::MAX]), Ok(1));
    assert_eq!(*machine.float_register(10), single(0x5f80_0000));
    assert_eq!(*machine.register(11), 0);
    assert_eq!(*machine.register(12), 3 << 5 | 1);
}

#[test]
fn a_rounding_mode_that_is_none_is_refused() {
    // fsrmi 5; fadd.d fa0, fa0, fa0, dyn; and fadd.d fa0, fa0, fa0 with mode 6
    let dynamic = machine(&[0x0022_d073, 0x02a5_7553]).call(1 << 16, &[]);
    assert_eq!(dynamic, Err(Fault::Rounding(5)));
    assert_eq!(
        machine(&[0x02a5_6553]).call(1 << 16, &[]),
        Err(Fault::Rounding(6))
    );
    assert_eq!(machine(&[0x02a5_0553]).call(1 << 16, &[7]), Ok(7));
}
