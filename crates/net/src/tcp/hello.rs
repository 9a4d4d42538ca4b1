//! The first message on a connection: who speaks, and what it was started with.

use std::io::{self, Read, Write};

/// Longest line of parameters, in bytes.
const LONGEST: usize = 512;

const MAGIC: [u8; 4] = *b"tci1";

/// A party's number and parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    party: usize,
    parameters: String,
}

impl Hello {
    pub(super) fn new(party: usize, parameters: &str) -> Self {
        Self {
            party,
            parameters: parameters
                .chars()
                .filter(|c| !c.is_control())
                .take(LONGEST / 4)
                .collect(),
        }
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(self.party as u8);
        bytes.extend((self.parameters.len() as u16).to_le_bytes());
        bytes.extend(self.parameters.as_bytes());
        to.write_all(&bytes)?;
        to.flush()
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let malformed = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "not a hello of this version of tacit",
            )
        };
        let mut head = [0; 7];
        from.read_exact(&mut head)?;
        let length = usize::from(u16::from_le_bytes([head[5], head[6]]));
        if head[..4] != MAGIC || length > LONGEST {
            return Err(malformed());
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text)?;
        let parameters = String::from_utf8(text).map_err(|_| malformed())?;
        if parameters.chars().any(char::is_control) {
            return Err(malformed());
        }
        Ok(Self {
            party: usize::from(head[4]),
            parameters,
        })
    }

    /// Whether this is `peer`, started like us.
    pub(super) fn check(&self, ours: &Self, peer: usize) -> Result<(), String> {
        if self.party != peer {
            return Err(format!(
                "it says that it is party {}, but has the certificate of party {peer}; give each party its own number",
                self.party
            ));
        }
        if self.parameters != ours.parameters {
            return Err(format!(
                "it runs \"{}\" and this party \"{}\"; start all parties with the same settings and release",
                self.parameters, ours.parameters
            ));
        }
        Ok(())
    }
}
