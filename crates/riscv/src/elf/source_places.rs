//! Places in a program: the address, the function, and the source line if the file has line data.

use crate::elf::dwarf_lines::{Line, shown};
use crate::elf::program::Program;
use crate::fault::Fault;
use std::fmt;

/// A place in a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The address of the instruction.
    pub address: u64,
    /// The function that contains the instruction, if it is known.
    pub function: Option<String>,
    /// The source line of the instruction, if it is known.
    pub line: Option<Line>,
}

impl fmt::Display for Place {
    /// Formats a place as `0x10150 in sort (arrays.c:21)`.
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

/// The maximum number of functions that the message about a missing `main` lists.
const NAMED: usize = 20;

impl Program {
    /// Returns the fault for a missing `main`, with the functions that exist; `None` if there is a
    /// `main`.
    #[must_use]
    pub fn without_main(&self) -> Option<Fault> {
        if self.function("main").is_ok() {
            return None;
        }
        let functions: Vec<&str> = self.symbols.functions().collect();
        if functions.is_empty() {
            return (self.entry == 0).then_some(Fault::NoMain(None));
        }
        let few = functions
            .iter()
            .take(NAMED)
            .map(|name| shown(name.as_bytes()));
        let mut names = few.collect::<Vec<_>>().join(", ");
        if functions.len() > NAMED {
            names += &format!(" and {} more", functions.len() - NAMED);
        }
        Some(Fault::NoMain(Some(names)))
    }

    /// Returns the place of an instruction.
    #[must_use]
    pub fn place(&self, address: u64) -> Place {
        Place {
            address,
            function: self.function_at(address).map(|name| shown(name.as_bytes())),
            line: self.symbols.lines.at(address),
        }
    }

    /// Formats the callers of an instruction, up to the function `main`, with the line of each
    /// call: `, called from fwrite (stdio.c:92), from main (mine.c:5)`.
    #[must_use]
    pub fn called_from(&self, pc: u64, callers: &[u64]) -> String {
        let mut named = Vec::new();
        let is_main = self.function_at(pc) == Some("main");
        for returns in callers.iter().filter(|_| !is_main) {
            let place = self.place(returns.wrapping_sub(1));
            let Some(function) = place.function else {
                break;
            };
            let line = place.line.map(|line| format!(" ({line})"));
            let one = format!("from {function}{}", line.unwrap_or_default());
            if named.last() != Some(&one) {
                named.push(one);
            }
            if function == "main" {
                break;
            }
        }
        if named.is_empty() {
            return String::new();
        }
        format!(", called {}", named.join(", "))
    }

    /// Returns the message to the user when a program stops at an instruction. `called` is the
    /// result of [`Program::called_from`].
    #[must_use]
    pub fn stopped(&self, pc: u64, called: &str, fault: &Fault) -> String {
        let place = format!("{}{called}", self.place(pc));
        match fault {
            Fault::OnSide { branch, cause } => format!(
                "the program stopped at {place}: {cause}; this is on one side of the branch at {}, \
                 which depends on a secret: both sides are executed, so both must be valid",
                self.place(*branch)
            ),
            _ => format!("the program stopped at {place}: {fault}"),
        }
    }
}
