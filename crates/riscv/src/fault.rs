//! The reasons why a program stops before its end. Each message names the remedy and reveals no
//! secret.

use crate::numbers::fixed_point::Range;
use thiserror::Error;

/// The reason why a program stops. The addresses and numbers that it names are public.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs, reason = "the messages document it")]
pub enum Fault {
    #[error("not a program for this machine: {0}")]
    InvalidProgram(String),
    #[error(
        "the program needs shared libraries, which this machine does not have: compile it with \
         -static"
    )]
    Dynamic,
    #[error(
        "the program needs {wanted} bytes of memory and may use {most}: declare or allocate less, \
         or pass its data in parts"
    )]
    TooLarge { wanted: u64, most: u64 },
    #[error("{wanted} {what}, and at most {most} are allowed: use fewer at a time")]
    TooMany {
        what: &'static str,
        wanted: u64,
        most: u64,
    },
    #[error("{}", no_instruction(*.0))]
    Unknown(u32),
    #[error(
        "no code at {0:#x}: an invalid function pointer or a corrupted return address; check the \
         last call"
    )]
    NoCode(u64),
    #[error(
        "{} outside the program's memory: check pointers for NULL, and indices and lengths for the \
         bounds of their arrays",
        bytes_at(*bytes, *address)
    )]
    Unmapped { address: u64, bytes: u64 },
    #[error(
        "{address:#x} is read-only memory: write to a variable that is not const, or to a copy of \
         a string literal"
    )]
    ReadOnly { address: u64 },
    #[error(
        "{bytes} bytes at {address:#x} are misaligned for an atomic instruction: give the variable \
         its natural alignment, outside packed structs"
    )]
    Misaligned { address: u64, bytes: u64 },
    #[error(
        "the stack of {0} bytes is full: bound the recursion, and make large arrays static or \
         allocate them by malloc"
    )]
    StackFull(u64),
    #[error(
        "system call {0} is not supported: a program may read and write its files, print, and \
         allocate memory; remove the code that makes other calls"
    )]
    UnknownCall(u64),
    #[error(
        "control register {0:#x} is not supported: a program may use the registers of floats and \
         vectors, and the counters; remove the code that uses others"
    )]
    UnknownControl(u32),
    #[error(
        "the limit of {0} instructions is reached: raise it with --limit, equally at all parties, \
         or look for an endless loop"
    )]
    Limit(u64),
    #[error(
        "a breakpoint, which compilers emit for failed assertions and undefined behaviour: check \
         what this line assumes"
    )]
    Breakpoint,
    #[error(
        "a branch depends on a secret and its sides do not meet again in the function: bound the \
         loop by a public number, or compute both values and select one"
    )]
    SecretBranch,
    #[error(
        "a loop's exit depends on a secret, and no public number has ended it after {0} trips: \
         bound the loop by a public number, or state its most trips by TACIT_BOUND(n) in it"
    )]
    SecretLoop(usize),
    #[error(
        "branches on secrets are nested more than {0} deep: bound the recursion, or the loop \
         around them, by a public number, or state a loop's most trips by TACIT_BOUND(n) in it"
    )]
    Nested(usize),
    #[error(
        "the sides of branches on secrets part again before they meet, {0} times: let tacit riscv \
         cc compile the program, or give gcc -fno-thread-jumps and -fno-split-paths, and clang \
         -mllvm -tail-dup-placement=false and -mllvm -disable-lftr"
    )]
    Parting(u64),
    #[error(
        "both sides of a branch on a secret are beyond the trips that TACIT_BOUND states: state as \
         many as the loop may make"
    )]
    BeyondBound,
    #[error("a system call under a branch on a secret: make it before the branch, or after it")]
    CallOnSide,
    #[error(
        "a branch that is to be opened lies inside a branch on a secret: open the outer one too \
         (--open-branch), or neither"
    )]
    OpeningOnSide,
    #[error(
        "{cause}; this is on one side of the branch at {branch:#x}, which depends on a secret: \
         both sides are executed, so both must be valid"
    )]
    OnSide { branch: u64, cause: Box<Fault> },
    #[error("a jump to a secret address: call functions by name")]
    SecretJump,
    #[error(
        "memory is accessed at a secret address: mark the table as oblivious and index it from its \
         beginning, or read all its elements and select one, or state a small range of the index \
         by tacit_range or --range"
    )]
    SecretAddress,
    #[error(
        "memory is accessed at a secret address in an object of {0} elements, and at most {1} can \
         be scanned: use a smaller table, or several"
    )]
    Places(u64, u64),
    #[error(
        "an argument of a system call is secret: pass a public value, such as its maximum, or open \
         it by tacit_reveal"
    )]
    SecretArgument,
    #[error(
        "this vector instruction does not support the element width that is set: set 8 to 64 bits, \
         or 32 or 64 bits for floats, by vsetvli before it, and again after a branch on a secret"
    )]
    VectorKind,
    #[error("a group of vector registers ends after v31: use a lower register number")]
    VectorRegisters,
    #[error("the vector length depends on a secret: bound the loop by a public number")]
    SecretLength,
    #[error("a vector element is selected by a secret index: read all elements and select one")]
    SecretElement,
    #[error("{0} is not a rounding mode: set the control register frm to one of 0 to 4 first")]
    Rounding(u8),
    #[error(
        "the value written to a control register is secret, but it decides how later instructions \
         behave: compute it from public values"
    )]
    SecretControl,
    #[error(
        "floating-point flags that depend on a secret are read: clear them after the branch on it, \
         or do not read them"
    )]
    SecretFlags,
    #[error(
        "the bits of a secret float are used as an integer, or secret bits as a float: convert \
         the number instead of reinterpreting its bits"
    )]
    SecretBits,
    #[error(
        "a public number that is combined with a secret float does not fit fixed point: keep its \
         magnitude below 2^30, and away from 0 if it is a divisor"
    )]
    NotFixed,
    #[error(
        "a secret float of a known range, of up to 2^{0} in magnitude, is combined with one of \
         unknown range, and numbers of unknown range must be below 2^30: state a range for the \
         other too, by --range NAME=LEAST..MOST for an input, or by tacit_real_range"
    )]
    Wide(i32),
    #[error(
        "a secret float of a known range, of up to 2^{0} in magnitude, is divided by a number that \
         may be 0 within its range, which requires the dividend to be below 2^30: state that the \
         divisor is not 0, as in tacit_real_range(x, 1, 1000)"
    )]
    Divisor(i32),
    #[error(
        "a secret float of up to 2^{0} in magnitude is converted to an integer, and integers have \
         at most 64 bits: divide it first, or state a smaller range by tacit_real_range"
    )]
    Beyond(i32),
    #[error(
        "tacit_real_range says that a number is from {0} to {1}, and it is not: give a wider \
         range, the lower bound first"
    )]
    NotBetween(String, String),
    #[error(
        "what is printed is secret: write it to a file that is an --output, or open it by \
         tacit_reveal"
    )]
    SecretPrinted,
    #[error(
        "a text that is read as numbers or words is secret, and so are its lengths: share the \
         numbers themselves, as in --secret in=0:i32:numbers.txt, and read them by fread"
    )]
    SecretText,
    #[error("the exit status is secret: write it to a file that is an --output")]
    SecretStatus,
    #[error("tacit_range says that a number is from {0} to {1}, and it is not: give a wider range")]
    NotInRange(i64, i64),
    #[error("the program aborted, by abort or a failed assertion: its output may say why")]
    Aborted,
    #[error("the program printed more than {0} bytes: write them to a file that is an --output")]
    Printed(usize),
    #[error(
        "it ended with status {status} and did not write the output {name}: write a file of this \
         name, or remove the --output"
    )]
    NotWritten { name: String, status: u64 },
    #[error(
        "the output {name} has {size} bytes, not a multiple of {bytes}: give its type, as in \
         {name}=all:u8"
    )]
    NotMultiple { name: String, size: u64, bytes: u64 },
    #[error("there is no function {0} in the program: keep it from being inlined or stripped")]
    NoFunction(String),
    #[error(
        "the program has no main: name a function by --call{}",
        .0.as_ref().map(|names| format!("; it has {names}")).unwrap_or_default()
    )]
    NoMain(Option<String>),
    #[error(
        "there is no object {0} in the program: make it global, and keep it from being stripped"
    )]
    NoObject(String),
}

/// Returns the message for an unknown instruction. Clang marks unreachable code with zeros.
fn no_instruction(word: u32) -> String {
    let shown = match (word & 3, word & 0xffff) {
        (_, 0) => {
            return "a trap, which clang writes for undefined behaviour and unreachable code: \
                    check what this line assumes"
                .to_owned();
        }
        (3, _) => format!("{word:#010x}"),
        (_, half) => format!("{half:#06x}"),
    };
    format!(
        "{shown} is not an instruction of rv64gcv_zicsr_zicond_zba_zbb_zbs: compile for it \
         with -march"
    )
}

/// Returns the beginning of a message about an access to these bytes.
fn bytes_at(bytes: u64, address: u64) -> String {
    match bytes {
        1 => format!("1 byte at {address:#x} is"),
        _ => format!("{bytes} bytes at {address:#x} are"),
    }
}

impl Fault {
    /// Builds the fault for a number that is known to lie outside its stated range.
    #[must_use]
    pub fn not_between(stated: Range) -> Self {
        let shown = |end: f64| format!("{end:?}");
        Self::NotBetween(shown(stated.least), shown(stated.most))
    }

    /// Returns whether the program stops because of a secret.
    #[must_use]
    pub fn is_of_secrets(&self) -> bool {
        match self {
            Self::OnSide { cause, .. } => cause.is_of_secrets(),
            Self::SecretBranch
            | Self::SecretLoop(_)
            | Self::Nested(_)
            | Self::Parting(_)
            | Self::BeyondBound
            | Self::CallOnSide
            | Self::OpeningOnSide
            | Self::SecretJump
            | Self::SecretAddress
            | Self::Places(..)
            | Self::SecretArgument
            | Self::SecretLength
            | Self::SecretElement
            | Self::SecretControl
            | Self::SecretFlags
            | Self::SecretBits
            | Self::NotFixed
            | Self::Wide(_)
            | Self::Divisor(_)
            | Self::Beyond(_)
            | Self::SecretPrinted
            | Self::SecretText
            | Self::SecretStatus => true,
            _ => false,
        }
    }

    /// Builds the fault for a part of the program's file that cannot be read.
    #[must_use]
    pub fn cut(what: &str) -> Self {
        Self::InvalidProgram(format!(
            "{what} cannot be read: the file is cut off or damaged; copy or link it again"
        ))
    }

    /// Wraps this fault as one on a side of a branch on a secret. Names the innermost such branch.
    #[must_use]
    pub fn on_side(self, branch: u64) -> Self {
        match self {
            Self::OnSide { .. }
            | Self::SecretBranch
            | Self::SecretLoop(_)
            | Self::Parting(_)
            | Self::Limit(_) => self,
            cause => Self::OnSide {
                branch,
                cause: Box::new(cause),
            },
        }
    }
}

/// The result of a step or of an access to memory.
pub type Result<T> = std::result::Result<T, Fault>;

#[cfg(test)]
mod tests {
    use super::Fault;
    use crate::numbers::fixed_point::Range;

    /// Returns the index of a cause. The compiler rejects a cause that is missing here.
    fn place(fault: &Fault) -> usize {
        match fault {
            Fault::InvalidProgram(_) => 0,
            Fault::Dynamic => 1,
            Fault::TooLarge { .. } => 2,
            Fault::TooMany { .. } => 3,
            Fault::Unknown(_) => 4,
            Fault::NoCode(_) => 5,
            Fault::Unmapped { .. } => 6,
            Fault::ReadOnly { .. } => 7,
            Fault::Misaligned { .. } => 8,
            Fault::StackFull(_) => 9,
            Fault::UnknownCall(_) => 10,
            Fault::UnknownControl(_) => 11,
            Fault::Limit(_) => 12,
            Fault::Breakpoint => 13,
            Fault::SecretBranch => 14,
            Fault::SecretLoop(_) => 15,
            Fault::Nested(_) => 16,
            Fault::CallOnSide => 17,
            Fault::OpeningOnSide => 18,
            Fault::OnSide { .. } => 19,
            Fault::SecretJump => 20,
            Fault::SecretAddress => 21,
            Fault::Places(..) => 22,
            Fault::SecretArgument => 23,
            Fault::VectorKind => 24,
            Fault::VectorRegisters => 25,
            Fault::SecretLength => 26,
            Fault::SecretElement => 27,
            Fault::Rounding(_) => 28,
            Fault::SecretControl => 29,
            Fault::SecretFlags => 30,
            Fault::SecretBits => 31,
            Fault::NotFixed => 32,
            Fault::SecretPrinted => 33,
            Fault::SecretStatus => 34,
            Fault::NotInRange(..) => 35,
            Fault::Aborted => 36,
            Fault::Printed(_) => 37,
            Fault::NotWritten { .. } => 38,
            Fault::NotMultiple { .. } => 39,
            Fault::NoFunction(_) => 40,
            Fault::NoObject(_) => 41,
            Fault::NoMain(_) => 42,
            Fault::Wide(_) => 43,
            Fault::Beyond(_) => 44,
            Fault::NotBetween(..) => 45,
            Fault::Divisor(_) => 46,
            Fault::SecretText => 47,
            Fault::Parting(_) => 48,
            Fault::BeyondBound => 49,
        }
    }

    #[test]
    fn each_cause_says_its_remedy() {
        let (address, bytes) = (8, 8);
        let (wanted, most) = (2, 1);
        let all = [
            Fault::Dynamic,
            Fault::TooLarge { wanted, most },
            Fault::TooMany {
                what: "labels",
                wanted,
                most,
            },
            Fault::Unknown(0),
            Fault::NoCode(0),
            Fault::Unmapped { address, bytes },
            Fault::ReadOnly { address },
            Fault::Misaligned { address, bytes },
            Fault::StackFull(8),
            Fault::UnknownCall(8),
            Fault::UnknownControl(8),
            Fault::Limit(8),
            Fault::Breakpoint,
            Fault::SecretBranch,
            Fault::SecretLoop(8),
            Fault::Nested(8),
            Fault::Parting(8),
            Fault::BeyondBound,
            Fault::CallOnSide,
            Fault::OpeningOnSide,
            Fault::SecretJump,
            Fault::SecretAddress,
            Fault::Places(8, 8),
            Fault::SecretArgument,
            Fault::VectorKind,
            Fault::VectorRegisters,
            Fault::SecretLength,
            Fault::SecretElement,
            Fault::Rounding(8),
            Fault::SecretControl,
            Fault::SecretFlags,
            Fault::SecretBits,
            Fault::NotFixed,
            Fault::SecretPrinted,
            Fault::SecretText,
            Fault::SecretStatus,
            Fault::NotInRange(8, 8),
            Fault::Aborted,
            Fault::Printed(8),
            Fault::NotWritten {
                name: "f".to_owned(),
                status: 0,
            },
            Fault::NotMultiple {
                name: "f".to_owned(),
                size: 9,
                bytes: 8,
            },
            Fault::NoFunction("f".to_owned()),
            Fault::NoObject("f".to_owned()),
            Fault::NoMain(None),
            Fault::Wide(50),
            Fault::Divisor(50),
            Fault::Beyond(70),
            Fault::not_between(Range::one(0.5)),
        ];
        for fault in &all {
            let message = fault.to_string();
            let remedy = message
                .split_once(": ")
                .or_else(|| message.split_once("; "));
            let (_, remedy) = remedy.unwrap_or_else(|| panic!("no remedy: {message}"));
            assert!(remedy.contains(' '), "no remedy: {message}");
        }
        let mut places: Vec<usize> = all.iter().map(place).collect();
        // `InvalidProgram` and `OnSide` carry a message that states its own remedy.
        places.extend([0, 19]);
        places.sort_unstable();
        assert_eq!(places, (0..50).collect::<Vec<_>>());
        let bytes = 1;
        let one = Fault::Unmapped { address, bytes }.to_string();
        assert!(one.starts_with("1 byte at 0x8 is outside"), "{one}");
        for (word, begins) in [
            (0x1234_0000, "a trap, which clang writes"),
            (0x1234_8000, "0x8000 is not an instruction"),
            (u32::MAX, "0xffffffff is not an instruction"),
        ] {
            let message = Fault::Unknown(word).to_string();
            assert!(message.starts_with(begins), "{message}");
        }
        let limit = Fault::Limit(8).to_string();
        assert!(limit.contains("--limit"), "{limit}");
    }
}
