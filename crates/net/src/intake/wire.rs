//! Messages between clients and servers. Every message is a head of 16 bytes and a body, little
//! endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..3 | magic `tcd` |
//! | 3 | version, 3 |
//! | 4 | kind |
//! | 5..8 | zero |
//! | 8..16 | bytes of body |
//!
//! The version increases with every change of the form or meaning of a message. A receiver that
//! gets another version reports that and reads no further, so that releases of tacit with different
//! versions do not guess each other's meaning.
//!
//! Input is hostile until checked. A body's length is compared with the limit of its kind before
//! anything is allocated. Large data follows after a message, in a length that both ends then know.

use super::evidence::{LONGEST as LONGEST_EVIDENCE, SIGNATURE, Shown};
use super::statement::{Hash, LONGEST_SIGNATURE, STATEMENT, Statement};
use super::ticket::SHOWN;
use crate::frame::LONGEST_REASON;
use std::io::{self, Read, Write};

/// Longest terms of a round, in bytes.
pub const LONGEST_TERMS: usize = 1 << 16;

/// Longest vector, in words.
pub const MOST_WORDS: u64 = 1 << 27;

/// Largest model or outcome of a round, in bytes.
pub const LARGEST: u64 = 1 << 30;

/// Bytes of the tickets that a client shows.
const TICKETS: usize = SHOWN * size_of::<Hash>();

const HEAD: usize = 16;
/// Since version 2 the coordinator may close a round, and an outcome says why the client's own
/// submission was refused. Since version 3 a client may ask for the server's evidence.
pub(super) const VERSION: u8 = 3;

/// Kind of the reply that holds evidence, the only one with bodies of its length.
const EVIDENCE: u8 = 8;

/// Bytes of that reply before the evidence: a time, a key, two digests and a signature.
const BEFORE_EVIDENCE: usize = 8 + 3 * 32 + SIGNATURE;

/// Longest body of any message: that of evidence.
pub(super) const LONGEST_BODY: usize = BEFORE_EVIDENCE + LONGEST_EVIDENCE;

/// Request of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(clippy::large_enum_variant, reason = "a connection has one at a time")]
pub enum Request {
    /// Asks for a round later than `after`, with its model or only the model's hash.
    Join {
        /// Federation of the round.
        federation: Hash,
        /// The latest round that the client knows.
        after: u64,
        /// Whether to send the model itself.
        model: bool,
    },
    /// Asks whether the client may submit.
    Offer {
        /// Statement of the submission.
        statement: Statement,
        /// Tickets of the servers that have their part; zeros for a server that issues one itself.
        tickets: [Hash; SHOWN],
        /// Signature of the statement, by the key of the client's certificate.
        signature: Vec<u8>,
    },
    /// Asks for the outcome of a round, with its content or only the content's hash.
    Outcome {
        /// Federation of the round.
        federation: Hash,
        /// Number of the round.
        round: u64,
        /// Whether to send the content itself.
        content: bool,
    },
    /// The coordinator says that all clients it asked have submitted or failed, so that the round
    /// waits for no client any more.
    Close {
        /// Federation of the round.
        federation: Hash,
        /// Number of the round.
        round: u64,
    },
    /// Asks the server for its evidence, before anything else.
    Attest {
        /// Federation that the client is of.
        federation: Hash,
        /// Drawn by the client for this connection.
        nonce: [u8; 32],
    },
}

/// Reply of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// A round; the model follows if it was asked for.
    Task {
        /// Number of the round.
        round: u64,
        /// Length of a vector in words.
        words: u64,
        /// Time until the deadline.
        milliseconds: u64,
        /// Hash of the model.
        model: Hash,
        /// Bytes of the model that follow.
        length: u64,
        /// Terms of the round; the server does not read them.
        terms: Vec<u8>,
    },
    /// The client may send the pieces.
    Go,
    /// The submission has arrived whole.
    Receipt {
        /// Hash of its statement.
        digest: Hash,
        /// Ticket to show to the server that keeps the rest.
        ticket: Hash,
    },
    /// Outcome of a round; the content follows if it was asked for or is a part.
    Outcome {
        /// Hash of the content.
        hash: Hash,
        /// Whether the content is this server's part of a result that no server knows.
        is_part: bool,
        /// Bytes of the content that follow.
        length: u64,
        /// Why this client's own submission was refused; empty if it was not.
        own: String,
    },
    /// The round waits for no client any more.
    Closed,
    /// Evidence of which program the server runs.
    Evidence(Shown),
    /// There is nothing to report yet; the client may ask again.
    NotYet,
    /// The server refuses, for this reason.
    Refusal(String),
}

/// Bytes that are decoded field by field.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed())
    }

    pub(super) fn number(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn flag(&mut self) -> io::Result<bool> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(malformed()),
        }
    }

    pub(super) fn rest(&mut self, most: usize) -> io::Result<Vec<u8>> {
        if self.0.len() > most {
            return Err(malformed());
        }
        Ok(std::mem::take(&mut self.0).to_vec())
    }

    /// Decodes all remaining bytes as a printable reason.
    pub(super) fn reason(&mut self) -> io::Result<String> {
        let text = String::from_utf8(self.rest(LONGEST_REASON)?);
        Ok(printable(&text.map_err(|_| malformed())?))
    }

    /// Decodes all remaining bytes as what [`Form::write_evidence`] writes.
    pub(super) fn evidence(&mut self) -> io::Result<Shown> {
        Ok(Shown {
            made: self.number()?,
            key: self.array()?,
            policy: self.array()?,
            program: self.array()?,
            signature: self.array()?,
            evidence: self.rest(LONGEST_EVIDENCE)?,
        })
    }

    pub(super) fn end(&self) -> io::Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(malformed())
        }
    }
}

pub(super) fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "it sent a message that no client or server of tacit sends",
    )
}

fn excessive(length: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!(
            "it announces {length} bytes of evidence and keys, more than the {LONGEST_BODY} that \
             are read: run the same release of tacit at all clients and servers"
        ),
    )
}

/// What the head of a message begins with.
pub(super) struct Form {
    pub(super) magic: [u8; 3],
    pub(super) version: u8,
}

/// Form of messages between the clients and servers of a federation.
const FORM: Form = Form {
    magic: *b"tcd",
    version: VERSION,
};

impl Form {
    pub(super) fn write(&self, to: &mut impl Write, kind: u8, body: &[&[u8]]) -> io::Result<()> {
        let mut bytes = self.magic.to_vec();
        bytes.extend([self.version, kind, 0, 0, 0]);
        let length: usize = body.iter().map(|field| field.len()).sum();
        bytes.extend((length as u64).to_le_bytes());
        bytes.extend(body.concat());
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Writes what a server shows a client, as a message of this kind.
    pub(super) fn write_evidence(
        &self,
        to: &mut impl Write,
        kind: u8,
        shown: &Shown,
    ) -> io::Result<()> {
        let made = shown.made.to_le_bytes();
        let Shown {
            key,
            policy,
            program,
            signature,
            evidence,
            ..
        } = shown;
        self.write(
            to,
            kind,
            &[&made, key, policy, program, signature, evidence],
        )
    }

    /// Reads the kind and the body. `most` returns the longest body of a kind, or `None` for an
    /// unknown kind.
    pub(super) fn read(
        &self,
        from: &mut impl Read,
        most: impl Fn(u8) -> Option<usize>,
    ) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; HEAD];
        from.read_exact(&mut head)?;
        let mut fields = Fields(&head);
        if fields.array()? != self.magic {
            return Err(malformed());
        }
        let [version] = fields.array()?;
        if version != self.version {
            return Err(self.unlike(version));
        }
        let [kind, zeros @ ..] = fields.array::<4>()?;
        let length = fields.number()?;
        let most = most(kind).ok_or_else(malformed)?;
        if most == LONGEST_BODY && length > most as u64 {
            return Err(excessive(length));
        }
        if zeros != [0; 3] || length > most as u64 {
            return Err(malformed());
        }
        let mut body = vec![0; length as usize];
        from.read_exact(&mut body)?;
        Ok((kind, body))
    }

    fn unlike(&self, version: u8) -> io::Error {
        let own = self.version;
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "it speaks version {version} of the protocol between clients and servers, but this \
                 end speaks version {own}: run the same release of tacit at all clients and servers"
            ),
        )
    }
}

impl Request {
    /// Writes the request.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Join {
                federation,
                after,
                model,
            } => FORM.write(
                to,
                1,
                &[federation, &after.to_le_bytes(), &[u8::from(*model)]],
            ),
            Self::Offer {
                statement,
                tickets,
                signature,
            } => FORM.write(
                to,
                2,
                &[&statement.to_bytes(), tickets.as_flattened(), signature],
            ),
            Self::Outcome {
                federation,
                round,
                content,
            } => FORM.write(
                to,
                3,
                &[federation, &round.to_le_bytes(), &[u8::from(*content)]],
            ),
            Self::Close { federation, round } => {
                FORM.write(to, 4, &[federation, &round.to_le_bytes()])
            }
            Self::Attest { federation, nonce } => FORM.write(to, 5, &[federation, nonce]),
        }
    }

    /// Reads the next request of a stream.
    ///
    /// # Errors
    /// `InvalidData` for bytes that are not a request; errors of `from`.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (kind, body) = FORM.read(from, |kind| match kind {
            1 | 3 => Some(41),
            4 => Some(40),
            5 => Some(64),
            2 => Some(STATEMENT + TICKETS + LONGEST_SIGNATURE),
            _ => None,
        })?;
        let mut fields = Fields(&body);
        let request = match kind {
            1 => Self::Join {
                federation: fields.array()?,
                after: fields.number()?,
                model: fields.flag()?,
            },
            2 => Self::Offer {
                statement: Statement::from_bytes(&fields.array()?).ok_or_else(malformed)?,
                tickets: [fields.array()?, fields.array()?],
                signature: fields.rest(LONGEST_SIGNATURE)?,
            },
            3 => Self::Outcome {
                federation: fields.array()?,
                round: fields.number()?,
                content: fields.flag()?,
            },
            4 => Self::Close {
                federation: fields.array()?,
                round: fields.number()?,
            },
            _ => Self::Attest {
                federation: fields.array()?,
                nonce: fields.array()?,
            },
        };
        fields.end()?;
        Ok(request)
    }
}

impl Reply {
    /// Writes the reply. Truncates reasons that are too long, and replaces control characters by
    /// blanks.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Task {
                round,
                words,
                milliseconds,
                model,
                length,
                terms,
            } => {
                let numbers =
                    [round, words, milliseconds, length].map(|number| number.to_le_bytes());
                FORM.write(to, 1, &[numbers.as_flattened(), model, terms])
            }
            Self::Go => FORM.write(to, 2, &[]),
            Self::Receipt { digest, ticket } => FORM.write(to, 3, &[digest, ticket]),
            Self::Outcome {
                hash,
                is_part,
                length,
                own,
            } => FORM.write(
                to,
                4,
                &[
                    hash,
                    &[u8::from(*is_part)],
                    &length.to_le_bytes(),
                    printable(own).as_bytes(),
                ],
            ),
            Self::NotYet => FORM.write(to, 5, &[]),
            Self::Refusal(reason) => FORM.write(to, 6, &[printable(reason).as_bytes()]),
            Self::Closed => FORM.write(to, 7, &[]),
            Self::Evidence(shown) => FORM.write_evidence(to, EVIDENCE, shown),
        }
    }

    /// Reads the next reply of a stream.
    ///
    /// # Errors
    /// `InvalidData` for bytes that are not a reply; errors of `from`.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (kind, body) = FORM.read(from, |kind| match kind {
            1 => Some(64 + LONGEST_TERMS),
            2 | 5 | 7 => Some(0),
            3 => Some(64),
            4 => Some(41 + LONGEST_REASON),
            6 => Some(LONGEST_REASON),
            EVIDENCE => Some(LONGEST_BODY),
            _ => None,
        })?;
        let mut fields = Fields(&body);
        let reply = match kind {
            1 => {
                let [round, words, milliseconds, length] = [
                    fields.number()?,
                    fields.number()?,
                    fields.number()?,
                    fields.number()?,
                ];
                Self::Task {
                    round,
                    words,
                    milliseconds,
                    length,
                    model: fields.array()?,
                    terms: fields.rest(LONGEST_TERMS)?,
                }
            }
            2 => Self::Go,
            3 => Self::Receipt {
                digest: fields.array()?,
                ticket: fields.array()?,
            },
            4 => Self::Outcome {
                hash: fields.array()?,
                is_part: fields.flag()?,
                length: fields.number()?,
                own: fields.reason()?,
            },
            5 => Self::NotYet,
            7 => Self::Closed,
            EVIDENCE => Self::Evidence(fields.evidence()?),
            _ => Self::Refusal(fields.reason()?),
        };
        fields.end()?;
        match reply {
            Self::Task { words, length, .. } if words > MOST_WORDS || length > LARGEST => {
                Err(malformed())
            }
            Self::Outcome { length, .. } if length > LARGEST => Err(malformed()),
            reply => Ok(reply),
        }
    }
}

/// Makes a reason printable, and truncates it.
pub(super) fn printable(reason: &str) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let mut text: String = reason.chars().map(blank).collect();
    while text.len() > LONGEST_REASON {
        text.pop();
    }
    text
}
