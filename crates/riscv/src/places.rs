//! Where in a program something is: by address, by function, and by line where the file says it.

use crate::fault::Fault;
use crate::lines::{Line, shown};
use crate::program::Program;
use std::fmt;

/// A place in a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The instruction.
    pub address: u64,
    /// The function that it is in, where that is known.
    pub function: Option<String>,
    /// The line that it was compiled from, where that is known.
    pub line: Option<Line>,
}

impl fmt::Display for Place {
    /// As `0x10150 in sort (arrays.c:21)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        if let Some(function) = &self.function {
            write!(f, " in {function}")?;
        }
        match &self.line {
            Some(line) => write!(f, " ({line})"),
            None => Ok(()),
        }
    }
}

impl Program {
    /// Where an instruction is.
    #[must_use]
    pub fn place(&self, address: u64) -> Place {
        Place {
            address,
            function: self.function_at(address).map(|name| shown(name.as_bytes())),
            line: self.symbols.lines.at(address),
        }
    }

    /// Why a program stopped at an instruction, as its user is told.
    #[must_use]
    pub fn stopped(&self, pc: u64, fault: &Fault) -> String {
        let place = self.place(pc);
        match fault {
            Fault::OnSide { branch, cause } => format!(
                "the program stopped at {place}: {cause}; this is on a side of the branch at {}, which depends on a \
                 secret: both sides are carried out, and what each does must be possible",
                self.place(*branch)
            ),
            _ => format!("the program stopped at {place}: {fault}"),
        }
    }
}
