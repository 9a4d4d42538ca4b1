//! Tests of parties in Rust from a `parties.toml`, over TCP: they meet, compute, record their
//! demand, and make and use files.

mod folder;

use folder::Folder;
use mpc::correlations::Demand;
use mpc::{Protocol, Result};
use session::configured::{self, Choices, Making};
use session::{Session, Transport, Words};
use std::fs;
use testkit::{Shared, edge_words};

/// Runs each party's work with its number and returns the results; a dealer deals if there is one.
fn all<T: Send>(
    folder: &Folder,
    parties: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Vec<T> {
    let (config, work) = (folder.config(), &work);
    let dealer = fs::read_to_string(&config)
        .unwrap()
        .contains("source = \"dealer\"");
    std::thread::scope(|scope| {
        let dealing =
            dealer.then(|| scope.spawn(|| configured::serve(&config, None, &Words::PARTIES)));
        let threads: Vec<_> = (0..parties)
            .map(|party| scope.spawn(move || work(party)))
            .collect();
        let results = threads.into_iter().map(|thread| {
            let result = thread.join().expect("a party panicked");
            result.unwrap_or_else(|error| panic!("a party failed: {error}"))
        });
        let results = results.collect();
        if let Some(dealing) = dealing {
            let dealt = dealing.join().expect("the dealer panicked");
            dealt.unwrap_or_else(|error| panic!("the dealer failed: {error}"));
        }
        results
    })
}

fn sessions(folder: &Folder, parties: usize, choices: &Choices) -> Vec<Option<Demand>> {
    let connect = |party| configured::connect(&folder.config(), party, choices);
    all(folder, parties, |party| {
        let session = connect(party)?;
        assert_eq!((session.party(), session.parties()), (party, parties));
        assert_eq!(session.transport(), Transport::Tls);
        computes(session)
    })
}

/// Computes signs of edge values; returns the demand for correlations if it is recorded.
fn computes(session: Session) -> Result<Option<Demand>> {
    let public = session.broadcast(0, (session.party() == 0).then_some(b"public"))?;
    assert_eq!(public, b"public");
    session.run(|protocol| {
        check_signs(protocol)?;
        Ok(protocol.correlated().and_then(|of| of.demand()))
    })
}

fn check_signs(protocol: &mut dyn Protocol) -> Result<()> {
    let values = edge_words(63);
    let x = Shared::input(protocol, 1, &values)?;
    let negative = protocol.sign(&x.slices(), 64)?;
    let kept = x.times_bit(protocol, &negative)?.open(protocol)?;
    let expected = values.iter().map(|x| if (*x as i64) < 0 { *x } else { 0 });
    assert!(kept.into_iter().eq(expected));
    Ok(())
}

#[test]
fn three_parties() {
    let folder = Folder::new("protocol = \"replicated\"", 3, false);
    let demands = sessions(&folder, 3, &Choices::default());
    assert!(demands.iter().all(Option::is_none));
}

#[test]
fn two_parties_record_make_and_use_a_file() {
    let head = "protocol = \"additive\"\nsource = \"dealer\"";
    let folder = Folder::new(head, 2, true);
    let record = Choices {
        record: true,
        ..Choices::default()
    };
    let demands = sessions(&folder, 2, &record);
    let texts: Vec<_> = demands.iter().flatten().map(Demand::to_text).collect();
    assert_eq!(texts.len(), 2);
    assert_eq!(texts[0], texts[1]);

    all(&folder, 2, |party| {
        let work = Making {
            demand: Demand::parse(&texts[party])?,
            runs: 1,
            out: folder.0.join(format!("{party}.correlations")),
        };
        configured::make(
            &folder.config(),
            party,
            None,
            &work,
            &Words::PARTIES,
            |_, _| (),
        )
    });

    let text = fs::read_to_string(folder.config()).unwrap();
    let text = text.replace("source = \"dealer\"", "source = \"file\"");
    fs::write(folder.config(), text).unwrap();
    sessions(&folder, 2, &Choices::default());
}

#[test]
fn what_is_wrong_is_said_before_anybody_is_called() {
    let folder = Folder::new("protocol = \"replicated\"", 3, false);
    let failed = |party, choices: Choices| {
        let result = configured::connect(&folder.config(), party, &choices);
        result.map(drop).unwrap_err().to_string()
    };
    let choose = |protocol: &str, source: Option<&str>| Choices {
        protocol: Some(protocol.to_owned()),
        source: source.map(str::to_owned),
        ..Choices::default()
    };
    for (text, expected) in [
        (failed(3, Choices::default()), "there is no party 3"),
        (
            failed(0, choose("magic", None)),
            "unknown protocol \"magic\"",
        ),
        (
            failed(0, choose("replicated", Some("ot"))),
            "consumes no correlations",
        ),
        (
            failed(0, choose("additive", Some("x"))),
            "unknown source of correlations \"x\"",
        ),
        (
            failed(0, choose("additive", Some("dealer"))),
            "the table [dealer] is missing",
        ),
        (
            failed(0, choose("plain", None)),
            "refuses to run over a network",
        ),
    ] {
        assert!(text.contains(expected), "{text}");
    }
}
