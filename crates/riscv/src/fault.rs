//! Why a program stops before its end. Each cause says its remedy, and nothing of any secret.

use crate::real::Range;
use thiserror::Error;

/// A cause. What is said of an address or of a number is public.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Fault {
    #[error("the file is no program: {0}")]
    NoProgram(String),
    #[error(
        "the program is linked at run time, and what it would be linked with is not here: compile it with -static"
    )]
    Dynamic,
    #[error(
        "the program wants {wanted} bytes of memory, and it may have {most}: declare and ask for less, or give it a \
         part of its data at a time"
    )]
    TooLarge { wanted: u64, most: u64 },
    #[error("{wanted} {what}, and {most} are the most: use fewer at a time")]
    TooMany {
        what: &'static str,
        wanted: u64,
        most: u64,
    },
    #[error("{}", no_instruction(*.0))]
    Unknown(u32),
    #[error(
        "there are no instructions at {0:#x}: a pointer to a function is none, or a return address was overwritten; \
         look at what was called last"
    )]
    NoCode(u64),
    #[error(
        "{} outside of the program's memory: check pointers that may be NULL, and that indices and lengths are those of \
         the arrays",
        bytes_at(*bytes, *address)
    )]
    Unmapped { address: u64, bytes: u64 },
    #[error(
        "{address:#x} is in memory that may only be read: write to a variable that is not const, and to a copy of a \
         text in quotes"
    )]
    ReadOnly { address: u64 },
    #[error(
        "{bytes} bytes at {address:#x} are not aligned, as atomic instructions want them: give the variable its \
         natural alignment, and have it in no packed struct"
    )]
    Misaligned { address: u64, bytes: u64 },
    #[error(
        "the stack is full: it has {0} bytes; bound the recursion, and have large arrays static or from malloc"
    )]
    StackFull(u64),
    #[error(
        "system call {0} is none that this machine has: a program reads and writes its files, prints, and asks for \
         memory; take out what asks for more"
    )]
    UnknownCall(u64),
    #[error(
        "control register {0:#x} is none that a program has here: it has those of floats, of vectors, and counters; \
         take out what asks for others"
    )]
    UnknownControl(u32),
    #[error(
        "{0} instructions were carried out, and more are not allowed: raise the limit (--limit), the same at all \
         parties, or look for a loop without an end"
    )]
    Limit(u64),
    #[error(
        "a breakpoint, as a failed assertion or undefined behaviour ends with: look at what this line takes for given"
    )]
    Breakpoint,
    #[error(
        "a branch depends on a secret and its sides do not meet again in the function: bound the loop by a public \
         number, or select one of two values"
    )]
    SecretBranch,
    #[error(
        "a loop ends by a secret: bound the loop by a public number, or select one of two values"
    )]
    SecretLoop,
    #[error(
        "branches on secrets are nested more than {0} deep: bound the recursion by a public number"
    )]
    Nested(usize),
    #[error("the system is asked if a secret says so: ask it before the branch, or after it")]
    CallOnSide,
    #[error(
        "a branch is to be opened if a secret says so: open the branch around it too, or none of both"
    )]
    OpeningOnSide,
    #[error(
        "{cause}; this is on a side of the branch at {branch:#x}, which depends on a secret: both sides are carried out, and what each does must be possible"
    )]
    OnSide { branch: u64, cause: Box<Fault> },
    #[error("a jump goes to a secret address: call functions by their names")]
    SecretJump,
    #[error(
        "memory is read or written at a secret address: mark the table that it is in as oblivious and count from its \
         beginning, or go over all places and select"
    )]
    SecretAddress,
    #[error(
        "memory is read or written at a secret address in an object of {0} places, and {1} are gone over at most: use a smaller table, or several"
    )]
    Places(u64, u64),
    #[error(
        "an argument of a system call is secret: pass what is public, such as the most that it can be, or open it by \
         tacit_reveal"
    )]
    SecretArgument,
    #[error(
        "vectors have no elements of such a kind: 8 to 64 bits, floats 32 or 64, said by vsetvli before, and after a branch on a secret anew"
    )]
    VectorKind,
    #[error(
        "a vector has registers behind the last one: use one whose number, with all that its group has, is below 32"
    )]
    VectorRegisters,
    #[error(
        "how many elements vectors have depends on a secret: bound the loop by a public number"
    )]
    SecretLength,
    #[error("an element of a vector is taken from a secret place: go over all of them, and select")]
    SecretElement,
    #[error(
        "{0} is no rounding mode: those of floats are 0 to 4; set the control register frm to one of these before"
    )]
    Rounding(u8),
    #[error(
        "the value for a control register is secret, and it says how everything after it is done: choose it by \
         what is public"
    )]
    SecretControl,
    #[error(
        "flags of floats are read that a secret decided: clear them after the branch on it, or do not read them"
    )]
    SecretFlags,
    #[error(
        "something is computed of the bits of a secret float, or a float of secret bits: use numbers, and convert them"
    )]
    SecretBits,
    #[error(
        "a public number that meets a secret float is none that has a fixed point: keep it below 2^30, and off 0 where it divides"
    )]
    NotFixed,
    #[error(
        "a secret float of a known range, of up to 2^{0} in magnitude, meets one of which nobody has said a range, and \
         such numbers are less than 2^30: say the range of that one too, by --range NAME=LEAST..MOST where it is given, \
         or by tacit_real_range"
    )]
    Wide(i32),
    #[error(
        "a secret float of a known range, of up to 2^{0} in magnitude, is divided by one that may be 0 as far as its range \
         says, and what is so divided is less than 2^30: say that the divisor is not 0, as in tacit_real_range(x, 1, 1000)"
    )]
    Divisor(i32),
    #[error(
        "a secret float of up to 2^{0} in magnitude is to become an integer, and there are none beyond 64 bits: divide \
         it before, or say by tacit_real_range that it is less"
    )]
    Beyond(i32),
    #[error(
        "tacit_real_range says that a number is from {0} to {1}, and it is not: say a wider range, of two numbers in \
         their order"
    )]
    NotBetween(String, String),
    #[error(
        "what is printed is secret: write it to a file that is an --output, or open it by tacit_reveal"
    )]
    SecretPrinted,
    #[error("the program ends with a secret status: write it to a file that is an --output")]
    SecretStatus,
    #[error("tacit_range says that a number is from {0} to {1}, and it is not: say a wider range")]
    NotInRange(i64, i64),
    #[error("the program gave up, as abort and failed assertions do: what it printed may say why")]
    Aborted,
    #[error("the program printed more than {0} bytes: write them to a file that is an --output")]
    Printed(usize),
    #[error(
        "it ended with status {status} and did not write the output {name}: have it open and write a file of this name, \
         or ask for no such output"
    )]
    NotWritten { name: String, status: u64 },
    #[error(
        "the output {name} has {size} bytes, no multiple of {bytes}: say its type, as in {name}=all:u8"
    )]
    Unwhole { name: String, size: u64, bytes: u64 },
    #[error("there is no function {0} in the program: do not have it inlined or stripped")]
    NoFunction(String),
    #[error(
        "the program has no main: name a function by --call{}",
        .0.as_ref().map(|names| format!("; it has {names}")).unwrap_or_default()
    )]
    NoMain(Option<String>),
    #[error("there is no object {0} in the program: make it global, and do not have it stripped")]
    NoObject(String),
}

/// Which it is, and what to do; zeros are what clang ends with where a program must not come.
fn no_instruction(word: u32) -> String {
    let shown = match (word & 3, word & 0xffff) {
        (_, 0) => {
            return "a trap, as clang ends undefined behaviour and what must not be come to: look at what this line \
                    takes for given"
                .to_owned();
        }
        (3, _) => format!("{word:#010x}"),
        (_, half) => format!("{half:#06x}"),
    };
    format!(
        "{shown} is no instruction of rv64gcv_zicsr_zicond_zba_zbb_zbs: compile for that with -march"
    )
}

/// As a message begins that is of them.
fn bytes_at(bytes: u64, address: u64) -> String {
    match bytes {
        1 => format!("1 byte at {address:#x} is"),
        _ => format!("{bytes} bytes at {address:#x} are"),
    }
}

impl Fault {
    /// Nothing that is known of a number lies in that range.
    #[must_use]
    pub fn not_between(said: Range) -> Self {
        let shown = |end: f64| format!("{end:?}");
        Self::NotBetween(shown(said.least), shown(said.most))
    }

    /// Whether it is a secret that the program stops at.
    #[must_use]
    pub fn is_of_secrets(&self) -> bool {
        match self {
            Self::OnSide { cause, .. } => cause.is_of_secrets(),
            Self::SecretBranch
            | Self::SecretLoop
            | Self::Nested(_)
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
            | Self::SecretStatus => true,
            _ => false,
        }
    }

    /// A part of a program's file cannot be read.
    #[must_use]
    pub fn cut(what: &str) -> Self {
        Self::NoProgram(format!(
            "{what} cannot be read: it was cut off or damaged; copy or link it anew"
        ))
    }

    /// The same, met on a side of a branch on a secret; the innermost such branch is named.
    #[must_use]
    pub fn on_side(self, branch: u64) -> Self {
        match self {
            Self::OnSide { .. } | Self::SecretBranch | Self::SecretLoop | Self::Limit(_) => self,
            cause => Self::OnSide {
                branch,
                cause: Box::new(cause),
            },
        }
    }
}

/// What a step, or a look into memory, gives.
pub type Result<T> = std::result::Result<T, Fault>;

#[cfg(test)]
mod tests {
    use super::Fault;
    use crate::real::Range;

    /// One of each cause; the place of a cause that stands in no list here is asked for by the compiler.
    fn place(fault: &Fault) -> usize {
        match fault {
            Fault::NoProgram(_) => 0,
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
            Fault::SecretLoop => 15,
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
            Fault::Unwhole { .. } => 39,
            Fault::NoFunction(_) => 40,
            Fault::NoObject(_) => 41,
            Fault::NoMain(_) => 42,
            Fault::Wide(_) => 43,
            Fault::Beyond(_) => 44,
            Fault::NotBetween(..) => 45,
            Fault::Divisor(_) => 46,
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
            Fault::SecretLoop,
            Fault::Nested(8),
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
            Fault::SecretStatus,
            Fault::NotInRange(8, 8),
            Fault::Aborted,
            Fault::Printed(8),
            Fault::NotWritten {
                name: "f".to_owned(),
                status: 0,
            },
            Fault::Unwhole {
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
            let said = fault.to_string();
            let remedy = said.split_once(": ").or_else(|| said.split_once("; "));
            let (_, remedy) = remedy.unwrap_or_else(|| panic!("no remedy: {said}"));
            assert!(remedy.contains(' '), "no remedy: {said}");
        }
        let mut places: Vec<usize> = all.iter().map(place).collect();
        // What a file says of itself, and what comes with another cause, say it elsewhere.
        places.extend([0, 19]);
        places.sort_unstable();
        assert_eq!(places, (0..47).collect::<Vec<_>>());
        let bytes = 1;
        let one = Fault::Unmapped { address, bytes }.to_string();
        assert!(one.starts_with("1 byte at 0x8 is outside"), "{one}");
        for (word, begins) in [
            (0x1234_0000, "a trap, as clang ends"),
            (0x1234_8000, "0x8000 is no instruction"),
            (u32::MAX, "0xffffffff is no instruction"),
        ] {
            let said = Fault::Unknown(word).to_string();
            assert!(said.starts_with(begins), "{said}");
        }
        let limit = Fault::Limit(8).to_string();
        assert!(limit.contains("--limit"), "{limit}");
    }
}
