//! First message on a connection: the sender, its purpose, and the sender's settings.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..4 | magic `tci`, and 2 for the version |
//! | 4 | purpose |
//! | 5 | the sender's number |
//! | 6 | the member that a refusal blames |
//! | 7 | zero |
//! | 8..16 | the sender's clock: seconds since 1970, little endian |
//! | 16..24 | start of the sender's set-up, by its clock: shows whether a party has restarted |
//! | 24..26 | bytes of text, at most 1024, little endian |
//! | 26.. | text in UTF-8, without control characters |

use crate::error::SetupFault;
use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest text, in bytes.
const LONGEST: usize = 1024;

const HEAD: usize = 26;

const MAGIC: [u8; 3] = *b"tci";
const VERSION: u8 = b'2';

/// Purpose of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// A link of a session; the text must be equal in all parties.
    Link,
    /// A check whether a session is possible; the text is that of a link.
    Examination,
    /// No session with the sender is possible; the text says why.
    Refusal,
}

/// First message, in which a party introduces itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub(super) purpose: Purpose,
    pub(super) party: usize,
    pub(super) blamed: usize,
    pub(super) clock: u64,
    /// Start of the set-up in nanoseconds since 1970; compared only with other values of the same
    /// party.
    pub(super) began: u64,
    pub(super) text: String,
}

impl Hello {
    /// Makes a greeting. Truncates a text that is too long, and replaces control characters by
    /// blanks.
    pub(super) fn new(purpose: Purpose, party: usize, blamed: usize, text: &str) -> Self {
        let blank = |c: char| if c.is_control() { ' ' } else { c };
        let mut text: String = text.chars().map(blank).collect();
        while text.len() > LONGEST {
            text.pop();
        }
        Self {
            purpose,
            party,
            blamed,
            clock: now(),
            began: 0,
            text,
        }
    }

    /// Returns the greeting with `began` as the start of the set-up.
    pub(super) fn since(self, began: u64) -> Self {
        Self { began, ..self }
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let purpose = match self.purpose {
            Purpose::Link => 0,
            Purpose::Examination => 1,
            Purpose::Refusal => 2,
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION, purpose, self.party as u8, self.blamed as u8, 0]);
        bytes.extend(self.clock.to_le_bytes());
        bytes.extend(self.began.to_le_bytes());
        bytes.extend((self.text.len() as u16).to_le_bytes());
        bytes.extend(self.text.as_bytes());
        to.write_all(&bytes)?;
        to.flush()
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let wrong = |fault: SetupFault| io::Error::new(io::ErrorKind::InvalidData, fault);
        let malformed = || wrong(SetupFault::NoGreeting);
        let mut magic = [0; 4];
        from.read_exact(&mut magic)?;
        if magic[..3] != MAGIC {
            return Err(malformed());
        }
        if magic[3] != VERSION {
            return Err(wrong(SetupFault::OtherRelease));
        }
        let mut head = [0; HEAD - 4];
        from.read_exact(&mut head)?;
        let [purpose, party, blamed, zero, rest @ ..] = head;
        let purpose = match purpose {
            0 => Purpose::Link,
            1 => Purpose::Examination,
            2 => Purpose::Refusal,
            _ => return Err(malformed()),
        };
        let [times @ .., low, high] = rest;
        let length = usize::from(u16::from_le_bytes([low, high]));
        let [clock, began] = [0, 8].map(|at| {
            let bytes = std::array::from_fn(|byte| times[at + byte]);
            u64::from_le_bytes(bytes)
        });
        if zero != 0 || length > LONGEST {
            return Err(malformed());
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(|_| malformed())?;
        if text.chars().any(char::is_control) {
            return Err(malformed());
        }
        Ok(Self {
            purpose,
            party: usize::from(party),
            blamed: usize::from(blamed),
            clock,
            began,
            text,
        })
    }
}

/// Seconds since 1970 by this machine's clock.
pub(super) fn now() -> u64 {
    nanoseconds() / 1_000_000_000
}

/// Nanoseconds since 1970 by this machine's clock.
pub(super) fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(hello: &Hello) -> Vec<u8> {
        let mut bytes = Vec::new();
        hello.write(&mut bytes).unwrap();
        bytes
    }

    fn read(mut bytes: &[u8]) -> io::Result<Hello> {
        Hello::read(&mut bytes)
    }

    #[test]
    fn what_is_written_is_read() {
        for (purpose, text) in [
            (Purpose::Link, "protocol replicated, tacit 1.0"),
            (Purpose::Examination, ""),
            (Purpose::Refusal, "der Schlüssel fehlt"),
        ] {
            let hello = Hello::new(purpose, 3, 2, text).since(nanoseconds());
            assert_eq!(read(&written(&hello)).unwrap(), hello);
        }
    }

    #[test]
    fn texts_are_bounded_and_printable() {
        let hello = Hello::new(Purpose::Refusal, 0, 0, &"\u{1b}ü\n".repeat(1000));
        assert!(hello.text.len() <= LONGEST && hello.text.starts_with(" ü  ü "));
        assert_eq!(read(&written(&hello)).unwrap(), hello);
    }

    #[test]
    fn another_release_is_told_from_garbage() {
        let mut bytes = written(&Hello::new(Purpose::Link, 0, 0, "test"));
        bytes[3] = b'1';
        let said = read(&bytes).unwrap_err().to_string();
        assert!(
            said.starts_with("it runs another release of tacit"),
            "{said}"
        );
        bytes[0] = b'S';
        let said = read(&bytes).unwrap_err().to_string();
        assert_eq!(said, "its first message is not a greeting of tacit");
    }

    #[test]
    fn whatever_arrives_is_checked() {
        let good = written(&Hello::new(Purpose::Link, 1, 0, "test"));
        for end in 0..good.len() {
            assert!(read(&good[..end]).is_err());
        }
        // Purpose, the zero byte, the length, a control character, and invalid UTF-8.
        for (at, byte) in [(4, 3), (7, 1), (25, 5), (26, 7), (26, 0xff)] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            assert!(read(&bytes).is_err(), "byte {at}");
        }
    }
}
