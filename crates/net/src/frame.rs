//! The wire format. Every frame is a header of 32 bytes, the step's name, a piggyback, in attested
//! sessions a signature, and words, all little endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..2 | magic `tc` |
//! | 2 | version, 8 |
//! | 3 | kind; 128 more if the frame is signed |
//! | 4..6 | channel |
//! | 6 | length of the name, at most 96 |
//! | 7 | length of the piggyback, at most 64; only data has one |
//! | 8..12 | words of payload, at most 2^27 (1 GiB) |
//! | 12..16 | depth: the sender's Lamport clock, for counting rounds |
//! | 16..24 | sequence number of the step |
//! | 24..32 | running hash of all steps and their parameters, up to this one |
//!
//! A signature consists of the receivers, a bit for each; for each receiver 8 bytes, the number of
//! the message among those to it; and 64 bytes of Ed25519.
//!
//! Input is hostile until checked. The decoder checks the header before it allocates, and the
//! memory of a payload grows only as its bytes arrive.

use crate::agreement::LONGEST_PIGGYBACK;
use crate::buffer_pool::BufferPool;
pub use crate::error::FrameError;
use std::io::{self, Read};
use std::sync::Arc;

/// Length of a header in bytes.
pub const HEADER: usize = 32;

/// Longest name of a step, in bytes.
pub const LONGEST_NAME: usize = 96;

/// Most words of one payload.
pub const MOST_WORDS: usize = 1 << 27;

/// Words that are allocated before the first of them arrives.
const FIRST_WORDS: usize = 1 << 16;

/// Bytes of a signed payload that are hashed at a time, while they are in cache.
const HASHED: usize = 1 << 16;

/// Most words of a frame without data: a party and a reason.
const MOST_CONTROL_WORDS: usize = 2 + LONGEST_REASON / 8;

/// Stands for the party to blame where one of two parties cheated, and none knows which.
pub(crate) const EITHER: u64 = u64::MAX;

/// Longest reason that a peer may give for ending, in bytes.
pub(crate) const LONGEST_REASON: usize = 1024;

const MAGIC: [u8; 2] = *b"tc";
const VERSION: u8 = 8;

/// Most members of a mesh, and so most receivers of one message.
const MOST_RECEIVERS: usize = 64;

/// Bytes of a signature beside the numbers of its receivers.
const SIGNATURE: usize = 72;

/// Bytes of the longest signature.
const LONGEST_SIGNATURE: usize = SIGNATURE + 8 * MOST_RECEIVERS;

/// Bit of the kind's byte that says that the frame is signed.
const SIGNED: u8 = 0x80;

/// Purpose of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A message of a protocol.
    Data,
    /// The sender is alive and waits. If there is a payload, it holds the party that the sender
    /// waits for, and how often a message for which the sender waited has made progress without
    /// being complete. Without a payload, the sender waits for the ends of programs. The step's
    /// number, name and running hash are those of the step that began last on this channel, or of
    /// the step before the end.
    Waiting,
    /// The sender ends; the payload holds the party to blame and the reason. If one of the two
    /// other parties cheated, it holds [`EITHER`] and the last step that may be concerned, and the
    /// name is the first one.
    Abort,
    /// The sender has finished in order.
    Goodbye,
    /// The programs of two parties differ. The payload holds a channel, a step's number and the
    /// sender's running hash at that step.
    StepHash,
    /// The sender's program has ended. The step's number is one more than that of its last step,
    /// whose name it has, and the running hash is that of all steps and their end.
    End,
    /// Answer to a party that waits at a step, from a sender whose step of that number was a
    /// different one. Number, name and running hash are the sender's.
    Place,
    /// The sender's process is alive, and has nothing else to send on this link for now.
    Alive,
    /// The sender ends because another party has told it of a failure. The payload is as in an
    /// abort. The receiver will hear of the failure from that party itself, which may take longer
    /// than to see the sender's links end.
    ForwardedAbort,
}

/// Signature of a message, for all parties that receive the same one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// Members that the message is for: a bit for each.
    pub receivers: u64,
    /// For each receiver, in order, the number of the message among all that its sender signed for
    /// this receiver on the channel.
    pub places: Vec<u64>,
    /// The Ed25519 signature.
    pub bytes: [u8; 64],
    /// BLAKE3 of the payload, if a [`Decoder`] has hashed it as it came. It is not on the wire.
    pub content: Option<[u8; 32]>,
}

impl Signature {
    /// Returns the length on the wire in bytes.
    fn wire_bytes(&self) -> usize {
        SIGNATURE + 8 * self.places.len()
    }
}

/// One message between two parties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Purpose of the frame.
    pub kind: Kind,
    /// Channel that the frame belongs to.
    pub channel: u16,
    /// The sender's Lamport clock.
    pub depth: u32,
    /// Number of the step.
    pub sequence: u64,
    /// Running hash of all steps up to this one, and their parameters.
    pub parameters: u64,
    /// Name of the step, at most [`LONGEST_NAME`] bytes, without control characters.
    pub name: Arc<str>,
    /// Data that the parties compare in private, at most [`LONGEST_PIGGYBACK`] bytes.
    pub piggyback: Vec<u8>,
    /// Signature of the sender, in attested sessions; only data and the end of a program have one.
    pub signature: Option<Box<Signature>>,
    /// Payload, at most [`MOST_WORDS`] words.
    pub payload: Vec<u64>,
}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// A checked header.
#[derive(Clone, Copy)]
struct Header {
    kind: Kind,
    channel: u16,
    name: usize,
    piggyback: usize,
    is_signed: bool,
    words: usize,
    depth: u32,
    sequence: u64,
    parameters: u64,
}

impl Frame {
    /// Returns the length on the wire in bytes.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        let signature = self.signature.as_ref().map_or(0, |it| it.wire_bytes());
        HEADER + self.name.len() + self.piggyback.len() + signature + 8 * self.payload.len()
    }

    /// Encodes the header, name, piggyback and signature.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        let mut bytes = self.unsigned_head();
        if let Some(signature) = &self.signature {
            bytes[3] |= SIGNED;
            bytes.extend(signature.receivers.to_le_bytes());
            for place in &signature.places {
                bytes.extend(place.to_le_bytes());
            }
            bytes.extend(signature.bytes);
        }
        bytes
    }

    /// Encodes the header, name and piggyback, which a signature covers.
    pub(crate) fn unsigned_head(&self) -> Vec<u8> {
        let length = HEADER + self.name.len() + self.piggyback.len() + SIGNATURE + 16;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, self.kind as u8]);
        bytes.extend(self.channel.to_le_bytes());
        bytes.extend([self.name.len() as u8, self.piggyback.len() as u8]);
        bytes.extend((self.payload.len() as u32).to_le_bytes());
        bytes.extend(self.depth.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.parameters.to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes.extend(&self.piggyback);
        bytes
    }

    /// Reads the next frame of a stream.
    ///
    /// # Errors
    /// As [`Decoder::read`].
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        Decoder::default().read(from)
    }
}

const LONGEST_HEAD: usize = HEADER + LONGEST_NAME + LONGEST_PIGGYBACK + LONGEST_SIGNATURE;

/// Reads frames from a stream. If a read of the stream gives up for a while, the next call
/// continues within the frame.
pub struct Decoder {
    /// Header, name, piggyback and signature.
    head: [u8; LONGEST_HEAD],
    /// Bytes of the head that have come.
    begun: usize,
    header: Option<Header>,
    payload: Vec<u64>,
    /// Bytes of the payload that have come.
    filled: usize,
    /// Hash of these, if the frame is signed.
    content: Option<blake3::Hasher>,
    /// Bytes of payload of all previous messages.
    received: u64,
    pool: Arc<BufferPool>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl Decoder {
    /// Makes a decoder that takes memory for payloads from `pool` if the pool has some.
    pub(crate) fn new(pool: Arc<BufferPool>) -> Self {
        Self {
            head: [0; LONGEST_HEAD],
            begun: 0,
            header: None,
            payload: Vec::new(),
            filled: 0,
            content: None,
            received: 0,
            pool,
        }
    }

    /// Returns the length in words of the frame under way; 0 between frames.
    #[must_use]
    pub fn words_under_way(&self) -> usize {
        self.header.map_or(0, |header| header.words)
    }

    /// Returns the bytes of payload that have come, including the message under way.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received + self.under_way().map_or(0, |(_, bytes)| bytes)
    }

    /// Returns the channel of the message under way, and how many bytes of its payload have come.
    #[must_use]
    pub fn under_way(&self) -> Option<(u16, u64)> {
        let header = self.header.filter(|header| header.kind == Kind::Data)?;
        Some((header.channel, self.filled as u64))
    }

    /// Reads the next frame.
    ///
    /// # Errors
    /// [`FrameError`] inside `InvalidData`; `UnexpectedEof` if the stream ends; errors of `from`.
    /// After `WouldBlock` or `TimedOut` the next call continues where this one stopped. After any
    /// other error the stream is lost.
    pub fn read(&mut self, from: &mut impl Read) -> io::Result<Frame> {
        let header = match self.header {
            Some(header) => header,
            None => {
                fill(from, &mut self.head[..HEADER], &mut self.begun)?;
                let header = decode(&self.head)?;
                *self.header.insert(header)
            }
        };
        let name_end = HEADER + header.name;
        let signature_at = name_end + header.piggyback;
        let mut head_end = signature_at;
        if header.is_signed {
            fill(from, &mut self.head[..signature_at + 8], &mut self.begun)?;
            let receivers = number(&self.head[signature_at..]).count_ones() as usize;
            head_end += SIGNATURE + 8 * receivers;
        }
        fill(from, &mut self.head[..head_end], &mut self.begun)?;
        // The name is checked before the payload is waited for.
        let name = name(&self.head[HEADER..name_end])?;
        if header.is_signed && self.content.is_none() {
            self.content = Some(blake3::Hasher::new());
        }
        self.read_words(from, header.words)?;
        let content = self.content.take();
        let content = content.map(|content| *content.finalize().as_bytes());
        let frame = Frame {
            kind: header.kind,
            channel: header.channel,
            depth: header.depth,
            sequence: header.sequence,
            parameters: header.parameters,
            name,
            piggyback: self.head[name_end..signature_at].to_vec(),
            signature: header
                .is_signed
                .then(|| Box::new(signature(&self.head[signature_at..head_end], content))),
            payload: std::mem::take(&mut self.payload),
        };
        self.received = self.received();
        (self.begun, self.header, self.filled) = (0, None, 0);
        Ok(frame)
    }

    fn read_words(&mut self, from: &mut impl Read, words: usize) -> io::Result<()> {
        if self.filled == 0 && self.payload.is_empty() {
            self.payload = self.pool.take(words).unwrap_or_default();
        }
        while self.filled < 8 * words {
            let whole = self.filled / 8;
            if whole == self.payload.len() {
                let more = words.min((2 * whole).max(FIRST_WORDS));
                self.payload.resize(more, 0);
            }
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.payload);
            let Some(content) = &mut self.content else {
                fill(from, bytes, &mut self.filled)?;
                continue;
            };
            let (begin, end) = (self.filled, bytes.len().min(self.filled + HASHED));
            let read = fill(from, &mut bytes[..end], &mut self.filled);
            content.update(&bytes[begin..self.filled]);
            read?;
        }
        Ok(())
    }
}

/// Reads a signature.
fn signature(bytes: &[u8], content: Option<[u8; 32]>) -> Signature {
    let (receivers, rest) = bytes.split_at(8);
    let (places, bytes) = rest.split_at(rest.len() - 64);
    Signature {
        receivers: number(receivers),
        places: places.chunks_exact(8).map(number).collect(),
        bytes: std::array::from_fn(|at| bytes[at]),
        content,
    }
}

/// Reads the number that bytes begin with.
fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|at| bytes[at]))
}

/// Returns a step's name in the form that frames carry.
pub(crate) fn step_name(name: &str) -> Arc<str> {
    let clean: String = name
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    cut_to(&clean, LONGEST_NAME).into()
}

/// Returns the longest beginning of a text with at most `most` bytes.
pub(crate) fn cut_to(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn name(bytes: &[u8]) -> Result<Arc<str>, FrameError> {
    match std::str::from_utf8(bytes) {
        Ok(name) if !name.chars().any(char::is_control) => Ok(name.into()),
        _ => Err(FrameError::Name),
    }
}

/// Reads from position `filled` on until all of `into` is filled.
fn fill(from: &mut impl Read, into: &mut [u8], filled: &mut usize) -> io::Result<()> {
    while *filled < into.len() {
        match from.read(&mut into[*filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => *filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<Header, FrameError> {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
    if bytes[..2] != MAGIC {
        return Err(FrameError::Magic);
    }
    if bytes[2] != VERSION {
        return Err(FrameError::Version {
            theirs: bytes[2],
            ours: VERSION,
        });
    }
    let is_signed = bytes[3] & SIGNED != 0;
    let kind = match bytes[3] & !SIGNED {
        0 => Kind::Data,
        1 => Kind::Waiting,
        2 => Kind::Abort,
        3 => Kind::Goodbye,
        4 => Kind::StepHash,
        5 => Kind::End,
        6 => Kind::Place,
        7 => Kind::Alive,
        8 => Kind::ForwardedAbort,
        _ => return Err(FrameError::Header),
    };
    let piggyback = usize::from(bytes[7]);
    if piggyback > LONGEST_PIGGYBACK || (piggyback > 0 && kind != Kind::Data) {
        return Err(FrameError::Header);
    }
    if is_signed && !matches!(kind, Kind::Data | Kind::End) {
        return Err(FrameError::Header);
    }
    let name = usize::from(bytes[6]);
    if name > LONGEST_NAME {
        return Err(FrameError::Name);
    }
    let words = word(8) as usize;
    let most = if kind == Kind::Data {
        MOST_WORDS
    } else {
        MOST_CONTROL_WORDS
    };
    if words > most {
        return Err(FrameError::TooLong {
            words,
            most: MOST_WORDS,
            most_control: MOST_CONTROL_WORDS,
        });
    }
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    Ok(Header {
        kind,
        channel: half(4),
        name,
        piggyback,
        is_signed,
        words,
        depth: word(12),
        sequence: long(16),
        parameters: long(24),
    })
}

#[cfg(target_endian = "big")]
compile_error!("words travel as they lie in memory, little endian");
