//! Targets for bytes from links, and for the files that links are configured with.

use crate::Target;
use net::certificates;
use net::config::Config;
use net::frame::{Decoder, Frame, Kind};
use net::intake::evidence::{SIGNATURE, Shown};
use net::intake::statement::Statement;
use net::intake::wire::{Reply, Request};
use std::io::{self, Read};
use std::path::Path;

/// Frames between parties, one after another. The reader pauses as a slow link does.
pub const FRAMES: Target = Target {
    name: "frames",
    takes: takes_frames,
    seeds: frames,
};

/// The first message on a connection.
pub const GREETINGS: Target = Target {
    name: "greetings",
    takes: |mut data| net::tcp::read_greeting(&mut data).is_ok(),
    seeds: net::tcp::greetings,
};

/// Messages between clients and servers. The first byte selects the sender.
pub const SUBMISSIONS: Target = Target {
    name: "submissions",
    takes: takes_submission,
    seeds: submissions,
};

/// Certificates in PEM.
pub const CERTIFICATES: Target = Target {
    name: "certificates",
    takes: takes_certificate,
    seeds: || {
        let made = certificates::generate(1, 365).expect("a certificate");
        vec![made.certificate_pem.into_bytes()]
    },
};

/// `parties.toml`.
pub const CONFIGURATIONS: Target = Target {
    name: "configurations",
    takes: takes_configuration,
    seeds: || {
        vec![
            include_bytes!("../../examples/parties.toml").to_vec(),
            COMPLETE.as_bytes().to_vec(),
        ]
    },
};

/// A configuration with every possible entry.
const COMPLETE: &str = r#"protocol = "additive"
source = "dealer"
timeout = 60.5
checked = true

[[party]]
address = "alice.example:7400"
listen = "0.0.0.0:7400"
certificate = "party-0.pem"
key = "party-0.key"
correlations = "party-0.correlations"

[[party]]
address = "[::1]:7401"
certificate = "party-1.pem"

[dealer]
address = "dealer.example:7400"
certificate = "dealer.pem"
"#;

/// A reader that returns nothing at every second call, and few bytes at the others.
struct Pausing<'a> {
    rest: &'a [u8],
    pauses: bool,
}

impl Read for Pausing<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.pauses = !self.pauses;
        if self.pauses {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let most = into.len().min(61);
        self.rest.read(&mut into[..most])
    }
}

fn written(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.head();
    bytes.extend(frame.payload.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

fn takes_frames(data: &[u8]) -> bool {
    let mut whole = data;
    let mut pausing = Pausing {
        rest: data,
        pauses: false,
    };
    let (mut first, mut second) = (Decoder::default(), Decoder::default());
    loop {
        let read = first.read(&mut whole);
        let again = loop {
            match second.read(&mut pausing) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => break read,
            }
        };
        match (read, again) {
            (Ok(frame), Ok(again)) => {
                assert_eq!(frame, again);
                let bytes = written(&frame);
                assert_eq!(bytes.len(), frame.wire_bytes());
                assert_eq!(Frame::read(&mut &bytes[..]).expect("it was written"), frame);
            }
            (Err(error), Err(again)) => {
                assert_eq!(error.to_string(), again.to_string());
                return first.received() > 0 && whole.is_empty();
            }
            _ => panic!("pauses change what is read"),
        }
    }
}

fn frames() -> Vec<Vec<u8>> {
    let frame = |kind, name: &str, piggyback, payload| {
        written(&Frame {
            kind,
            channel: 1,
            depth: 2,
            sequence: 3,
            parameters: 4,
            name: name.into(),
            piggyback,
            signature: None,
            payload,
        })
    };
    let data = frame(
        Kind::Data,
        "relu1: sign of 64",
        vec![7; 16],
        vec![1, u64::MAX],
    );
    let with = |other: Vec<u8>| [&data[..], &other[..], &data[..]].concat();
    vec![
        data.clone(),
        with(frame(Kind::Waiting, "reveal", vec![], vec![2, 5])),
        with(frame(
            Kind::Abort,
            "reveal",
            vec![],
            vec![1, 5, 0x6f6c_6c65_68],
        )),
        with(frame(Kind::Goodbye, "", vec![], vec![])),
        with(frame(Kind::StepHash, "reveal", vec![], vec![1, 2, 3])),
        with(frame(Kind::End, "é", vec![], vec![])),
        with(frame(Kind::Place, "reveal", vec![], vec![])),
        with(frame(Kind::Alive, "", vec![], vec![])),
        with(frame(Kind::ForwardedAbort, "reveal", vec![], vec![0, 0])),
    ]
}

/// Checks that accepted messages are written as they were read.
fn takes_submission(data: &[u8]) -> bool {
    let Some((&of, mut rest)) = data.split_first() else {
        return false;
    };
    let before = rest;
    let mut again = Vec::new();
    if of % 2 == 0 {
        let Ok(request) = Request::read(&mut rest) else {
            return false;
        };
        request.write(&mut again).expect("memory takes all");
    } else {
        let Ok(reply) = Reply::read(&mut rest) else {
            return false;
        };
        reply.write(&mut again).expect("memory takes all");
        // A refusal's text may have had characters that are not printable.
        if matches!(reply, Reply::Outcome { .. } | Reply::Refusal(_)) {
            assert_eq!(Reply::read(&mut &again[..]).expect("it was written"), reply);
            return true;
        }
    }
    assert_eq!(again, before[..before.len() - rest.len()]);
    true
}

fn submissions() -> Vec<Vec<u8>> {
    let (federation, hash) = ([1; 32], [2; 32]);
    let statement = Statement {
        federation,
        round: 3,
        client: 4,
        words: 5,
        terms: hash,
        pieces: [hash; 3],
    };
    let requests = [
        Request::Join {
            federation,
            after: 1,
            model: true,
        },
        Request::Offer {
            statement,
            tickets: [hash; 2],
            signature: vec![48; 71],
        },
        Request::Outcome {
            federation,
            round: 3,
            content: false,
        },
        Request::Close {
            federation,
            round: 3,
        },
        Request::Attest {
            federation,
            nonce: hash,
        },
    ];
    let replies = [
        Reply::Task {
            round: 3,
            words: 5,
            milliseconds: 1000,
            model: hash,
            length: 9,
            terms: b"{}".to_vec(),
        },
        Reply::Go,
        Reply::Receipt {
            digest: hash,
            ticket: federation,
        },
        Reply::Outcome {
            hash,
            is_part: false,
            length: 9,
            own: "its norm".into(),
        },
        Reply::NotYet,
        Reply::Refusal("the round is over".into()),
        Reply::Closed,
        Reply::Evidence(Shown {
            made: 8,
            key: hash,
            policy: hash,
            program: hash,
            signature: [9; SIGNATURE],
            evidence: vec![10; 100],
        }),
    ];
    let mut seeds = Vec::new();
    for request in requests {
        let mut bytes = vec![0];
        request.write(&mut bytes).expect("memory takes all");
        seeds.push(bytes);
    }
    for reply in replies {
        let mut bytes = vec![1];
        reply.write(&mut bytes).expect("memory takes all");
        seeds.push(bytes);
    }
    seeds
}

fn takes_certificate(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let taken = certificates::check(text, "the certificate", false).is_ok();
    let period = net::tcp::period(text);
    // Only a client's certificate has further requirements.
    assert!(taken || certificates::check(text, "the certificate", true).is_err());
    period.inspect(|period| {
        assert!(!period.begins().is_empty() && !period.ends().is_empty());
    });
    taken
}

fn takes_configuration(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let parsed = Config::parse(text, Path::new("parties.toml"));
    let Ok(config) = parsed else {
        return false;
    };
    let parties = config.parties();
    assert!((2..=net::MOST_PARTIES).contains(&parties));
    assert_eq!(
        config
            .addresses(false)
            .expect("parties have addresses")
            .len(),
        parties
    );
    for party in 0..parties {
        assert!(
            config
                .listen_address(party)
                .expect("it is a party")
                .contains(':')
        );
        drop(config.correlations(party));
    }
    true
}
