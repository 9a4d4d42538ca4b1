//! Tests of the decoder of frames, on valid input and on everything else.

use net::LONGEST_PIGGYBACK;
use net::frame::{Decoder, Frame, HEADER, Kind, LONGEST_NAME, MOST_WORDS, Signature};
use proptest::prelude::*;
use std::io::{self, Cursor, Read};

fn encode(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.head();
    bytes.extend(frame.payload.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

fn frames() -> impl Strategy<Value = Frame> {
    let kinds = prop::sample::select(vec![
        Kind::Data,
        Kind::Waiting,
        Kind::Abort,
        Kind::Goodbye,
        Kind::StepHash,
        Kind::End,
        Kind::Place,
        Kind::Alive,
        Kind::ForwardedAbort,
    ]);
    let name = "[a-zA-Z0-9 .:é]{0,40}";
    let payload = prop::collection::vec(any::<u64>(), 0..130);
    (
        kinds,
        any::<u16>(),
        any::<u32>(),
        any::<[u64; 2]>(),
        name,
        prop::collection::vec(any::<u8>(), 0..=LONGEST_PIGGYBACK),
        payload,
    )
        .prop_map(
            |(kind, channel, depth, [sequence, parameters], name, piggyback, payload)| Frame {
                signature: signed(kind, sequence, &payload),
                kind,
                channel,
                depth,
                sequence,
                parameters,
                name: name.into(),
                piggyback: if kind == Kind::Data {
                    piggyback
                } else {
                    vec![]
                },
                payload,
            },
        )
}

/// Returns a signature for each second frame that may have one, as a decoder gives it.
fn signed(kind: Kind, sequence: u64, payload: &[u64]) -> Option<Box<Signature>> {
    let may = matches!(kind, Kind::Data | Kind::End);
    (may && sequence % 2 == 0).then(|| {
        Box::new(Signature {
            receivers: sequence,
            places: (0..sequence.count_ones().into()).map(|at| !at).collect(),
            bytes: std::array::from_fn(|at| at as u8),
            content: Some(*blake3::hash(bytemuck::cast_slice(payload)).as_bytes()),
        })
    })
}

/// A reader that returns one byte at a time, as a slow peer does.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = into.len().min(self.0.len()).min(1);
        into[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// A reader that returns some bytes and then nothing for a while, again and again.
struct Pausing<'a> {
    rest: &'a [u8],
    most: usize,
    pause: bool,
}

impl Read for Pausing<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.pause = !self.pause;
        if self.pause {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = into.len().min(self.rest.len()).min(self.most);
        into[..n].copy_from_slice(&self.rest[..n]);
        self.rest = &self.rest[n..];
        Ok(n)
    }
}

#[test]
fn a_long_signed_payload_is_hashed_as_it_comes() {
    let payload: Vec<u64> = (0..40_000).collect();
    for most in [1 << 14, 10_001, 1 << 20] {
        let frame = Frame {
            kind: Kind::Data,
            channel: 1,
            depth: 2,
            sequence: 4,
            parameters: 3,
            name: "step".into(),
            piggyback: Vec::new(),
            signature: signed(Kind::Data, 4, &payload),
            payload: payload.clone(),
        };
        let bytes = encode(&frame);
        let mut stream = Pausing {
            rest: &bytes,
            most,
            pause: false,
        };
        let mut decoder = Decoder::default();
        let read = loop {
            match decoder.read(&mut stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => break read.unwrap(),
            }
        };
        assert!(read == frame, "{most} bytes at a time");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(frame in frames()) {
        let bytes = encode(&frame);
        prop_assert_eq!(bytes.len(), frame.wire_bytes());
        prop_assert_eq!(&Frame::read(&mut Cursor::new(&bytes)).unwrap(), &frame);
        prop_assert_eq!(&Frame::read(&mut Trickle(&bytes)).unwrap(), &frame);
    }

    #[test]
    fn a_pause_within_a_frame_loses_nothing(all in prop::collection::vec(frames(), 1..4), most in 1..60_usize) {
        let bytes: Vec<u8> = all.iter().flat_map(encode).collect();
        let mut stream = Pausing { rest: &bytes, most, pause: false };
        let mut decoder = Decoder::default();
        for frame in &all {
            let read = loop {
                match decoder.read(&mut stream) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => break read.unwrap(),
                }
            };
            prop_assert_eq!(&read, frame);
        }
        let end = loop {
            match decoder.read(&mut stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => break read.unwrap_err(),
            }
        };
        prop_assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_truncated_frame_is_an_end(frame in frames(), cut in 0.0..1.0) {
        let bytes = encode(&frame);
        let kept = (cut * bytes.len() as f64) as usize;
        let error = Frame::read(&mut Cursor::new(&bytes[..kept])).unwrap_err();
        prop_assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn random_bytes_are_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assume!(!bytes.starts_with(b"tc"));
        prop_assert!(Frame::read(&mut Cursor::new(&bytes)).is_err());
    }

    #[test]
    fn random_bytes_after_the_magic_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut all = b"tc\x02".to_vec();
        all.extend(bytes);
        // Whatever the decoder makes of the bytes, it neither panics nor takes more than are there.
        if let Ok(frame) = Frame::read(&mut Cursor::new(&all)) {
            prop_assert!(frame.wire_bytes() <= all.len());
            prop_assert!(frame.name.len() <= LONGEST_NAME);
        }
    }
}

fn header(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let frame = Frame {
        kind: Kind::Data,
        channel: 0,
        depth: 1,
        sequence: 1,
        parameters: 7,
        name: "a step".into(),
        piggyback: vec![],
        signature: None,
        payload: vec![],
    };
    let mut bytes = frame.head();
    change(&mut bytes);
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    let error = Frame::read(&mut Cursor::new(bytes)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    error.to_string()
}

#[test]
fn each_field_is_checked() {
    assert_eq!(
        refusal(&header(|bytes| bytes[0] = b'x')),
        "not a tacit frame"
    );
    assert!(refusal(&header(|bytes| bytes[2] = 9)).starts_with("frame version 9"));
    assert_eq!(
        refusal(&header(|bytes| bytes[3] = 9)),
        "malformed frame header"
    );
    assert_eq!(
        refusal(&header(|bytes| bytes[7] = LONGEST_PIGGYBACK as u8 + 1)),
        "malformed frame header"
    );
    assert_eq!(
        refusal(&header(|bytes| {
            bytes[3] = Kind::Goodbye as u8;
            bytes[7] = 1;
        })),
        "malformed frame header"
    );
    assert_eq!(
        refusal(&header(|bytes| bytes[6] = 97)),
        "malformed step name"
    );
    assert_eq!(
        refusal(&header(|bytes| bytes[HEADER] = 0xff)),
        "malformed step name"
    );
    assert_eq!(
        refusal(&header(|bytes| bytes[HEADER] = b'\n')),
        "malformed step name"
    );
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_anything_is_allocated() {
    let too_long = (MOST_WORDS as u32 + 1).to_le_bytes();
    let text = refusal(&header(|bytes| bytes[8..12].copy_from_slice(&too_long)));
    assert!(text.contains("the limit is"), "{text}");
}

#[test]
fn a_frame_without_data_is_short() {
    let text = refusal(&header(|bytes| {
        bytes[3] = Kind::Waiting as u8;
        bytes[8..12].copy_from_slice(&1000_u32.to_le_bytes());
    }));
    assert!(text.contains("the limit is"), "{text}");
}

#[test]
fn memory_grows_only_with_what_arrives() {
    // The header announces 1 GiB, and nothing follows: reading ends at once, without having
    // allocated it.
    let most = (MOST_WORDS as u32).to_le_bytes();
    let bytes = header(|bytes| bytes[8..12].copy_from_slice(&most));
    let error = Frame::read(&mut Cursor::new(&bytes)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}
