//! Tests of the reader of `parties.toml`, on valid files and on everything else.

use net::Error;
use net::config::Config;
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

const GOOD: &str = r#"
protocol = "replicated"
timeout = 2.5
[[party]]
address = "alice.example:7400"
listen = "0.0.0.0:7400"
certificate = "party-0.pem"
[[party]]
address = "bob.example:7400"
certificate = "certificates/party-1.pem"
key = "secret/bob.key"
"#;

fn parse(text: &str) -> net::Result<Config> {
    Config::parse(text, Path::new("folder/parties.toml"))
}

fn refused(text: &str) -> String {
    match parse(text).err() {
        Some(error @ Error::Setup { .. }) => error.to_string(),
        other => panic!("{text} gave {other:?}"),
    }
}

#[test]
fn a_good_file_is_read() {
    let config = parse(GOOD).unwrap();
    assert_eq!(config.protocol.as_deref(), Some("replicated"));
    assert_eq!(config.timeout, Duration::from_millis(2500));
    assert_eq!(
        config.addresses(false).unwrap(),
        ["alice.example:7400", "bob.example:7400"]
    );
    assert_eq!(config.listen_address(0).unwrap(), "0.0.0.0:7400");
    assert_eq!(config.listen_address(1).unwrap(), "bob.example:7400");
    assert!(matches!(
        config.listen_address(2),
        Err(Error::Misuse { .. })
    ));
    let missing = config.identity(1, false).err().unwrap().to_string();
    // A member first reads its own key.
    assert!(missing.contains("folder/secret/bob.key"), "{missing}");
}

#[test]
fn each_member_may_name_a_device() {
    let with = |device: &str| {
        let dealer = "[dealer]\naddress = \"carol:1\"\ncertificate = \"carol.pem\"\n";
        format!("source = \"dealer\"\n{GOOD}device = {device}\n{dealer}device = \"cpu\"\n")
    };
    let config = parse(&with("\"simulated\"")).unwrap();
    assert_eq!(config.device(0), Ok(None));
    assert_eq!(config.device(1), Ok(Some("simulated")));
    assert_eq!(config.device(2), Ok(Some("cpu")));
    assert!(matches!(config.device(3), Err(Error::Misuse { .. })));
    for odd in [
        "\"a card\"",
        "\"\\u0007\"",
        &format!("{:?}", "x".repeat(65)),
    ] {
        let text = refused(&with(odd));
        assert!(text.contains("device are short names"), "{text}");
    }
}

#[test]
fn a_dealer_comes_after_the_parties() {
    let text = format!(
        "source = \"dealer\"\n{GOOD}\n[dealer]\naddress = \"carol.example:7400\"\ncertificate = \
         \"carol.pem\"\n"
    );
    let config = parse(&text).unwrap();
    assert_eq!(config.source.as_deref(), Some("dealer"));
    assert_eq!(config.parties(), 2);
    assert_eq!(config.addresses(false).unwrap().len(), 2);
    assert_eq!(config.addresses(true).unwrap()[2], "carol.example:7400");
    assert_eq!(config.listen_address(2).unwrap(), "carol.example:7400");
    let same = text.replace("carol.example", "bob.example");
    assert!(refused(&same).contains("party 1 and the dealer have the same address"));
    let missing = parse(GOOD).unwrap().addresses(true).unwrap_err();
    assert!(missing.to_string().contains("table [dealer]"), "{missing}");
}

#[test]
fn what_is_left_out_has_a_default() {
    let short = GOOD
        .replace("protocol = \"replicated\"", "")
        .replace("timeout = 2.5", "");
    let config = parse(&short).unwrap();
    assert_eq!(
        (config.protocol, config.timeout),
        (None, Duration::from_secs(60))
    );
}

#[test]
fn each_mistake_is_named_with_the_file() {
    for (from, to, expected) in [
        ("timeout = 2.5", "timeout = -1", "timeout = -1"),
        ("timeout = 2.5", "timeout = nan", "timeout = NaN"),
        ("timeout = 2.5", "timeout = 1e9", "at most 86400"),
        ("timeout = 2.5", "timeout = \"soon\"", "line 3"),
        ("timeout = 2.5", "timeuot = 2.5", "timeuot"),
        (
            "protocol = \"replicated\"",
            "protocol = \"\u{7}\"",
            "line 2: invalid basic string",
        ),
        ("alice.example:7400", "alice.example", "host:port"),
        ("alice.example:7400", "alice.example:99999", "host:port"),
        ("alice.example:7400", ":7400", "host:port"),
        ("alice.example:7400", "alice example:7400", "host:port"),
        ("alice.example:7400", "bob.example:7400", "same address"),
        ("certificate = \"party-0.pem\"", "", "certificate"),
    ] {
        let message = refused(&GOOD.replacen(from, to, 1));
        assert!(
            message.contains(expected) && message.contains("parties.toml"),
            "{message}"
        );
        assert!(!message.contains('\n'), "{message}");
    }
    let message = refused(&GOOD.replacen("timeout = 2.5", "timeuot = 2.5", 1));
    assert!(
        message.starts_with(
            "setup: folder/parties.toml: line 3: unknown field \"timeuot\", expected one of \
             \"protocol\""
        ),
        "{message}"
    );
    let alone = GOOD
        .split("[[party]]")
        .take(2)
        .collect::<Vec<_>>()
        .join("[[party]]");
    assert!(refused(&alone).contains("1 [[party]] tables"));
    assert!(refused("").contains("party"));
}

#[test]
fn files_that_cannot_be_are_refused() {
    let missing = Config::read(Path::new("/nowhere/parties.toml"))
        .err()
        .unwrap();
    assert!(missing.to_string().contains("/nowhere/parties.toml"));
    let path = std::env::temp_dir().join(format!("tacit-config-{}.toml", std::process::id()));
    std::fs::write(&path, "#".repeat(70_000)).unwrap();
    let large = Config::read(&path).err().unwrap().to_string();
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let binary = Config::read(&path).err().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(large.contains("larger than"), "{large}");
    assert!(matches!(binary, Error::Setup { .. }));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,400}") {
        drop(parse(&text));
    }

    #[test]
    fn no_mutation_of_a_good_file_panics(at in 0..GOOD.len(), with in "\\PC{0,5}", cut in 0..20_usize) {
        prop_assume!(GOOD.is_char_boundary(at));
        let end = (at + cut).min(GOOD.len());
        let text = format!("{}{with}{}", &GOOD[..at], &GOOD[end..]);
        if let Ok(config) = parse(&text) {
            prop_assert!(config.timeout > Duration::ZERO);
            prop_assert!(config.addresses(false).unwrap().len() >= 2);
        }
    }
}
