//! Set-up of links between processes: who is let in, who is not, and what each side is told.

mod links;

use links::{SetUp, run, text};
use net::certificates::{self, generate_for_period};
use net::tcp::{Identity, Listener, connect};
use net::{Error, Mesh, Result};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
/// For those who wait for somebody that never comes.
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
                reason,
            } => {
                assert_eq!(step, "connect");
                assert!(reason.contains(&addresses[2]), "{reason}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_wrong_certificate_is_refused_and_named() {
    let (set_up, other) = (SetUp::new(2), SetUp::new(2));
    // Party 1 uses a fresh key and certificate that party 0 was not told of.
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
        // Whichever of the two connections comes first tells it.
        messages[0].contains("not the one configured here for party 1")
            || messages[0].contains("a certificate that is no party's"),
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
        ("no key at all".to_owned(), "not a PEM"),
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
        let error = result.err().unwrap();
        assert!(matches!(error, Error::Setup { .. }), "{error}");
        let message = text(&error);
        assert!(
            message.contains("protocol replicated") && message.contains("protocol plain"),
            "{message}"
        );
    }
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
        // Whatever they were told, it was no secret: a TLS alert at most.
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
    // A TLS record header that announces much, then a byte now and then.
    let mut stranger = TcpStream::connect(&addresses[0]).unwrap();
    stranger.write_all(&[0x16, 3, 1, 0x3f, 0xff]).unwrap();
    let dripping = std::thread::spawn(move || {
        while stranger.write_all(&[1]).is_ok() {
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    // It would go on for an hour; the test ends because the set-up does.
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
        "nothing is overwritten"
    );
    assert!(certificates::write_directory(1, &directory).is_err());
    assert!(certificates::generate(0, 0).is_err());
}
