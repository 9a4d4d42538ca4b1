//! Tests of the clients' intake over real connections: what is accepted, and what is refused and
//! why.

mod links;

use links::SetUp;
use net::certificates::generate_for_period;
use net::intake::round::Terms;
use net::intake::statement::{Hash, Piece, Statement};
use net::intake::ticket::Tickets;
use net::intake::{Client, Clients, Federation, HELD, Intake, KEEPER, REST, SEED, SERVERS, Task};
use net::tcp::Listener;
use net::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(600);
const WORDS: u64 = 5000;

struct World {
    federation: Federation,
    addresses: Vec<String>,
    clients: SetUp,
    intakes: Vec<Intake>,
}

impl World {
    fn new(clients: usize) -> Self {
        Self::of(SetUp::new(clients))
    }

    /// Makes a federation with these clients.
    fn of(clients: SetUp) -> Self {
        let servers = SetUp::new(SERVERS);
        let federation = Federation::new("test", &servers.certificates).unwrap();
        let open = |server| {
            let listener = Listener::bind("127.0.0.1:0").unwrap();
            let key = &servers.keys[server];
            Intake::open(
                listener,
                &federation,
                server,
                key,
                &Clients::Pinned(&clients.certificates),
                None,
            )
            .unwrap()
        };
        let intakes: Vec<Intake> = (0..SERVERS).map(open).collect();
        Self {
            addresses: intakes
                .iter()
                .map(|intake| intake.address().to_owned())
                .collect(),
            federation,
            clients,
            intakes,
        }
    }

    fn begin(&self, number: u64, time: Duration) {
        self.begin_with(&terms(number, time));
    }

    fn begin_with(&self, terms: &Terms) {
        for server in 0..SERVERS {
            self.begin_at(server, terms.clone());
        }
    }

    fn begin_at(&self, server: usize, terms: Terms) {
        // Each server shares a key with the next one.
        let key = |server: usize| [(server % SERVERS) as u8; 32];
        let tickets = Tickets::new(server, [key(server), key(server + SERVERS - 1)]);
        self.intakes[server].begin(terms, tickets).unwrap();
    }

    fn client(&self, number: usize) -> Client {
        self.client_as(number, number)
    }

    /// Makes a client that claims another number than that of its certificate.
    fn client_as(&self, certificate: usize, number: usize) -> Client {
        let (pem, key) = (
            &self.clients.certificates[certificate],
            &self.clients.keys[certificate],
        );
        Client::new(
            &self.federation,
            number,
            pem,
            key,
            &self.addresses,
            None,
            None,
        )
        .unwrap()
    }

    /// Returns the clients that each server has whole.
    fn whole(&self) -> Vec<Vec<usize>> {
        let of = |intake: &Intake| intake.end().unwrap().whole.into_keys().collect();
        self.intakes.iter().map(of).collect()
    }
}

fn terms(number: u64, time: Duration) -> Terms {
    Terms {
        number,
        words: WORDS,
        terms: b"terms".to_vec(),
        model: Arc::from(&b"a model"[..]),
        add: None,
        deadline: Instant::now() + time,
        closer: None,
    }
}

fn pieces(words: u64) -> [Piece; 3] {
    [SEED, words, SEED].map(|words| Piece {
        salt: [1, 2, 3, words],
        words: (0..words).collect(),
    })
}

fn refused(result: Result<Hash>) -> String {
    match result {
        Err(Error::Refused { reason, .. }) => reason,
        other => panic!("{:?}", other.map(|_| "taken")),
    }
}

#[test]
fn three_clients_hand_in_their_vectors() {
    let world = World::new(3);
    let joined = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.client(0).join(0, LONG).unwrap());
        world.begin(7, LONG);
        waiting.join().unwrap()
    });
    assert_eq!((joined.round, joined.words), (7, WORDS));
    assert_eq!(
        (&joined.terms[..], &joined.model[..]),
        (&b"terms"[..], &b"a model"[..])
    );
    let mut digests = Vec::new();
    for number in 0..3 {
        let client = world.client(number);
        let task = client.join(0, LONG).unwrap();
        let before = client.traffic();
        digests.push(client.submit(&task, &pieces(WORDS)).unwrap());
        let after = client.traffic();
        // The client sends the vector once, and some bytes that go with it.
        let sent = after.0 - before.0 - 8 * WORDS;
        assert!((1..4096).contains(&sent), "{sent}");
        assert!((1..4096).contains(&(after.1 - before.1)));
    }
    for (server, intake) in world.intakes.iter().enumerate() {
        assert!(intake.wait(3, LONG).unwrap());
        let gathered = intake.end().unwrap();
        assert!(gathered.sum.is_none());
        for (number, submission) in gathered.whole {
            assert_eq!(submission.statement.digest(), digests[number]);
            let sent = pieces(WORDS);
            let held = HELD[server].iter().map(|piece| &sent[*piece].words);
            assert!(submission.pieces.iter().map(|piece| &piece.words).eq(held));
        }
        intake
            .tell(7, Ok(b"a result"), false, BTreeMap::new())
            .unwrap();
        assert_eq!(intake.refused(), []);
    }
    for number in 0..3 {
        let mut told = [1; 8];
        let outcome = world.client(number).outcome(7, LONG, &mut told).unwrap();
        assert!(outcome.parts.is_empty() && outcome.own.is_empty() && told == *b"a result");
        match world.client(number).outcome(7, LONG, &mut told[1..]) {
            Err(Error::Peer { party, fault, .. }) => {
                assert_eq!(
                    (party, fault.to_string()),
                    (number, "it sent a result of the wrong size".to_owned())
                );
            }
            other => panic!("{other:?}"),
        }
    }
    // Each server reports its own part.
    for (server, intake) in world.intakes.iter().enumerate() {
        intake
            .tell(7, Ok(&vec![server as u8; server]), true, BTreeMap::new())
            .unwrap();
    }
    let told = world.client(0).outcome(7, LONG, &mut []).unwrap();
    assert_eq!(told.parts, [vec![], vec![1], vec![2, 2]]);
    // A server that reports something else than the others is named, by every client that asks it.
    for (server, intake) in world.intakes.iter().enumerate() {
        let content = if server == 1 { b"lies" } else { b"true" };
        intake.tell(7, Ok(content), false, BTreeMap::new()).unwrap();
    }
    for number in 0..3 {
        match world
            .client(number)
            .outcome(7, LONG, &mut [0; 4])
            .err()
            .unwrap()
        {
            Error::Peer {
                party: 1, fault, ..
            } => {
                assert!(
                    fault
                        .to_string()
                        .contains("something else about the round than the other servers")
                );
            }
            other => panic!("{other}"),
        }
    }
    let all: Vec<usize> = (0..3).collect();
    world.intakes[0].see_off(&all, LONG).unwrap();
    for intake in &world.intakes {
        intake
            .tell(7, Err("it came to nothing"), false, BTreeMap::new())
            .unwrap();
    }
    let nothing = world.client(0).outcome(7, LONG, &mut []).map(|_| [0; 32]);
    assert_eq!(refused(nothing), "it came to nothing");
}

#[test]
fn who_was_refused_is_told_so_and_nobody_else() {
    let world = World::new(3);
    world.begin(7, LONG);
    let own = || BTreeMap::from([(1, "norm".to_owned())]);
    for intake in &world.intakes {
        intake.end().unwrap();
        intake.tell(7, Ok(b"a result"), false, own()).unwrap();
    }
    for (number, right) in ["", "norm", ""].iter().enumerate() {
        let outcome = world.client(number).outcome(7, LONG, &mut [0; 8]).unwrap();
        assert_eq!(outcome.own, *right);
    }
    for intake in &world.intakes {
        intake.tell(7, Err("too few"), false, own()).unwrap();
    }
    for (number, right) in ["too few", "too few; norm", "too few"].iter().enumerate() {
        let nothing = world.client(number).outcome(7, LONG, &mut []);
        assert_eq!(refused(nothing.map(|_| [0; 32])), *right);
    }
    // A server that alone reports this is named.
    for (server, intake) in world.intakes.iter().enumerate() {
        let own = if server == 2 { own() } else { BTreeMap::new() };
        intake.tell(7, Ok(b"a result"), false, own).unwrap();
    }
    match world.client(1).outcome(7, LONG, &mut [0; 8]) {
        Err(Error::Peer { party: 2, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_coordinator_alone_ends_a_round_before_its_deadline() {
    let world = World::new(3);
    world.begin_with(&Terms {
        closer: Some(2),
        ..terms(7, LONG)
    });
    let client = world.client(0);
    let task = client.join(0, LONG).unwrap();
    let close = |number: usize, round: u64| {
        let closed = world.client(number).close(round, LONG);
        closed.map(|()| [0; 32])
    };
    let reason = refused(close(1, 7));
    assert!(
        reason.contains("client 1 is not the coordinator"),
        "{reason}"
    );
    assert!(refused(close(2, 8)).contains("round 8 is not open"));
    let waits = |most: Duration| -> Vec<bool> {
        let wait = |intake: &Intake| intake.wait(2, most).unwrap();
        world.intakes.iter().map(wait).collect()
    };
    assert_eq!(waits(SHORT), [false; 3]);
    // Closing twice is the same as once, and a submission before the round ends counts.
    let before = Instant::now();
    close(2, 7).unwrap();
    close(2, 7).unwrap();
    client.submit(&task, &pieces(WORDS)).unwrap();
    assert_eq!(waits(LONG), [true; 3]);
    assert!(before.elapsed() < LONG / 2);
    assert!(world.intakes.iter().all(Intake::is_closed));
    assert_eq!(world.whole(), vec![vec![0]; 3]);
    // A late request to close is accepted, and the next round stays open.
    close(2, 7).unwrap();
    world.begin(9, LONG);
    close(2, 7).unwrap();
    assert!(!world.intakes.iter().any(Intake::is_closed));
    assert!(refused(close(2, 9)).contains("client 2 is not the coordinator"));
    assert_eq!(waits(SHORT), [false; 3]);
}

#[test]
fn the_same_again_counts_once_and_something_else_is_refused() {
    let world = World::new(1);
    world.begin(1, LONG);
    let client = world.client(0);
    let task = client.join(0, LONG).unwrap();
    let first = client.submit(&task, &pieces(WORDS)).unwrap();
    assert_eq!(client.submit(&task, &pieces(WORDS)).unwrap(), first);
    let mut other = pieces(WORDS);
    other[1].words[7] ^= 1;
    let reason = refused(client.submit(&task, &other));
    assert!(reason.contains("has submitted something else"), "{reason}");
    assert_eq!(world.whole(), [[0], [0], [0]]);
}

#[test]
fn what_does_not_fit_the_round_is_refused_and_the_round_goes_on() {
    let world = World::new(3);
    world.begin(4, LONG);
    let client = world.client(0);
    let task = client.join(0, LONG).unwrap();
    let another = |change: &dyn Fn(&mut Task)| {
        let mut changed = task.clone();
        change(&mut changed);
        changed
    };
    for (changed, words, expected) in [
        (
            another(&|task| task.round = 3),
            WORDS,
            "is for round 3, but round 4 is open",
        ),
        (
            another(&|task| task.round = 5),
            WORDS,
            "is for round 5, but round 4 is open",
        ),
        (
            another(&|task| task.words = 9),
            9,
            "has 9 words, but round 4 needs 5000",
        ),
        (
            another(&|task| task.terms.push(0)),
            WORDS,
            "is for other terms",
        ),
    ] {
        let reason = refused(client.submit(&changed, &pieces(words)));
        assert!(reason.contains(expected), "{reason}");
    }
    let reason = refused(world.client_as(1, 2).submit(&task, &pieces(WORDS)));
    assert!(
        reason.contains("is from client 2, but the certificate belongs to client 1"),
        "{reason}"
    );
    let elsewhere = Federation::new("elsewhere", &SetUp::new(3).certificates);
    assert_ne!(elsewhere.unwrap().id(), world.federation.id());
    world.client(2).submit(&task, &pieces(WORDS)).unwrap();
    assert_eq!(world.whole(), [[2], [2], [2]]);
    let (refusal, times) = world.intakes[0].refused().swap_remove(0);
    assert_eq!((refusal.client, times), (Some(0), 1));
}

#[test]
fn a_client_of_another_federation_is_told_so() {
    let world = World::new(1);
    world.begin(1, LONG);
    // These are the same servers under another name.
    let mut other = World::new(1);
    other.federation = world.federation.clone();
    other.addresses = world.addresses.clone();
    let error = other.client(0).join(0, LONG).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("it refused this party's certificate"),
        "{error}"
    );
    assert!(!world.intakes[0].refused().is_empty());
}

/// An expired certificate that the servers know is refused, and clients with other certificates
/// continue.
#[test]
fn a_client_whose_certificate_is_not_valid_now_is_refused() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64;
    let day = 86_400;
    let mut clients = SetUp::new(3);
    for (number, from, to) in [
        (0, now - 3 * day, now - day),
        (1, now + day, now + 3 * day),
        (2, now - day, now + day),
    ] {
        let made = generate_for_period(number, from, to).unwrap();
        (clients.certificates[number], clients.keys[number]) = (made.certificate_pem, made.key_pem);
    }
    let world = World::of(clients);
    world.begin(1, LONG);
    for (number, why) in [
        (0, "the certificate of client 0 expired at"),
        (1, "the certificate of client 1 is valid only from"),
    ] {
        let error = world.client(number).join(0, SHORT).err().unwrap();
        let said = error.to_string();
        let named = format!("it refused this party's certificate: {why}");
        assert!(said.contains(&named), "{said}");
    }
    let client = world.client(2);
    let task = client.join(0, LONG).unwrap();
    client.submit(&task, &pieces(WORDS)).unwrap();
    assert_eq!(world.whole(), vec![vec![2]; SERVERS]);
    for intake in &world.intakes {
        let reasons: Vec<String> = intake
            .refused()
            .into_iter()
            .map(|(it, _)| it.reason)
            .collect();
        for said in ["client 0 expired at", "client 1 is valid only from"] {
            let named = format!("the certificate of {said}");
            assert!(
                reasons.iter().any(|it| it.starts_with(&named)),
                "{reasons:?}"
            );
        }
        assert!(reasons.iter().all(|it| !it.contains("client 2")));
    }
}

#[test]
fn where_an_intake_was_closed_another_one_is_opened_at_once() {
    let (servers, clients) = (SetUp::new(SERVERS), SetUp::new(1));
    let federation = Federation::new("test", &servers.certificates).unwrap();
    let mut address = "127.0.0.1:0".to_owned();
    for _ in 0..20 {
        let listener = Listener::bind(&address).unwrap();
        let key = &servers.keys[0];
        let intake = Intake::open(
            listener,
            &federation,
            0,
            key,
            &Clients::Pinned(&clients.certificates),
            None,
        )
        .unwrap();
        intake.address().clone_into(&mut address);
    }
}

#[test]
fn who_is_late_is_told_so() {
    let world = World::new(2);
    world.begin(1, SHORT);
    let (early, late) = (world.client(0), world.client(1));
    let task = early.join(0, LONG).unwrap();
    late.join(0, LONG).unwrap();
    early.submit(&task, &pieces(WORDS)).unwrap();
    for intake in &world.intakes {
        assert!(intake.wait(2, LONG).unwrap());
    }
    let reason = refused(late.submit(&task, &pieces(WORDS)));
    assert!(
        reason.contains("the deadline of round 1 has passed"),
        "{reason}"
    );
    assert_eq!(world.whole(), [[0], [0], [0]]);
    assert!(world.intakes.iter().all(|intake| intake.missing() == [1]));
    // The same holds however late the submission is.
    let task = Task {
        deadline: task.deadline - LONG,
        ..task
    };
    let reason = refused(late.submit(&task, &pieces(WORDS)));
    assert!(
        reason.contains("round 1 is not open at this server"),
        "{reason}"
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let mut world = World::new(1);
    world.begin(1, SHORT);
    let client = world.client(0);
    let task = client.join(0, LONG).unwrap();
    // Server 2 has gone. The two others have the submission, and the servers will not count it.
    let gone = world.intakes.remove(2);
    gone.end().unwrap();
    drop(gone);
    match client.submit(&task, &pieces(WORDS)).err().unwrap() {
        Error::Peer { party: 2, step, .. } => assert_eq!(step, "submit"),
        other => panic!("{other}"),
    }
    // The keeper of the rest was not asked to take it, since not both others have their part.
    let nobody: [usize; 0] = [];
    assert_eq!(world.whole(), [&[0][..], &nobody]);
}

/// Vectors are read and hashed in chunks of 2^14 words, including the four of the salt.
#[test]
fn vectors_of_any_length_are_what_was_signed() {
    let world = World::new(1);
    let client = world.client(0);
    let lengths = [1, 16379, 16380, 16381, 16384, 3 * 16384 - 4, 50000];
    for (words, round) in lengths.into_iter().zip(1..) {
        let terms = terms(round, LONG);
        world.begin_with(&Terms { words, ..terms });
        let task = client.join(round - 1, LONG).unwrap();
        client.submit(&task, &pieces(words)).unwrap();
        for (server, intake) in world.intakes.iter().enumerate() {
            for (at, piece) in intake.end().unwrap().whole[&0].pieces.iter().enumerate() {
                let sent = &pieces(words)[HELD[server][at]].words;
                assert_eq!(&piece.words, sent, "{words} words");
            }
        }
    }
}

/// The error does not say that servers are silent, which have nothing to report yet.
#[test]
fn who_waits_for_less_time_than_a_round_takes_is_told_so() {
    let world = World::new(1);
    let client = world.client(0);
    let join = client.join(0, SHORT).map(|_| "told of a round");
    world.begin(1, LONG);
    client.join(0, LONG).unwrap();
    let result = client.outcome(1, SHORT, &mut []).map(|_| "told a result");
    for (step, found, said) in [
        (
            "join",
            join,
            "it announced no new round within the timeout; one may not have begun yet: wait longer",
        ),
        (
            "result",
            result,
            "it sent no result within the timeout; the round may not be over yet: wait longer",
        ),
    ] {
        match found {
            Err(Error::Peer {
                step: at, fault, ..
            }) => assert_eq!((&*at, &*fault.to_string()), (step, said)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn rests_are_added_up_where_only_their_sum_counts() {
    const CLIENTS: usize = 6;
    let world = World::new(CLIENTS);
    world.begin_with(&Terms {
        add: Some(|into, words| {
            for (into, word) in into.iter_mut().zip(words) {
                *into = into.wrapping_add(*word);
            }
        }),
        ..terms(1, LONG)
    });
    // All clients submit at the same time.
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let client = world.client(number);
            scope.spawn(move || {
                let task = client.join(0, LONG).unwrap();
                let mut pieces = pieces(WORDS);
                pieces[REST].words[0] = number as u64 + 1;
                client.submit(&task, &pieces).unwrap();
                assert!(client.traffic().0 > 8 * WORDS);
            });
        }
    });
    for (server, intake) in world.intakes.iter().enumerate() {
        assert!(intake.wait(CLIENTS, LONG).unwrap());
        let gathered = intake.end().unwrap();
        assert_eq!(gathered.whole.len(), CLIENTS);
        let expected = (server == KEEPER).then(|| {
            let mut sum: Vec<u64> = (0..WORDS).map(|at| at * CLIENTS as u64).collect();
            sum[0] = 21;
            sum
        });
        assert_eq!(gathered.sum, expected);
    }
}

#[test]
fn vectors_lie_where_those_lay_whose_memory_was_lent() {
    let world = World::new(2);
    let keeper = &world.intakes[KEEPER];
    let hand_in = |round: u64, lacking: usize| {
        assert_eq!(keeper.lacks(), lacking);
        world.begin(round, LONG);
        for number in 0..2 {
            let client = world.client(number);
            let task = client.join(round - 1, LONG).unwrap();
            client.submit(&task, &pieces(WORDS)).unwrap();
        }
        let rest = HELD[KEEPER].iter().position(|piece| *piece == REST);
        let gathered = keeper.end().unwrap().whole.into_values();
        let held =
            gathered.map(|mut submission| submission.pieces.swap_remove(rest.unwrap()).words);
        let held: Vec<Vec<u64>> = held.collect();
        assert!(held.iter().all(|words| *words == pieces(WORDS)[REST].words));
        assert!(
            world
                .intakes
                .iter()
                .all(|intake| intake.refused().is_empty())
        );
        held
    };
    let first = hand_in(1, 0);
    // The lent memory has arbitrary contents, and no more of it is used than the round gave out.
    let mut lent = vec![vec![u64::MAX; WORDS as usize]; 5];
    let places: Vec<_> = lent[..2].iter().map(|words| words.as_ptr()).collect();
    lent.extend(first);
    keeper.lend(lent);
    let second = hand_in(2, 0);
    assert!(second.iter().all(|words| places.contains(&words.as_ptr())));
    // Memory that is too short or too long is not used.
    keeper.lend(vec![
        vec![1; WORDS as usize - 1],
        vec![1; WORDS as usize + 1],
    ]);
    hand_in(3, 0);
    assert_eq!(
        [0, 1, 2].map(|server| world.intakes[server].lacks()),
        [0, 2, 0]
    );
    keeper.lend(Vec::new());
    assert_eq!(keeper.lacks(), 0);
}

#[test]
fn who_waits_for_a_server_that_has_gone_hears_why_from_the_others() {
    let mut world = World::new(1);
    world.begin(1, LONG);
    let client = world.client(0);
    client.join(0, LONG).unwrap();
    drop(world.intakes.remove(2));
    for intake in &world.intakes {
        intake
            .tell(1, Err("server 2 has gone"), false, BTreeMap::new())
            .unwrap();
    }
    let started = Instant::now();
    let nothing = client.outcome(1, 10 * LONG, &mut []).map(|_| [0; 32]);
    assert_eq!(refused(nothing), "server 2 has gone");
    assert!(started.elapsed() < LONG);
}

#[test]
fn a_server_that_tells_of_a_round_that_is_not_is_named() {
    let world = World::new(1);
    world.begin_at(1, terms(u64::MAX, LONG));
    let alone = |expected: &str, at: usize| match world.client(0).join(0, 2 * SHORT).err().unwrap()
    {
        Error::Peer { party, fault, .. } => {
            assert_eq!((party, &fault.to_string()[..]), (at, expected));
        }
        other => panic!("{other}"),
    };
    for server in [0, 2] {
        world.begin_at(server, terms(1, LONG));
    }
    alone(
        &format!(
            "it announces round {}, which the two others have not begun",
            u64::MAX
        ),
        1,
    );
    world.begin_at(0, terms(u64::MAX, LONG));
    alone(
        &format!(
            "it has not begun round {}, which the two others announce",
            u64::MAX
        ),
        2,
    );
    // A server that is only slower than the others is waited for.
    std::thread::scope(|scope| {
        let joined = scope.spawn(|| world.client(0).join(0, LONG).unwrap());
        std::thread::sleep(SHORT);
        world.begin_at(2, terms(u64::MAX, LONG));
        assert_eq!(joined.join().unwrap().round, u64::MAX);
    });
}

#[test]
fn statements_are_read_as_written_and_nothing_else_is_one() {
    let statement = Statement {
        federation: [1; 32],
        round: 2,
        client: 3,
        words: 4,
        terms: [5; 32],
        pieces: [[6; 32], [7; 32], [8; 32]],
    };
    let bytes = statement.to_bytes();
    assert_eq!(Statement::from_bytes(&bytes).unwrap(), statement);
    for at in 0..32 {
        let mut other = bytes;
        other[at] ^= 1;
        assert!(Statement::from_bytes(&other).is_none());
    }
}
