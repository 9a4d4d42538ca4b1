//! Tests with hostile clients at the intake, and of the decoders on arbitrary input.

use super::evidence::{SIGNATURE, Shown};
use super::rate_floor;
use super::round::{ATTEMPTS, Add, Answer, LEAST, ROOM, Round, Submission, Terms};
use super::state::{MORE_REASONS, MOST_REASONS, Refused};
use super::statement::{Hash, Piece, STATEMENT, Statement, signer};
use super::ticket::{SHOWN, Tickets};
use super::wire::{LONGEST_BODY, Reply, Request, VERSION};
use super::{Clients, Federation, HELD, Intake, REST, SEED, SERVERS};
use crate::certificates::{self, Generated, Identity};
use crate::error::{Name, SetupFault};
use crate::tcp::{Listener, tls};
use proptest::prelude::*;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WORDS: u64 = 300;
const LONG: Duration = Duration::from_secs(60);

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Keys that server 1 shares with the next server, and with the previous one.
const KEYS: [Hash; 2] = [[2; 32], [1; 32]];

/// Returns the tickets that the servers would issue for a statement.
fn tickets(statement: &Statement) -> [Hash; SHOWN] {
    let unknown = [0; 32];
    [
        Tickets::new(0, [KEYS[1], unknown]).issue(statement),
        Tickets::new(2, [unknown, KEYS[0]]).issue(statement),
    ]
}

/// The intake of server 1, which gets the rest and a seed, and a client that sends arbitrary data.
struct Raw {
    federation: Federation,
    intake: Intake,
    client: Generated,
    /// Certificate of the server.
    server: String,
}

impl Raw {
    fn new() -> Self {
        Self::of(WORDS, None)
    }

    /// Opens a round with vectors of `words` words, which are added up if `add` is given.
    fn of(words: u64, add: Option<Add>) -> Self {
        let made = |number| certificates::generate(number, 1).unwrap();
        let servers: Vec<Generated> = (0..SERVERS).map(made).collect();
        let client = made(9);
        let pems: Vec<String> = servers
            .iter()
            .map(|server| server.certificate_pem.clone())
            .collect();
        let federation = Federation::new("test", &pems).unwrap();
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let clients = [client.certificate_pem.clone()];
        let intake = Intake::open(
            listener,
            &federation,
            1,
            &servers[1].key_pem,
            &Clients::Pinned(&clients),
            None,
        )
        .unwrap();
        let terms = Terms {
            number: 1,
            words,
            terms: vec![],
            model: Arc::from(vec![]),
            add,
            deadline: Instant::now() + LONG,
            closer: None,
        };
        intake.begin(terms, Tickets::new(1, KEYS)).unwrap();
        Self {
            federation,
            intake,
            client,
            server: pems[1].clone(),
        }
    }

    fn dial(&self) -> TcpStream {
        let socket = TcpStream::connect(self.intake.address()).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket
    }

    fn connect(&self) -> Stream {
        let identity = Identity {
            certificates: vec![self.client.certificate_pem.clone()],
            key: self.client.key_pem.clone(),
        };
        let server = self.federation.certificates[1].clone();
        let names = (Name::Server(1), Name::Client(0));
        let config = tls::client_config(server, &identity, names, None).unwrap();
        tls::handshake(&config, self.dial()).unwrap()
    }

    fn statement(&self, pieces: &[Piece; 3]) -> Statement {
        Statement {
            federation: self.federation.id(),
            round: 1,
            client: 0,
            words: pieces[REST].words.len() as u64,
            terms: *blake3::hash(&[]).as_bytes(),
            pieces: std::array::from_fn(|at| pieces[at].commitment()),
        }
    }

    fn offer(&self, stream: &mut Stream, pieces: &[Piece; 3]) -> io::Result<Reply> {
        let statement = self.statement(pieces);
        let signature = signer(&self.client.key_pem, "tacit federated certificates").unwrap();
        let signature = signature.sign(&statement.to_bytes()).unwrap();
        let offer = Request::Offer {
            tickets: tickets(&statement),
            statement,
            signature,
        };
        offer.write(stream)?;
        Reply::read(stream)
    }

    /// Checks that an honest submission still gets in, and counts as whole.
    fn takes_an_honest_one(&self) {
        let mut stream = self.connect();
        assert_eq!(self.offer(&mut stream, &pieces()).unwrap(), Reply::Go);
        send(&mut stream, &pieces()).unwrap();
        let digest = self.statement(&pieces()).digest();
        // The server that keeps the rest issues no ticket.
        let ticket = [0; 32];
        let receipt = Reply::Receipt { digest, ticket };
        assert_eq!(Reply::read(&mut stream).unwrap(), receipt);
        assert!(self.intake.wait(1, LONG).unwrap());
    }

    /// Waits until a client was refused for that reason.
    fn reason(&self, expected: &str) {
        let until = Instant::now() + LONG;
        let is_right = |(refused, _): &(Refused, u64)| refused.reason.contains(expected);
        while !self.intake.refused().iter().any(is_right) {
            assert!(Instant::now() < until, "{expected}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn pieces() -> [Piece; 3] {
    pieces_of(WORDS)
}

fn pieces_of(words: u64) -> [Piece; 3] {
    [SEED, words, SEED].map(|words| Piece {
        salt: [1, 2, 3, words],
        words: (0..words).collect(),
    })
}

fn send(stream: &mut Stream, pieces: &[Piece; 3]) -> io::Result<()> {
    for piece in HELD[1] {
        stream.write_all(bytemuck::cast_slice(&pieces[*piece].salt))?;
        stream.write_all(bytemuck::cast_slice(&pieces[*piece].words))?;
    }
    stream.flush()
}

#[test]
fn pieces_that_were_not_signed_are_refused_and_have_an_end() {
    let raw = Raw::new();
    for attempt in 0..ATTEMPTS - 1 {
        let mut stream = raw.connect();
        assert_eq!(raw.offer(&mut stream, &pieces()).unwrap(), Reply::Go);
        let mut other = pieces();
        match attempt {
            0 => other[1].words[WORDS as usize - 1] ^= 1,
            1 => other[1].salt[0] ^= 1,
            _ => other[2].words[1] ^= 1,
        }
        send(&mut stream, &other).unwrap();
        let Reply::Refusal(reason) = Reply::read(&mut stream).unwrap() else {
            panic!("the submission was accepted");
        };
        let what = if attempt < 2 { "its vector" } else { "a seed" };
        assert_eq!(
            reason,
            format!("the data for {what} does not match what the client signed")
        );
    }
    raw.takes_an_honest_one();
}

#[test]
fn of_one_client_no_two_submissions_are_on_their_way() {
    let raw = Raw::new();
    let mut earlier = raw.connect();
    assert_eq!(raw.offer(&mut earlier, &pieces()).unwrap(), Reply::Go);
    earlier.write_all(&[0; 100]).unwrap();
    earlier.flush().unwrap();
    // The earlier connection is still there when the next begins, which ends it.
    raw.takes_an_honest_one();
    assert!(Reply::read(&mut earlier).is_err());
    raw.reason("its connection ended in the middle of a submission");
}

#[test]
fn many_reasons_of_one_client_leave_room_for_others() {
    let raw = Raw::new();
    for round in 2..2 + 3 * MOST_REASONS as u64 {
        let mut statement = raw.statement(&pieces());
        statement.round = round;
        let signature = signer(&raw.client.key_pem, "tacit federated certificates").unwrap();
        let signature = signature.sign(&statement.to_bytes()).unwrap();
        let mut stream = raw.connect();
        let offer = Request::Offer {
            tickets: tickets(&statement),
            statement,
            signature,
        };
        offer.write(&mut stream).unwrap();
        assert!(matches!(
            Reply::read(&mut stream).unwrap(),
            Reply::Refusal(_)
        ));
    }
    let refused = raw.intake.refused();
    let more = |(refused, _): &&(Refused, u64)| refused.reason == MORE_REASONS;
    assert_eq!(refused.len(), MOST_REASONS + 1);
    assert_eq!(
        refused.iter().find(more).unwrap().1,
        2 * MOST_REASONS as u64
    );
    raw.takes_an_honest_one();
}

#[test]
fn unfinished_submissions_are_counted() {
    let raw = Raw::new();
    for _ in 0..ATTEMPTS {
        let mut stream = raw.connect();
        assert_eq!(raw.offer(&mut stream, &pieces()).unwrap(), Reply::Go);
        stream.write_all(&[0; 100]).unwrap();
        drop(stream.sock.shutdown(Shutdown::Both));
    }
    raw.reason("its connection ended in the middle of a submission");
    let Reply::Refusal(reason) = raw.offer(&mut raw.connect(), &pieces()).unwrap() else {
        panic!("the offer was accepted");
    };
    assert!(reason.contains("has begun 4 submissions"), "{reason}");
}

#[test]
fn a_submission_that_dies_half_way_can_be_begun_again() {
    let raw = Raw::new();
    let mut stream = raw.connect();
    assert_eq!(raw.offer(&mut stream, &pieces()).unwrap(), Reply::Go);
    stream.write_all(&[0; 100]).unwrap();
    drop(stream);
    raw.takes_an_honest_one();
}

#[test]
fn only_the_client_signs_for_itself() {
    let raw = Raw::new();
    let statement = raw.statement(&pieces());
    let right = signer(&raw.client.key_pem, "tacit federated certificates").unwrap();
    let right = right.sign(&statement.to_bytes()).unwrap();
    let another = certificates::generate(9, 1).unwrap();
    let another = signer(&another.key_pem, "tacit federated certificates").unwrap();
    let mut changed = statement.clone();
    changed.pieces[0][0] ^= 1;
    let cases = [
        (
            statement.clone(),
            another.sign(&statement.to_bytes()).unwrap(),
        ),
        (changed, right.clone()),
        (statement.clone(), vec![]),
        (statement, right[..right.len() - 1].to_vec()),
    ];
    for (statement, signature) in cases {
        let mut stream = raw.connect();
        let offer = Request::Offer {
            tickets: tickets(&statement),
            statement,
            signature,
        };
        offer.write(&mut stream).unwrap();
        let Reply::Refusal(reason) = Reply::read(&mut stream).unwrap() else {
            panic!("the offer was accepted");
        };
        assert!(
            reason.contains("is not signed by the key of client 0"),
            "{reason}"
        );
    }
    raw.takes_an_honest_one();
}

#[test]
fn who_keeps_rests_wants_none_without_tickets_of_both_others() {
    let raw = Raw::new();
    let statement = raw.statement(&pieces());
    let right = tickets(&statement);
    let mut of_another = statement.clone();
    of_another.pieces[2][31] ^= 1;
    let signature = signer(&raw.client.key_pem, "tacit federated certificates").unwrap();
    let signature = signature.sign(&statement.to_bytes()).unwrap();
    let cases = [
        [[0; 32]; SHOWN],
        [right[0], [0; 32]],
        [[0; 32], right[1]],
        [right[1], right[0]],
        tickets(&of_another),
    ];
    for tickets in cases {
        let mut stream = raw.connect();
        let offer = Request::Offer {
            statement: statement.clone(),
            tickets,
            signature: signature.clone(),
        };
        offer.write(&mut stream).unwrap();
        let Reply::Refusal(reason) = Reply::read(&mut stream).unwrap() else {
            panic!("the offer was accepted");
        };
        assert!(reason.contains("has no tickets"), "{reason}");
    }
    // Refused offers do not count as attempts: there were more of them than attempts are allowed.
    assert!(cases.len() > ATTEMPTS as usize);
    raw.takes_an_honest_one();
}

fn add(into: &mut [u64], words: &[u64]) {
    for (into, word) in into.iter_mut().zip(words) {
        *into = into.wrapping_add(*word);
    }
}

/// Returns a round of a server about the sum of vectors, and a function that makes submissions.
fn summing(server: usize, words: u64) -> (Round, impl Fn(usize, u64) -> Submission) {
    let terms = Terms {
        number: 1,
        words,
        terms: vec![],
        model: Arc::from(vec![]),
        add: Some(add),
        deadline: Instant::now() + LONG,
        closer: None,
    };
    let round = Round::new(terms, Tickets::new(server, KEYS), [7; 32], server);
    let submission = move |client: usize, first: u64| Submission {
        statement: Statement {
            federation: [7; 32],
            round: 1,
            client: client as u64,
            words,
            terms: *blake3::hash(&[]).as_bytes(),
            pieces: [[first as u8; 32]; 3],
        },
        pieces: HELD[server]
            .iter()
            .map(|piece| Piece {
                salt: [0; 4],
                words: (0..super::words_of(*piece, 3))
                    .map(|at| first.wrapping_mul(at + 1))
                    .collect(),
            })
            .collect(),
    };
    (round, submission)
}

#[test]
fn rests_are_added_up_as_they_come_and_not_kept() {
    let now = Instant::now();
    let (mut round, submission) = summing(1, 3);
    for (client, first) in [(0, 5), (9, u64::MAX), (4, 1 << 63)] {
        let sent = submission(client, first);
        let shown = tickets(&sent.statement);
        assert_eq!(
            round.offer(client, &sent.statement, &shown, now),
            Ok(Answer::Wanted)
        );
        round.take(client, submission(client, first), now).unwrap();
        round.came();
        // A repeated submission changes nothing; a different one is refused.
        round.take(client, submission(client, first), now).unwrap();
        assert!(
            round
                .take(client, submission(client, first ^ 2), now)
                .unwrap_err()
                .contains("something else")
        );
    }
    // Their memory is reused for later vectors.
    assert_eq!([round.memory().len(), round.memory().len()], [3, 3]);
    let (gathered, _) = round.into_gathered();
    let first = 4_u64.wrapping_add(1 << 63);
    let expected = [1, 2, 3].map(|times| first.wrapping_mul(times));
    assert_eq!(gathered.sum.as_deref(), Some(&expected[..]));
    for submission in gathered.whole.values() {
        let lengths = submission.pieces.iter().map(|piece| piece.words.len());
        assert!(lengths.eq([0, SEED as usize]));
    }
    // The other servers keep seeds.
    let (mut round, submission) = summing(2, 3);
    round.take(0, submission(0, 5), now).unwrap();
    let (gathered, _) = round.into_gathered();
    assert!(gathered.sum.is_none());
    assert!(
        gathered.whole[&0]
            .pieces
            .iter()
            .all(|piece| piece.words.len() == SEED as usize)
    );
}

#[test]
fn so_many_rests_are_on_their_way_at_a_time() {
    let now = Instant::now();
    // Exactly six vectors fit; one word more than six can have; and a vector longer than all the
    // room.
    for (words, most) in [
        (ROOM / 8 / 6, 6),
        (ROOM / 8 / 6 + 1, 5),
        (ROOM / 8 + 1, LEAST),
    ] {
        let (mut round, submission) = summing(1, words);
        let mut offer = |client: usize| {
            let statement = submission(client, 0).statement;
            let answer = round.offer(client, &statement, &tickets(&statement), now);
            if answer == Ok(Answer::Full) {
                round.came();
                let wanted = round.offer(client, &statement, &tickets(&statement), now);
                assert_eq!(wanted, Ok(Answer::Wanted));
            }
            answer
        };
        for client in 0..most {
            assert_eq!(offer(client as usize), Ok(Answer::Wanted), "{words} words");
        }
        assert_eq!(offer(most as usize), Ok(Answer::Full), "{words} words");
    }
}

#[test]
fn who_holds_a_place_keeps_a_pace() {
    const MANY: u64 = 1 << 20;
    // Sends a byte now and then, for longer than a rate is measured.
    let trickle = |stream: &mut Stream| {
        let until = Instant::now() + 3 * rate_floor::WINDOW;
        while Instant::now() < until {
            stream.write_all(&[0])?;
            std::thread::sleep(rate_floor::WINDOW / 10);
        }
        stream.flush()
    };
    let raw = Raw::of(MANY, Some(add));
    let mut stream = raw.connect();
    let all = pieces_of(MANY);
    assert_eq!(raw.offer(&mut stream, &all).unwrap(), Reply::Go);
    // The client may see the connection end before it reads the reason.
    let sent = trickle(&mut stream);
    raw.reason("submit again over a faster connection");
    drop(sent);
    // The place is free, and a submission that keeps the rate is taken.
    let mut stream = raw.connect();
    assert_eq!(raw.offer(&mut stream, &all).unwrap(), Reply::Go);
    send(&mut stream, &all).unwrap();
    assert!(matches!(
        Reply::read(&mut stream).unwrap(),
        Reply::Receipt { .. }
    ));

    // If places are not limited, nobody has to wait, and no slow submission is refused.
    let raw = Raw::of(MANY, None);
    let mut stream = raw.connect();
    assert_eq!(raw.offer(&mut stream, &all).unwrap(), Reply::Go);
    trickle(&mut stream).unwrap();
    assert!(raw.intake.refused().is_empty());
}

#[test]
fn strangers_and_garbage_do_not_disturb() {
    let raw = Raw::new();
    // Not TLS; nothing at all; garbage within TLS; a body whose announced length is too long.
    raw.dial().write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    drop(raw.dial());
    let silent = raw.dial();
    let mut announced = b"tcd\0\x02\0\0\0\xff\xff\xff\xff\0\0\0\0".to_vec();
    announced[3] = VERSION;
    for bytes in [&b"garbage of more than a head"[..], &announced] {
        let mut stream = raw.connect();
        stream.write_all(bytes).unwrap();
        // More than a connection holds of the announced data.
        stream.write_all(&vec![0; 1 << 24]).unwrap();
        let Reply::Refusal(reason) = Reply::read(&mut stream).unwrap() else {
            panic!("the garbage was not refused");
        };
        assert_eq!(
            reason,
            "it sent a message that no client or server of tacit sends"
        );
    }
    raw.takes_an_honest_one();
    drop(silent);
}

/// Version 1 of the protocol had the same heads, and fewer fields and kinds.
#[test]
fn unlike_versions_say_so_at_both_ends() {
    let raw = Raw::new();
    let question = Request::Join {
        federation: raw.federation.id(),
        after: 0,
        model: false,
    };
    let mut bytes = written(|to| question.write(to));
    assert_eq!(bytes[3], VERSION);
    bytes[3] = 1;
    let mut stream = raw.connect();
    stream.write_all(&bytes).unwrap();
    let said = format!(
        "it speaks version 1 of the protocol between clients and servers, but this end speaks \
         version {VERSION}: run the same release of tacit at all clients and servers"
    );
    let reply = Reply::read(&mut stream).unwrap();
    assert_eq!(reply, Reply::Refusal(said.clone()));
    let mut bytes = written(|to| Reply::NotYet.write(to));
    bytes[3] = 1;
    let error = Reply::read(&mut &bytes[..]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert_eq!(tls::reason(&error).to_string(), said);
    raw.takes_an_honest_one();
}

#[test]
fn a_client_has_so_many_connections() {
    let raw = Raw::new();
    let question = Request::Join {
        federation: raw.federation.id(),
        after: 0,
        model: false,
    };
    let mut streams: Vec<Stream> = Vec::new();
    for _ in 0..4 {
        let mut stream = raw.connect();
        question.write(&mut stream).unwrap();
        assert!(matches!(
            Reply::read(&mut stream).unwrap(),
            Reply::Task { .. }
        ));
        streams.push(stream);
    }
    let mut fifth = raw.connect();
    assert_eq!(
        Reply::read(&mut fifth).unwrap(),
        Reply::Refusal("too many connections of one client; close some".to_owned())
    );
    streams.clear();
    raw.takes_an_honest_one();
}

#[test]
fn without_a_certificate_nobody_is_heard() {
    let raw = Raw::new();
    let stranger = certificates::generate(9, 1).unwrap();
    let day = 86_400;
    let old = certificates::generate_for_period(9, day, 2 * day).unwrap();
    for own in [stranger, old] {
        let identity = Identity {
            certificates: vec![own.certificate_pem],
            key: own.key_pem,
        };
        let names = (Name::Server(1), Name::Client(0));
        let server = raw.federation.certificates[1].clone();
        let config = tls::client_config(server, &identity, names, None).unwrap();
        let heard =
            tls::handshake(&config, raw.dial()).and_then(|mut stream| stream.read_exact(&mut [0]));
        let refusal = tls::refusal(&heard.unwrap_err());
        assert_eq!(refusal, Some(SetupFault::Refused));
        raw.reason(
            "it presented a certificate that belongs to no client; put each client's current \
             certificate",
        );
    }
    let config = tls::notice_config(&raw.server, None).unwrap();
    drop(tls::handshake(&config, raw.dial()).and_then(|mut stream| stream.read_exact(&mut [0])));
    raw.reason("it presented no certificate, and each client must present its own");
    raw.dial().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    raw.reason("it does not speak TLS as clients do");
    raw.takes_an_honest_one();
}

fn hashes() -> impl Strategy<Value = Hash> {
    any::<Hash>()
}

fn requests() -> impl Strategy<Value = Request> {
    let statement = (hashes(), any::<[u64; 3]>(), hashes(), any::<[Hash; 3]>()).prop_map(
        |(federation, [round, client, words], terms, pieces)| Statement {
            federation,
            round,
            client,
            words,
            terms,
            pieces,
        },
    );
    let signature = prop::collection::vec(any::<u8>(), 0..80);
    let tickets = any::<[Hash; SHOWN]>();
    prop_oneof![
        (hashes(), any::<u64>(), any::<bool>()).prop_map(|(federation, after, model)| {
            Request::Join {
                federation,
                after,
                model,
            }
        }),
        (statement, tickets, signature).prop_map(|(statement, tickets, signature)| {
            Request::Offer {
                statement,
                tickets,
                signature,
            }
        }),
        (hashes(), any::<u64>(), any::<bool>()).prop_map(|(federation, round, content)| {
            Request::Outcome {
                federation,
                round,
                content,
            }
        }),
        (hashes(), any::<u64>())
            .prop_map(|(federation, round)| Request::Close { federation, round }),
        (hashes(), hashes()).prop_map(|(federation, nonce)| Request::Attest { federation, nonce }),
    ]
}

fn evidence() -> impl Strategy<Value = Reply> {
    let evidence = prop::collection::vec(any::<u8>(), 0..200);
    (any::<u64>(), [hashes(), hashes(), hashes()], evidence).prop_map(|(made, keys, evidence)| {
        let [key, policy, program] = keys;
        Reply::Evidence(Shown {
            made,
            key,
            policy,
            program,
            signature: [7; SIGNATURE],
            evidence,
        })
    })
}

fn replies() -> impl Strategy<Value = Reply> {
    let terms = prop::collection::vec(any::<u8>(), 0..200);
    let task = (any::<[u32; 4]>(), hashes(), terms).prop_map(|(numbers, model, terms)| {
        let [round, words, milliseconds, length] = numbers.map(u64::from);
        Reply::Task {
            round,
            words: words >> 6,
            milliseconds,
            model,
            length: length >> 2,
            terms,
        }
    });
    prop_oneof![
        task,
        Just(Reply::Go),
        (hashes(), hashes()).prop_map(|(digest, ticket)| Reply::Receipt { digest, ticket }),
        (hashes(), any::<bool>(), 0_u64..1 << 30, "[a-zé ]{0,200}").prop_map(
            |(hash, is_part, length, own)| {
                Reply::Outcome {
                    hash,
                    is_part,
                    length,
                    own,
                }
            }
        ),
        Just(Reply::NotYet),
        Just(Reply::Closed),
        evidence(),
        "[a-zé ]{0,200}".prop_map(Reply::Refusal),
    ]
}

fn written(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn what_is_written_is_read(request in requests(), reply in replies()) {
        let bytes = written(|to| request.write(to));
        prop_assert_eq!(Request::read(&mut &bytes[..]).unwrap(), request);
        for end in 0..bytes.len() {
            prop_assert!(Request::read(&mut &bytes[..end]).is_err());
        }
        let bytes = written(|to| reply.write(to));
        prop_assert_eq!(Reply::read(&mut &bytes[..]).unwrap(), reply);
        for end in 0..bytes.len() {
            prop_assert!(Reply::read(&mut &bytes[..end]).is_err());
        }
    }

    #[test]
    fn changed_bytes_are_read_as_something_that_is_written_so(
        request in requests(), reply in replies(), at in any::<prop::sample::Index>(), change in 1_u8..
    ) {
        let mut bytes = written(|to| request.write(to));
        let place = at.index(bytes.len());
        bytes[place] ^= change;
        if let Ok(read) = Request::read(&mut &bytes[..]) {
            let again = written(|to| read.write(to));
            prop_assert_eq!(&again[..], &bytes[..again.len()]);
        }
        let mut bytes = written(|to| reply.write(to));
        let place = at.index(bytes.len());
        bytes[place] ^= change;
        if let Ok(read) = Reply::read(&mut &bytes[..]) {
            let again = written(|to| read.write(to));
            prop_assert!(again.len() <= bytes.len());
        }
    }

    #[test]
    fn anything_at_all_is_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        kind in 0_u8..10,
    ) {
        drop(Request::read(&mut &bytes[..]));
        drop(Reply::read(&mut &bytes[..]));
        // The bodies themselves are tested under a valid head.
        let mut headed = [&b"tcd"[..], &[VERSION]].concat();
        headed.extend([kind, 0, 0, 0]);
        headed.extend((bytes.len() as u64).to_le_bytes());
        headed.extend(&bytes);
        drop(Request::read(&mut &headed[..]));
        drop(Reply::read(&mut &headed[..]));
    }

    #[test]
    fn long_bodies_are_refused_before_they_come(
        kind in any::<u8>(),
        length in (LONGEST_BODY as u64 + 1)..,
    ) {
        let mut head = [&b"tcd"[..], &[VERSION]].concat();
        head.extend([kind, 0, 0, 0]);
        head.extend(length.to_le_bytes());
        let kinds = [Request::read(&mut &head[..]).map(drop), Reply::read(&mut &head[..]).map(drop)];
        for read in kinds {
            prop_assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}

#[test]
fn statements_have_the_length_that_is_said() {
    let statement = Raw::new().statement(&pieces());
    assert_eq!(statement.to_bytes().len(), STATEMENT);
}
