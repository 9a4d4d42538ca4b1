//! Evidence of servers for their clients: what is refused, over real connections and without.

use super::super::round::Terms;
use super::super::ticket::Tickets;
use super::super::wire::{Reply, Request};
use super::super::{Client, Clients, Federation, Intake, SERVERS, Task};
use super::hashed::{HONEST, Hashed, OTHER};
use super::*;
use crate::certificates::{self, Generated, Identity};
use crate::error::Name;
use crate::tcp::admission::Callers;
use crate::tcp::{Listener, tls};
use rustls::{ServerConnection, StreamOwned};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

const LONG: Duration = Duration::from_secs(30);

/// A signature does not fit the connection.
const ELSEWHERE: &str = "is not at the other end of this connection";

const CERTIFICATE: &[u8] = b"certificate";

const CONNECTION: Connection = Connection {
    intake: [1; 32],
    server: 1,
    client: 2,
    nonce: [3; 32],
    exported: [4; 32],
};

fn vouching(voucher: Hashed) -> Vouching {
    let Connection { intake, server, .. } = CONNECTION;
    Vouching::new(Arc::new(voucher), intake, server, CERTIFICATE).unwrap()
}

fn check(connection: &Connection, shown: &Shown) -> std::result::Result<(), String> {
    connection.check(shown, CERTIFICATE, &HONEST, shown.made)
}

#[test]
fn no_flipped_bit_is_accepted() {
    let shown = vouching(HONEST).show(&CONNECTION).0;
    check(&CONNECTION, &shown).unwrap();
    let mut message = Vec::new();
    Reply::Evidence(shown.clone()).write(&mut message).unwrap();
    let is_accepted = |bytes: &[u8]| match Reply::read(&mut &bytes[..]) {
        Ok(Reply::Evidence(found)) => CONNECTION
            .check(&found, CERTIFICATE, &HONEST, shown.made)
            .is_ok(),
        _ => false,
    };
    assert!(is_accepted(&message));
    for bit in 0..8 * message.len() {
        let mut other = message.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_accepted(&other), "bit {bit}");
    }
    for length in 0..message.len() {
        assert!(!is_accepted(&message[..length]), "{length} bytes");
    }
}

#[test]
fn what_another_connection_got_is_refused() {
    let shown = vouching(HONEST).show(&CONNECTION).0;
    let changes: [fn(&mut Connection); 5] = [
        |it| it.intake[0] ^= 1,
        |it| it.server = 0,
        |it| it.client = 0,
        |it| it.nonce[0] ^= 1,
        |it| it.exported[0] ^= 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut other = CONNECTION;
        change(&mut other);
        let error = check(&other, &shown).unwrap_err();
        assert!(error.contains(ELSEWHERE), "{number}: {error}");
    }
}

#[test]
fn a_server_signs_all_that_it_sends() {
    let shown = vouching(HONEST).show(&CONNECTION).0;
    let changes: [fn(&mut Shown); 6] = [
        |it| it.made += 1,
        |it| it.key[0] ^= 1,
        |it| it.policy[0] ^= 1,
        |it| it.program[0] ^= 1,
        |it| it.evidence[0] ^= 1,
        |it| it.evidence.push(0),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut other = shown.clone();
        change(&mut other);
        let (one, other) = (CONNECTION.statement(&shown), CONNECTION.statement(&other));
        assert_ne!(one, other, "{number}");
    }
}

/// A host has the evidence of an attested process, but not its key.
#[test]
fn evidence_of_another_key_is_refused() {
    let (honest, other) = (vouching(HONEST), vouching(HONEST));
    let genuine = honest.show(&CONNECTION).0;
    let mut shown = other.show(&CONNECTION).0;
    shown.evidence.clone_from(&genuine.evidence);
    shown.made = genuine.made;
    let statement = CONNECTION.statement(&shown);
    shown
        .signature
        .copy_from_slice(other.key.sign(&statement).as_ref());
    assert_eq!(check(&CONNECTION, &shown), Err(OTHER.to_owned()));
    shown.key = genuine.key;
    let statement = CONNECTION.statement(&shown);
    shown
        .signature
        .copy_from_slice(other.key.sign(&statement).as_ref());
    assert!(check(&CONNECTION, &shown).unwrap_err().contains(ELSEWHERE));
}

/// Each part of what evidence is made for is what the client knows, or what the server says and
/// signs.
#[test]
fn evidence_made_for_anything_else_is_refused() {
    let changes: [fn(&mut Vouched<'_>); 7] = [
        |it| it.intake[0] ^= 1,
        |it| it.server = 0,
        |it| it.certificate = b"other",
        |it| it.key[0] ^= 1,
        |it| it.policy[0] ^= 1,
        |it| it.program[0] ^= 1,
        |it| it.made ^= 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let shown = vouching(Hashed { change, ..HONEST }).show(&CONNECTION).0;
        let refused = check(&CONNECTION, &shown);
        assert_eq!(refused, Err(OTHER.to_owned()), "{number}");
    }
    let shown = vouching(HONEST).show(&CONNECTION).0;
    let refused = CONNECTION.check(&shown, b"another certificate", &HONEST, shown.made);
    assert_eq!(refused, Err(OTHER.to_owned()));
}

#[test]
fn old_evidence_and_other_policies_are_refused_by_name() {
    let shown = vouching(HONEST).show(&CONNECTION).0;
    let at = |now| CONNECTION.check(&shown, CERTIFICATE, &HONEST, now);
    let (day, ahead) = (LONGEST_AGE.as_secs(), AHEAD.as_secs());
    at(shown.made + day).unwrap();
    at(shown.made - ahead).unwrap();
    assert_eq!(
        at(shown.made + day + 1).unwrap_err(),
        "its evidence is 24 hours old, and must not be older than 24: check both clocks, and start \
         the server again"
    );
    assert_eq!(
        at(shown.made - ahead - 1).unwrap_err(),
        "its evidence is 301 seconds from the future: set both clocks, for example by NTP"
    );
    let other = vouching(Hashed {
        policy: 2,
        ..HONEST
    });
    assert_eq!(
        check(&CONNECTION, &other.show(&CONNECTION).0).unwrap_err(),
        "its policy is another one than this client's: the table [attestation] is the same for all"
    );
}

/// Counts the evidence that it makes; may fail.
struct Counted {
    made: Arc<AtomicUsize>,
    fails_from: usize,
}

impl Voucher for Counted {
    fn policy(&self) -> Hash {
        [1; 32]
    }

    fn program(&self) -> Hash {
        [7; 32]
    }

    fn make(&self, about: &Vouched<'_>) -> Result<Vec<u8>> {
        match self.made.fetch_add(1, Ordering::Relaxed) < self.fails_from {
            true => HONEST.make(about),
            false => Err(Error::setup("the hardware does not answer")),
        }
    }

    fn judge(&self, about: &Vouched<'_>, evidence: &[u8]) -> std::result::Result<(), String> {
        HONEST.judge(about, evidence)
    }
}

#[test]
fn a_server_makes_evidence_once_and_renews_it_when_it_is_old() {
    let made = Arc::<AtomicUsize>::default();
    let count = || made.load(Ordering::Relaxed);
    let of = |fails_from| {
        let made = Arc::clone(&made);
        Vouching::new(Arc::new(Counted { made, fails_from }), [1; 32], 1, b"")
    };
    let vouching = of(2).unwrap();
    for _ in 0..100 {
        vouching.show(&CONNECTION);
    }
    assert_eq!(count(), 1);
    let first = now();
    let renewed = first + RENEWED.as_secs() + 2;
    assert_eq!(vouching.evidence(renewed).0.at, renewed);
    assert_eq!(vouching.evidence(renewed + 1).0.at, renewed);
    assert_eq!(count(), 2);
    // The third fails. Clients get the second until they refuse it, and few attempts are made.
    let later = renewed + RENEWED.as_secs() + 1;
    let (made, failure) = vouching.evidence(later);
    assert_eq!(made.at, renewed);
    assert!(failure.unwrap().contains("the hardware does not answer"));
    for _ in 0..100 {
        let (made, failure) = vouching.evidence(later);
        assert_eq!((made.at, failure), (renewed, None));
    }
    assert_eq!(count(), 3);
    assert_eq!(vouching.evidence(later + RETRY.as_secs() + 1).0.at, renewed);
    assert_eq!(count(), 4);
    assert!(of(0).is_err(), "a server that cannot attest does not open");
}

/// Makes its first evidence at once, and each other one when it is told to.
struct Slow {
    made: AtomicUsize,
    began: mpsc::Sender<()>,
    may_end: Mutex<Receiver<()>>,
}

impl Voucher for Slow {
    fn policy(&self) -> Hash {
        HONEST.policy()
    }

    fn program(&self) -> Hash {
        HONEST.program()
    }

    fn make(&self, about: &Vouched<'_>) -> Result<Vec<u8>> {
        if self.made.fetch_add(1, Ordering::Relaxed) > 0 {
            self.began.send(()).unwrap();
            self.may_end.lock().unwrap().recv_timeout(LONG).unwrap();
        }
        HONEST.make(about)
    }

    fn judge(&self, about: &Vouched<'_>, evidence: &[u8]) -> std::result::Result<(), String> {
        HONEST.judge(about, evidence)
    }
}

#[test]
fn clients_do_not_wait_while_evidence_is_renewed() {
    let ((began, begun), (end, may_end)) = (mpsc::channel(), mpsc::channel());
    let slow = Slow {
        made: AtomicUsize::new(0),
        began,
        may_end: Mutex::new(may_end),
    };
    let vouching = Vouching::new(Arc::new(slow), [1; 32], 1, b"").unwrap();
    let first = vouching.evidence(now()).0.at;
    let later = first + RENEWED.as_secs() + 1;
    thread::scope(|scope| {
        let renewing = scope.spawn(|| vouching.evidence(later).0.at);
        begun.recv_timeout(LONG).unwrap();
        // The hardware does not answer yet.
        let (tell, told) = mpsc::channel();
        let vouching = &vouching;
        scope.spawn(move || tell.send(vouching.evidence(later).0.at));
        let meanwhile = told.recv_timeout(LONG / 3);
        end.send(()).unwrap();
        assert_eq!(meanwhile, Ok(first));
        assert_eq!(renewing.join().unwrap(), later);
    });
    assert_eq!(vouching.evidence(later).0.at, later);
}

/// Three servers, each with its voucher, and one client.
struct World {
    servers: Vec<Generated>,
    client: Generated,
    federation: Federation,
    intakes: Vec<Intake>,
}

impl World {
    fn new(vouchers: [Option<Hashed>; SERVERS]) -> Self {
        let made = |number| certificates::generate(number, 1).unwrap();
        let servers: Vec<Generated> = (0..SERVERS).map(made).collect();
        let pems: Vec<String> = servers
            .iter()
            .map(|server| server.certificate_pem.clone())
            .collect();
        let mut world = Self {
            federation: Federation::new("test", &pems).unwrap(),
            client: made(9),
            servers,
            intakes: Vec::new(),
        };
        for (server, voucher) in vouchers.into_iter().enumerate() {
            let intake = world.open(server, "127.0.0.1:0", voucher);
            world.intakes.push(intake);
        }
        world
    }

    fn open(&self, server: usize, address: &str, voucher: Option<Hashed>) -> Intake {
        let listener = Listener::bind(address).unwrap();
        let key = &self.servers[server].key_pem;
        let clients = [self.client.certificate_pem.clone()];
        let voucher = voucher.map(|voucher| -> Arc<dyn Voucher> { Arc::new(voucher) });
        let intake = Intake::open(
            listener,
            &self.federation,
            server,
            key,
            &Clients::Pinned(&clients),
            voucher,
        );
        let intake = intake.unwrap();
        let terms = Terms {
            number: 1,
            words: 10,
            terms: vec![],
            model: Arc::from(vec![]),
            add: None,
            deadline: Instant::now() + LONG,
            closer: None,
        };
        intake
            .begin(terms, Tickets::new(server, [[1; 32], [2; 32]]))
            .unwrap();
        intake
    }

    fn client(&self, voucher: Option<Hashed>) -> Client {
        let addresses = self.intakes.iter().map(Intake::address);
        self.client_of(voucher, addresses.map(str::to_owned).collect())
    }

    fn client_of(&self, voucher: Option<Hashed>, addresses: Vec<String>) -> Client {
        let voucher = voucher.map(|voucher| -> Arc<dyn Voucher> { Arc::new(voucher) });
        let (pem, key) = (&self.client.certificate_pem, &self.client.key_pem);
        Client::new(&self.federation, 0, pem, key, &addresses, voucher, None).unwrap()
    }

    fn refusal(&self, voucher: Option<Hashed>) -> String {
        refusal(self.client(voucher).join(0, LONG))
    }
}

fn refusal(joined: Result<Task>) -> String {
    joined.map(|_| ()).unwrap_err().to_string()
}

const ALL: [Option<Hashed>; SERVERS] = [Some(HONEST); SERVERS];

/// Returns honest servers, and another server 1.
fn but(one: Option<Hashed>) -> World {
    World::new([ALL[0], one, ALL[2]])
}

#[test]
fn a_client_joins_servers_that_attest() {
    let world = World::new(ALL);
    let client = world.client(Some(HONEST));
    assert_eq!(client.join(0, LONG).unwrap().round, 1);
    assert_eq!(client.verified(), 3);
}

#[test]
fn whoever_has_another_file_is_refused_by_name() {
    let without = World::new(ALL).refusal(None);
    assert!(
        without.contains("this client does not ask for its evidence"),
        "{without}"
    );
    assert!(
        without.contains("[attestation] is the same for all"),
        "{without}"
    );
    let error = but(None).refusal(Some(HONEST));
    let expected = "server 1 failed in step \"join\": it has not attested: this server does not \
                    attest: its federation.toml has no table [attestation], which is the same for \
                    all";
    assert_eq!(error.replace("party 1", "server 1"), expected);
    let error = but(Some(Hashed {
        policy: 2,
        ..HONEST
    }))
    .refusal(Some(HONEST));
    assert!(error.contains("its policy is another one"), "{error}");
}

#[test]
fn evidence_that_is_wrong_too_long_or_none_is_refused_by_name() {
    let wrong = Hashed {
        change: |it| it.certificate = b"other",
        ..HONEST
    };
    let empty = Hashed { times: 0, ..HONEST };
    let longest = Hashed {
        times: LONGEST / 32,
        ..HONEST
    };
    for voucher in [wrong, empty, longest] {
        let error = but(Some(voucher)).refusal(Some(HONEST));
        assert!(error.contains("party 1 failed in step \"join\""), "{error}");
        assert!(error.contains(OTHER), "{error}");
    }
    let too_long = Hashed {
        times: LONGEST / 32 + 1,
        ..HONEST
    };
    let opened = Vouching::new(Arc::new(too_long), [1; 32], 1, b"").map(|_| ());
    let error = opened.unwrap_err().to_string();
    assert!(
        error.contains("has 65568 bytes, more than 65536"),
        "{error}"
    );
    let mut shown = vouching(HONEST).show(&CONNECTION).0;
    shown.evidence = vec![0; LONGEST + 32];
    let mut message = Vec::new();
    Reply::Evidence(shown).write(&mut message).unwrap();
    assert!(Reply::read(&mut &message[..]).is_err());
}

/// A server of somebody's own that answers each request by `answer`, and tells what it was asked.
fn fake(
    world: &World,
    answer: impl Fn(&Request) -> Vec<u8> + Send + 'static,
) -> (String, Receiver<Request>) {
    let config = listening(world);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(std::result::Result::ok) {
            let mut stream = welcomed(&config, socket);
            while let Ok(request) = Request::read(&mut stream) {
                let reply = answer(&request);
                if tell.send(request).is_err() {
                    return;
                }
                drop(stream.write_all(&reply).and_then(|()| stream.flush()));
            }
        }
    });
    (address, told)
}

/// Returns the TLS configuration of whoever has the private key of server 1.
fn listening(world: &World) -> Arc<rustls::ServerConfig> {
    let client = crate::kinds::usable_of(Name::Client(0), &world.client.certificate_pem).unwrap();
    let clients = tls::clients(vec![client], vec![Name::Client(0)]).unwrap();
    let identity = Identity {
        certificates: Vec::new(),
        key: world.servers[1].key_pem.clone(),
    };
    let own = world.federation.certificates[1].clone();
    tls::intake(Name::Server(1), own, &identity, &Callers::Pinned(clients)).unwrap()
}

fn welcomed(
    config: &Arc<rustls::ServerConfig>,
    mut socket: TcpStream,
) -> StreamOwned<ServerConnection, TcpStream> {
    let mut connection = ServerConnection::new(Arc::clone(config)).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut socket).unwrap();
    }
    StreamOwned::new(connection, socket)
}

/// Joins by a client that reaches another server 1.
fn joined_at(world: &World, address: String) -> String {
    let mut addresses: Vec<String> = world
        .intakes
        .iter()
        .map(|intake| intake.address().to_owned())
        .collect();
    addresses[1] = address;
    refusal(world.client_of(Some(HONEST), addresses).join(0, LONG))
}

#[test]
fn a_server_without_evidence_is_asked_for_nothing_else() {
    let world = World::new(ALL);
    let excessive = {
        let mut head = b"tcd\x03\x08\0\0\0".to_vec();
        head.extend(u64::MAX.to_le_bytes());
        head
    };
    let mut other = Vec::new();
    Reply::Closed.write(&mut other).unwrap();
    for (reply, says) in [
        (other, "its answer is no evidence"),
        (
            excessive,
            "bytes of evidence and keys, more than the 65704 that are read",
        ),
    ] {
        let (address, asked) = fake(&world, move |_| reply.clone());
        let error = joined_at(&world, address);
        assert!(error.contains("party 1"), "{error}");
        assert!(error.contains(says), "{error}");
        let asked: Vec<Request> = asked.try_iter().collect();
        assert!(matches!(asked[..], [Request::Attest { .. }]), "{asked:?}");
    }
}

/// Refusals that are not about evidence keep their own words.
#[test]
fn other_refusals_are_not_taken_for_missing_evidence() {
    let world = World::new(ALL);
    let said = "too many connections of one client; close some";
    let mut reply = Vec::new();
    Reply::Refusal(said.to_owned()).write(&mut reply).unwrap();
    let (address, asked) = fake(&world, move |_| reply.clone());
    let error = joined_at(&world, address);
    assert_eq!(error, format!("server 1 refused: {said}"));
    let asked: Vec<Request> = asked.try_iter().collect();
    assert!(matches!(asked[..], [Request::Attest { .. }]), "{asked:?}");
}

/// Somebody has the private keys of a server and of a client, and sits between them.
#[test]
fn a_relay_between_client_and_server_is_found() {
    let world = World::new(ALL);
    let identity = Identity {
        certificates: vec![world.client.certificate_pem.clone()],
        key: world.client.key_pem.clone(),
    };
    let theirs = world.federation.certificates[1].clone();
    let names = (Name::Server(1), Name::Client(0));
    let config = tls::client_config(theirs, &identity, names, None).unwrap();
    let server = world.intakes[1].address().to_owned();
    let (address, asked) = fake(&world, move |request| {
        let socket = TcpStream::connect(&server).unwrap();
        let mut stream = tls::handshake(&config, socket).unwrap();
        request.write(&mut stream).unwrap();
        let mut reply = Vec::new();
        Reply::read(&mut stream).unwrap().write(&mut reply).unwrap();
        reply
    });
    let error = joined_at(&world, address);
    assert!(error.contains(ELSEWHERE), "{error}");
    let asked: Vec<Request> = asked.try_iter().collect();
    assert!(matches!(asked[..], [Request::Attest { .. }]), "{asked:?}");
}

#[test]
fn a_server_attests_again_on_a_new_connection() {
    let mut world = World::new(ALL);
    let client = world.client(Some(HONEST));
    let task = client.join(0, LONG).unwrap();
    let intake = world.intakes.remove(1);
    let address = intake.address().to_owned();
    drop(intake);
    let wrong = Hashed {
        change: |it| it.key[0] ^= 1,
        ..HONEST
    };
    let _other = world.open(1, &address, Some(wrong));
    let pieces = [2, 10, 2].map(|words| super::super::statement::Piece {
        salt: [1; 4],
        words: vec![0; words],
    });
    let error = client.submit(&task, &pieces).unwrap_err().to_string();
    assert!(
        error.contains("party 1 failed in step \"submit\""),
        "{error}"
    );
    assert!(error.contains(OTHER), "{error}");
}

#[test]
fn a_client_asks_once_and_first() {
    let world = World::new(ALL);
    let identity = Identity {
        certificates: vec![world.client.certificate_pem.clone()],
        key: world.client.key_pem.clone(),
    };
    let ask = |requests: &[Request]| {
        let theirs = world.federation.certificates[1].clone();
        let names = (Name::Server(1), Name::Client(0));
        let config = tls::client_config(theirs, &identity, names, None).unwrap();
        let socket = TcpStream::connect(world.intakes[1].address()).unwrap();
        let mut stream = tls::handshake(&config, socket).unwrap();
        let replies = requests.iter().map(|request| {
            request.write(&mut stream).unwrap();
            Reply::read(&mut stream).unwrap()
        });
        replies.last().unwrap()
    };
    let join = Request::Join {
        federation: world.federation.id(),
        after: 0,
        model: false,
    };
    let of = |federation| Request::Attest {
        federation,
        nonce: [1; 32],
    };
    let attest = of(world.federation.id());
    let refused = |reply: Reply, says: &str| match reply {
        Reply::Refusal(reason) => assert!(reason.contains(says), "{reason}"),
        other => panic!("{other:?}"),
    };
    refused(
        ask(std::slice::from_ref(&join)),
        "does not ask for its evidence",
    );
    refused(ask(&[of([7; 32])]), "this server is of another federation");
    refused(
        ask(&[attest.clone(), attest.clone()]),
        "asks for evidence once",
    );
    assert!(matches!(ask(&[attest, join]), Reply::Task { .. }));
}
