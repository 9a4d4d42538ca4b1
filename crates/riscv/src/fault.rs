//! Why a program stops before its end. Each cause says its remedy, and nothing of any secret.

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
    #[error("the program wants {wanted} bytes of memory, and it may have {most}")]
    TooLarge { wanted: u64, most: u64 },
    #[error(
        "{0:#010x} is no instruction of rv64gcv_zicsr_zicond_zba_zbb_zbs: compile for that with -march"
    )]
    Unknown(u32),
    #[error("there are no instructions at {0:#x}")]
    NoCode(u64),
    #[error("{bytes} bytes at {address:#x} are outside of the program's memory")]
    Unmapped { address: u64, bytes: u64 },
    #[error("{address:#x} is in memory that may only be read")]
    ReadOnly { address: u64 },
    #[error("{bytes} bytes at {address:#x} are not aligned, as atomic instructions want them")]
    Misaligned { address: u64, bytes: u64 },
    #[error("the stack is full: it has {0} bytes")]
    StackFull(u64),
    #[error("system call {0} is none that this machine has")]
    UnknownCall(u64),
    #[error("control register {0:#x} is none that a program has here")]
    UnknownControl(u32),
    #[error("{0} instructions were carried out, and more are not allowed")]
    Limit(u64),
    #[error("a breakpoint, as a failed assertion ends with")]
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
        "memory is read or written at a secret address in an object of {0} places, and {1} are gone over at most"
    )]
    Places(u64, u64),
    #[error("an argument of a system call is secret")]
    SecretArgument,
    #[error(
        "vectors have no elements of such a kind: 8 to 64 bits, floats 32 or 64, said by vsetvli before, and after a branch on a secret anew"
    )]
    VectorKind,
    #[error("a vector has registers behind the last one")]
    VectorRegisters,
    #[error(
        "how many elements vectors have depends on a secret: bound the loop by a public number"
    )]
    SecretLength,
    #[error("an element of a vector is taken from a secret place: go over all of them, and select")]
    SecretElement,
    #[error("{0} is no rounding mode: those of floats are 0 to 4")]
    Rounding(u8),
    #[error(
        "the value for a control register is secret, and it says how everything after it is done"
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
        "what is printed is secret: write it to a file that is an --output, or open it by tacit_reveal"
    )]
    SecretPrinted,
    #[error("the program ends with a secret status: write it to a file that is an --output")]
    SecretStatus,
    #[error("tacit_range says that a number is from {0} to {1}, and it is not")]
    NotInRange(i64, i64),
    #[error("the program gave up, as abort and failed assertions do")]
    Aborted,
    #[error("the program printed more than {0} bytes")]
    Printed(usize),
    #[error("there is no function {0} in the program: do not have it inlined or stripped")]
    NoFunction(String),
    #[error("there is no object {0} in the program: make it global, and do not have it stripped")]
    NoObject(String),
}

impl Fault {
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
