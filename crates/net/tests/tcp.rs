//! Tests of the set-up of links between processes: who is accepted, who is refused, and what each
//! side is told.

mod links;

use links::{SetUp, run, text};
use net::certificates::{self, generate_for_period};
use net::config::{Config, LenientConfig};
use net::tcp::{Identity, Listener, connect, refuse};
use net::{Error, Mesh, PeerFault, Result};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
/// Timeout of parties that wait for a member that never comes.
const SHORT: Duration = Duration::from_secs(2);

fn link(
    set_up: &SetUp,
    timeout: Duration,
    identity: impl Fn(usize) -> Identity + Sync,
    parameters: impl Fn(usize) -> &'static str + Sync,
) -> Vec<Result<Mesh>> {
    let listeners = set_up.listeners();
    let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
    run(listeners, |listener, party| {
        connect(
            listener,
            party,
            &addresses,
            false,
            identity(party),
            timeout,
            parameters(party),
        )
    })
}

#[test]
fn a_port_in_use_is_named() {
    let taken = Listener::bind("127.0.0.1:0").unwrap();
    let error = Listener::bind(&taken.local_address()).err().unwrap();
    assert!(matches!(error, Error::Setup { .. }));
    let message = text(&error);
    assert!(
        message.contains(&taken.local_address()) && message.contains("choose another port"),
        "{message}"
    );
}

#[test]
fn a_party_that_never_comes_is_named_with_its_address() {
    let set_up = SetUp::new(3);
    let mut listeners = set_up.listeners();
    let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
    drop(listeners.pop());
    let results = run(listeners, |listener, party| {
        connect(
            listener,
            party,
            &addresses,
            false,
            set_up.identity(party),
            SHORT,
            "test",
        )
    });
    for result in results {
        match result.err().unwrap() {
            Error::Peer {
                party: 2,
                step,
                fault: PeerFault::Absent { address, .. },
            } => {
                assert_eq!(step, "connect");
                assert_eq!(address, addresses[2]);
            }
            // The other party's wait may end first, and it tells this one.
            other @ Error::Peer { party: 2, .. } => {
                let message = text(&other);
                assert!(
                    message.contains("reports, it did not come within the timeout")
                        && message.contains(&addresses[2]),
                    "{message}"
                );
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_wrong_certificate_is_refused_and_named() {
    let (set_up, other) = (SetUp::new(2), SetUp::new(2));
    // Party 1 uses a new key and certificate that party 0 does not know.
    let identity = |party: usize| match party {
        0 => set_up.identity(0),
        _ => Identity {
            certificates: vec![
                set_up.certificates[0].clone(),
                other.certificates[1].clone(),
            ],
            key: other.keys[1].clone(),
        },
    };
    let messages: Vec<String> = link(&set_up, SHORT, identity, |_| "test")
        .into_iter()
        .map(|result| text(&result.err().unwrap()))
        .collect();
    assert!(
        // The connection that comes first reports it.
        messages[0].contains("not the one configured here for party 1")
            || messages[0].contains("a certificate that belongs to no party"),
        "{messages:?}"
    );
    assert!(
        messages[1].contains("refused this party's certificate")
            || messages[1].contains("did not come"),
        "{messages:?}"
    );
}

#[test]
fn a_party_with_anothers_number_is_refused() {
    let set_up = SetUp::new(3);
    // Party 2 presents party 1's certificate.
    let identity = |party: usize| match party {
        2 => Identity {
            certificates: vec![
                set_up.certificates[0].clone(),
                set_up.certificates[2].clone(),
                set_up.certificates[1].clone(),
            ],
            key: set_up.keys[1].clone(),
        },
        party => set_up.identity(party),
    };
    let results = link(&set_up, SHORT, identity, |_| "test");
    assert!(results.iter().all(Result::is_err));
    let message = text(results[0].as_ref().err().unwrap());
    assert!(
        message.contains("party 2") || message.contains("party 1"),
        "{message}"
    );
}

#[test]
fn certificates_outside_their_period_are_refused() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64;
    let day = 86_400;
    for (from, to, expected) in [
        (now - 3 * day, now - day, "expired"),
        (now + day, now + 3 * day, "valid only from"),
    ] {
        let mut set_up = SetUp::new(2);
        let made = generate_for_period(1, from, to).unwrap();
        (set_up.certificates[1], set_up.keys[1]) = (made.certificate_pem, made.key_pem);
        for result in link(&set_up, LONG, |party| set_up.identity(party), |_| "test") {
            let error = result.err().unwrap();
            assert!(matches!(error, Error::Setup { .. }));
            let message = text(&error);
            assert!(
                message.contains(expected) && message.contains("party 1"),
                "{message}"
            );
        }
    }
}

#[test]
fn a_key_that_does_not_fit_or_is_none_is_named_and_not_shown() {
    let set_up = SetUp::new(2);
    for (key, expected) in [
        (set_up.keys[1].clone(), "does not fit"),
        ("no key at all".to_owned(), "not a private key in PEM"),
    ] {
        let identity = Identity {
            certificates: set_up.certificates.clone(),
            key,
        };
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let addresses = vec![listener.local_address(), "127.0.0.1:9".to_owned()];
        let message = text(
            &connect(listener, 0, &addresses, false, identity, LONG, "test")
                .err()
                .unwrap(),
        );
        assert!(
            message.contains(expected) && !message.contains("no key at all"),
            "{message}"
        );
    }
}

#[test]
fn different_parameters_are_told_to_both() {
    let set_up = SetUp::new(2);
    let parameters = |party: usize| ["protocol replicated", "protocol plain"][party];
    for result in link(&set_up, LONG, |party| set_up.identity(party), parameters) {
        let message = text(&result.err().unwrap());
        // Either this party saw it, or a party that saw it first reported it.
        assert!(
            message.contains(
                "the parties were started differently: party 1 with \"protocol plain\", \
                 party 0 with \"protocol replicated\"; start all with the same settings and release"
            ) || message.contains(
                "the parties were started differently: party 0 with \"protocol replicated\", \
                 party 1 with \"protocol plain\"; start all with the same settings and release"
            ),
            "{message}"
        );
    }
}

#[test]
fn the_odd_one_of_three_is_named_first() {
    let set_up = SetUp::new(3);
    for odd in 0..3 {
        let parameters = |party: usize| if party == odd { "odd" } else { "even" };
        for result in link(&set_up, LONG, |party| set_up.identity(party), parameters) {
            let message = text(&result.err().unwrap());
            let expected = format!("started differently: party {odd} with \"odd\", party");
            assert!(message.contains(&expected), "{message}");
        }
    }
}

/// A configuration of three parties on this machine and their listeners, in its own folder.
struct Folder {
    path: std::path::PathBuf,
    set_up: SetUp,
    listeners: Vec<Listener>,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tacit-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let set_up = SetUp::new(3);
        let listeners = set_up.listeners();
        let mut text = String::new();
        for (party, listener) in listeners.iter().enumerate() {
            let write = |ending: &str, text: &str| {
                std::fs::write(path.join(format!("{party}.{ending}")), text).unwrap();
            };
            write("pem", &set_up.certificates[party]);
            write("key", &set_up.keys[party]);
            text += &format!(
                "[[party]]\naddress = \"{}\"\ncertificate = \"{party}.pem\"\n",
                listener.local_address()
            );
        }
        std::fs::write(path.join("parties.toml"), text).unwrap();
        Self {
            path,
            set_up,
            listeners,
        }
    }

    fn toml(&self) -> std::path::PathBuf {
        self.path.join("parties.toml")
    }

    /// Returns the errors of parties 0 and 1 when party 2 tells them that it cannot take part.
    fn told(mut self, timeout: Duration, reason: &str) -> Vec<String> {
        let addresses: Vec<String> = self.listeners.iter().map(Listener::local_address).collect();
        drop(self.listeners.pop());
        let others = std::mem::take(&mut self.listeners);
        let refusing = || {
            let lenient = LenientConfig::read(&self.toml(), Some(2), |_| false).unwrap();
            refuse(&lenient, reason, LONG);
        };
        let link = |listener, party| {
            let identity = self.set_up.identity(party);
            connect(
                listener, party, &addresses, false, identity, timeout, "test",
            )
        };
        let results = std::thread::scope(|scope| {
            scope.spawn(refusing);
            run(others, link)
        });
        std::fs::remove_dir_all(&self.path).unwrap();
        results
            .into_iter()
            .map(|result| text(&result.err().unwrap()))
            .collect()
    }
}

#[test]
fn a_party_that_cannot_take_part_tells_the_others_why() {
    // Otherwise they would wait for a minute.
    for message in Folder::new("told").told(LONG, "there is no program.py") {
        assert_eq!(
            message,
            "party 2 failed in step \"connect\": it cannot take part: there is no program.py"
        );
    }
}

#[test]
fn it_does_so_from_a_configuration_that_is_wrong() {
    let folder = Folder::new("told-wrong");
    let text = std::fs::read_to_string(folder.toml()).unwrap();
    for wrong in ["timeout = \"soon\"\n", "timeout 60\n", "parties = 3\n"] {
        std::fs::write(folder.toml(), format!("{wrong}{text}")).unwrap();
        assert!(Config::read(&folder.toml()).is_err());
        assert!(
            LenientConfig::read(&folder.toml(), Some(2), |_| false).is_some(),
            "{wrong}"
        );
    }
    for message in folder.told(LONG, "line 1: unknown field") {
        assert!(message.ends_with("it cannot take part: line 1: unknown field"));
    }
}

#[test]
fn one_without_its_key_is_quoted_and_ends_nothing() {
    let folder = Folder::new("told-keyless");
    std::fs::remove_file(folder.path.join("2.key")).unwrap();
    let started = std::time::Instant::now();
    for message in folder.told(SHORT, "cannot read 2.key: there is no such file") {
        // The party reports it itself, or another party reports it, whose timeout ended first.
        for part in [
            "party 2 failed in step \"connect\": ",
            "it did not come within the timeout",
            "; a caller that could not prove its identity said: cannot read 2.key: there is no \
             such file",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
    assert!(started.elapsed() >= SHORT, "a stranger ended the set-up");
}

#[test]
fn who_is_past_its_set_up_hears_of_anothers_failure() {
    let set_up = SetUp::new(3);
    let mut listeners = set_up.listeners();
    let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
    // Party 1 cannot reach party 2: the listener at its address there is not party 2. Party 0 can
    // reach both.
    let wrong = Listener::bind("127.0.0.1:0").unwrap();
    let seen = |party: usize| {
        let mut seen = addresses.clone();
        if party == 1 {
            seen[2] = wrong.local_address();
        }
        seen
    };
    let third = listeners.pop().unwrap();
    let program = |mesh: Mesh| {
        let mut channel = mesh.channel(0);
        channel.begin("exchange");
        channel.receive(1, 1).map(drop)
    };
    let results = std::thread::scope(|scope| {
        let seen = &seen;
        let set_up = &set_up;
        let start = move |listener, party: usize, timeout| {
            let identity = set_up.identity(party);
            connect(
                listener,
                party,
                &seen(party),
                false,
                identity,
                timeout,
                "test",
            )
        };
        let spawned = [
            scope.spawn(move || start(third, 2, LONG).and_then(program)),
            {
                let second = listeners.pop().unwrap();
                scope.spawn(move || start(second, 1, SHORT).map(drop))
            },
            {
                let first = listeners.pop().unwrap();
                scope.spawn(move || start(first, 0, LONG).and_then(program))
            },
        ];
        spawned.map(|thread| text(&thread.join().unwrap().unwrap_err()))
    });
    for message in results {
        assert!(
            message.contains("party 2 failed")
                && message.contains("did not come within the timeout"),
            "{message}"
        );
    }
}

#[test]
fn two_parties_with_one_certificate_are_named() {
    let mut set_up = SetUp::new(3);
    set_up.certificates[2] = set_up.certificates[1].clone();
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let addresses = ["a:1", "b:1", "c:1"].map(str::to_owned);
    let identity = set_up.identity(0);
    let error = connect(listener, 0, &addresses, false, identity, LONG, "test");
    assert_eq!(
        text(&error.err().unwrap()),
        "setup: party 1 and party 2 have the same certificate; give each its own"
    );
}

#[test]
fn strangers_do_not_end_the_set_up() {
    let set_up = SetUp::new(2);
    let listeners = set_up.listeners();
    let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
    let strangers: Vec<TcpStream> = addresses
        .iter()
        .flat_map(|address| {
            let mut garbage = TcpStream::connect(address).unwrap();
            garbage.write_all(&[0x16; 300]).unwrap();
            let mut web = TcpStream::connect(address).unwrap();
            web.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let silent = TcpStream::connect(address).unwrap();
            [garbage, web, silent]
        })
        .collect();
    let results = run(listeners, |listener, party| {
        let mesh = connect(
            listener,
            party,
            &addresses,
            false,
            set_up.identity(party),
            LONG,
            "test",
        )?;
        let mut channel = mesh.channel(0);
        channel.begin("exchange");
        channel.send(1 - party, vec![party as u64])?;
        let got = channel.receive(1 - party, 1)?;
        mesh.close()?;
        Ok(got)
    });
    assert_eq!(
        results
            .into_iter()
            .map(|got| got.unwrap()[0])
            .collect::<Vec<_>>(),
        [1, 0]
    );
    for mut stranger in strangers {
        // Whatever they were sent is not secret: a TLS alert at most.
        stranger
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut told = Vec::new();
        drop(stranger.read_to_end(&mut told));
        assert!(told.len() < 64, "a stranger was told {} bytes", told.len());
    }
}

#[test]
fn a_stranger_that_drips_does_not_outlast_the_timeout() {
    let set_up = SetUp::new(2);
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [
        listener.local_address(),
        nobody.local_addr().unwrap().to_string(),
    ];
    // The stranger sends a TLS record header that announces much, then a byte now and then.
    let mut stranger = TcpStream::connect(&addresses[0]).unwrap();
    stranger.write_all(&[0x16, 3, 1, 0x3f, 0xff]).unwrap();
    let dripping = std::thread::spawn(move || {
        while stranger.write_all(&[1]).is_ok() {
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    // The stranger would continue for an hour; the test ends because the set-up does.
    let error = connect(
        listener,
        0,
        &addresses,
        false,
        set_up.identity(0),
        SHORT,
        "test",
    )
    .err()
    .unwrap();
    assert!(matches!(error, Error::Peer { party: 1, .. }), "{error}");
    dripping.join().unwrap();
}

#[test]
fn something_else_that_listens_at_a_partys_address_is_no_party() {
    let set_up = SetUp::new(2);
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in other.incoming().take(1000) {
            drop(
                stream.and_then(|mut stream| {
                    stream.write_all(b"SSH-2.0-OpenSSH\r\n").map(|()| stream)
                }),
            );
        }
    });
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let addresses = vec![listener.local_address(), address.clone()];
    let error = connect(
        listener,
        0,
        &addresses,
        false,
        set_up.identity(0),
        SHORT,
        "test",
    )
    .err()
    .unwrap();
    let message = text(&error);
    assert!(
        message.contains("party 1") && message.contains(&address),
        "{message}"
    );
}

#[test]
fn directories_of_certificates_are_written_once() {
    let directory = std::env::temp_dir().join(format!("tacit-certificates-{}", std::process::id()));
    certificates::write_directory(3, &directory).unwrap();
    for party in 0..3 {
        let key = directory.join(format!("party-{party}.key"));
        assert!(directory.join(format!("party-{party}.pem")).exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                std::fs::metadata(&key).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        assert!(
            std::fs::read_to_string(&key)
                .unwrap()
                .contains("PRIVATE KEY")
        );
    }
    let again = certificates::write_directory(3, &directory).unwrap_err();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(
        matches!(again, Error::Setup { .. }),
        "an existing file was overwritten"
    );
    assert!(certificates::write_directory(1, &directory).is_err());
    assert!(certificates::generate(0, 0).is_err());
}
