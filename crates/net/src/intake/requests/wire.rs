//! Messages between a service's clients and parties, in the form of [`crate::intake::wire`], with a
//! magic and a version of their own.
//!
//! | kind | message | body |
//! | --- | --- | --- |
//! | 1 | [`Question::Describe`] | the service |
//! | 3 | [`Question::Attest`] | the service, a nonce |
//! | 2 | [`Question::Ask`] | length of the statement, statement, signature; the pieces follow, each as its salt and its words |
//! | 1 | [`Told::Description`] | the description |
//! | 2 | [`Told::Answer`] | the tag and the length in words; the words follow |
//! | 3 | [`Told::Refusal`] | the cause, the milliseconds after which to come again, the reason |
//! | 5 | [`Told::Evidence`] | when it was made, key, policy, program, signature, evidence |
//! | 4 | [`Told::Waiting`] | nothing |

use super::statement::{Statement, length};
use crate::MOST_PARTIES;
use crate::frame::LONGEST_REASON;
use crate::intake::evidence::Shown;
use crate::intake::statement::{Hash, LONGEST_SIGNATURE};
use crate::intake::wire::{Fields, Form, LONGEST_BODY, malformed, printable};
use std::io::{self, Read, Write};
use std::time::Duration;

/// Longest description of a service's models, in bytes.
pub const LONGEST_DESCRIPTION: usize = 1 << 20;

/// Most words of a party's part of an answer.
pub const MOST_ANSWERED: u64 = 1 << 24;

/// Milliseconds that stand for a refusal that would be the same again.
const NEVER: u64 = u64::MAX;

const FORM: Form = Form {
    magic: *b"tcs",
    version: 1,
};

/// Kind of the reply that holds evidence.
const EVIDENCE: u8 = 5;

/// Question of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// Asks for the description of the models.
    Describe {
        /// Service that the client is of.
        service: Hash,
    },
    /// Asks for the party's evidence, before anything else.
    Attest {
        /// Service that the client is of.
        service: Hash,
        /// Drawn by the client.
        nonce: [u8; 32],
    },
    /// Asks for a result.
    Ask {
        /// Statement of the request.
        statement: Statement,
        /// Signature of the statement, by the key of the client's certificate.
        signature: Vec<u8>,
    },
}

/// Reply of a party.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// Description of the models; the party's program gives it its meaning.
    Description(Vec<u8>),
    /// The party's part of a result; the words follow.
    Answer {
        /// Stands for the computation: parts of one result have the same.
        tag: Hash,
        /// Length of the part in words.
        words: u64,
    },
    /// The party refuses.
    Refusal(Refusal),
    /// Evidence of which program the party runs.
    Evidence(Shown),
    /// The request still waits; another reply follows.
    Waiting,
}

/// Why a party refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The party has no models ready yet.
    Starting = 1,
    /// The party finishes what waits, and ends.
    Draining = 2,
    /// Too many requests wait.
    Busy = 3,
    /// The client has asked for more than it may.
    Quota = 4,
    /// The request waited for too long.
    Deadline = 5,
    /// There is no such model.
    Unknown = 6,
    /// The number was used for another request.
    Conflict = 7,
    /// The request is not what a client of this service sends.
    Invalid = 8,
    /// The request was computed, and its answer is no longer here.
    Lost = 9,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 9] = [
        Self::Starting,
        Self::Draining,
        Self::Busy,
        Self::Quota,
        Self::Deadline,
        Self::Unknown,
        Self::Conflict,
        Self::Invalid,
        Self::Lost,
    ];

    /// Returns the cause in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Draining => "draining",
            Self::Busy => "busy",
            Self::Quota => "quota",
            Self::Deadline => "deadline",
            Self::Unknown => "unknown",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Lost => "lost",
        }
    }
}

/// Refusal of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Why, for programs.
    pub cause: Cause,
    /// When to come again; `None` if the same request would be refused again.
    pub again: Option<Duration>,
    /// Why, for people.
    pub reason: String,
}

impl Refusal {
    /// Makes a refusal that would be the same again.
    pub fn of(cause: Cause, reason: impl Into<String>) -> Self {
        Self {
            cause,
            again: None,
            reason: reason.into(),
        }
    }

    /// Makes a refusal of a request that may come again.
    pub fn until(cause: Cause, again: Duration, reason: impl Into<String>) -> Self {
        let again = Some(again);
        Self {
            again,
            ..Self::of(cause, reason)
        }
    }
}

impl Question {
    /// Writes the question.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Describe { service } => FORM.write(to, 1, &[service]),
            Self::Attest { service, nonce } => FORM.write(to, 3, &[service, nonce]),
            Self::Ask {
                statement,
                signature,
            } => {
                let statement = statement.to_bytes();
                let length = (statement.len() as u64).to_le_bytes();
                FORM.write(to, 2, &[&length, &statement, signature])
            }
        }
    }

    /// Reads the next question of a stream.
    ///
    /// # Errors
    /// `InvalidData` for bytes that are not a question; errors of `from`.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (kind, body) = FORM.read(from, |kind| match kind {
            1 => Some(32),
            2 => Some(8 + length(MOST_PARTIES) + LONGEST_SIGNATURE),
            3 => Some(64),
            _ => None,
        })?;
        let mut fields = Fields::of(&body);
        let question = match kind {
            1 => Self::Describe {
                service: fields.array()?,
            },
            3 => Self::Attest {
                service: fields.array()?,
                nonce: fields.array()?,
            },
            _ => {
                let length = fields.number()?;
                let length = usize::try_from(length).map_err(|_| malformed())?;
                let statement = Statement::from_bytes(fields.take(length)?);
                Self::Ask {
                    statement: statement.ok_or_else(malformed)?,
                    signature: fields.rest(LONGEST_SIGNATURE)?,
                }
            }
        };
        fields.end()?;
        Ok(question)
    }
}

impl Told {
    /// Writes the reply. Truncates reasons that are too long, and replaces control characters by
    /// blanks.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Description(description) => FORM.write(to, 1, &[description]),
            Self::Answer { tag, words } => FORM.write(to, 2, &[tag, &words.to_le_bytes()]),
            Self::Evidence(shown) => FORM.write_evidence(to, EVIDENCE, shown),
            Self::Waiting => FORM.write(to, 4, &[]),
            Self::Refusal(refusal) => {
                let milliseconds = refusal.again.map_or(NEVER, |again| {
                    u64::try_from(again.as_millis()).unwrap_or(NEVER - 1)
                });
                let reason = printable(&refusal.reason);
                let cause = [refusal.cause as u8];
                FORM.write(
                    to,
                    3,
                    &[&cause, &milliseconds.to_le_bytes(), reason.as_bytes()],
                )
            }
        }
    }

    /// Reads the next reply of a stream.
    ///
    /// # Errors
    /// `InvalidData` for bytes that are not a reply; errors of `from`.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let (kind, body) = FORM.read(from, |kind| match kind {
            1 => Some(LONGEST_DESCRIPTION),
            2 => Some(40),
            3 => Some(9 + LONGEST_REASON),
            EVIDENCE => Some(LONGEST_BODY),
            4 => Some(0),
            _ => None,
        })?;
        let mut fields = Fields::of(&body);
        let told = match kind {
            1 => Self::Description(fields.rest(LONGEST_DESCRIPTION)?),
            2 => Self::Answer {
                tag: fields.array()?,
                words: fields.number()?,
            },
            EVIDENCE => Self::Evidence(fields.evidence()?),
            4 => Self::Waiting,
            _ => {
                let [cause] = fields.array()?;
                let cause = Cause::ALL.into_iter().find(|known| *known as u8 == cause);
                let milliseconds = fields.number()?;
                Self::Refusal(Refusal {
                    cause: cause.ok_or_else(malformed)?,
                    again: (milliseconds != NEVER).then(|| Duration::from_millis(milliseconds)),
                    reason: fields.reason()?,
                })
            }
        };
        fields.end()?;
        match told {
            Self::Answer { words, .. } if words > MOST_ANSWERED => Err(malformed()),
            told => Ok(told),
        }
    }
}
