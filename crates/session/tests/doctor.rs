//! Tests of what the doctor reports of certificates that have expired or are not valid yet.

mod folder;

use folder::Folder;
use net::certificates::generate_for_period;
use session::Words;
use session::doctor::{Check, Who, examine};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;

/// Returns what party 0 is told of a configuration in which the certificate of `whose` is valid
/// from `days[0]` to `days[1]` days from now.
fn examined(whose: usize, days: [i64; 2]) -> Vec<Check> {
    let folder = Folder::new("", 3, false);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_secs()).unwrap();
    let [from, to] = days.map(|days| now + days * DAY);
    let made = generate_for_period(whose, from, to).unwrap();
    folder.replace(whose, &made);
    examine(
        &folder.config(),
        Who::Party(0),
        Duration::from_millis(100),
        &Words::PARTIES,
    )
}

fn check<'c>(checks: &'c [Check], name: &str) -> &'c Check {
    let found = checks.iter().find(|check| check.check == name);
    found.unwrap_or_else(|| panic!("{name} was not checked: {checks:?}"))
}

#[test]
fn a_certificate_that_is_valid_is_well() {
    for whose in [0, 2] {
        let checks = examined(whose, [-1, 1]);
        assert!(checks.iter().all(|check| check.ok), "{checks:?}");
    }
}

#[test]
fn a_certificate_that_has_expired_is_named_with_its_remedy() {
    for whose in [0, 2] {
        let checks = examined(whose, [-3, -1]);
        let found = check(&checks, &format!("certificate of party {whose}"));
        assert!(!found.ok && found.detail.starts_with("it expired at 20"));
        assert_eq!(
            found.remedy,
            "its owner must make a new one and give it to all"
        );
        let other = check(&checks, "certificate of party 1");
        assert!(other.ok && other.detail.starts_with("valid until 20"));
    }
}

/// An Ed25519 certificate of an authority, valid for a hundred years, with which no link can be
/// made. The tests in Python cover every kind that is refused.
const OTHER_KIND: &str = "-----BEGIN CERTIFICATE-----
MIIBSTCB/KADAgECAhR4807M6aPb6HaYD88OGxUE+p+Q2TAFBgMrZXAwDDEKMAgG
A1UEAwwBeDAgFw0yNjExMjcwMTUyNTJaGA8yMTI1MDYyMTAxNTI1MlowDDEKMAgG
A1UEAwwBeDAqMAUGAytlcAMhAKzKUSqMRb4wPCu+LNnj0EASRB1skwbV7l/J1WrN
GimAo24wbDAdBgNVHQ4EFgQUNbVBjt08h85hoWB9nb2JkZ0xkDUwHwYDVR0jBBgw
FoAUNbVBjt08h85hoWB9nb2JkZ0xkDUwDwYDVR0TAQH/BAUwAwEB/zAZBgNVHREE
EjAQgg5jbGllbnQtMS50YWNpdDAFBgMrZXADQQATNB2BQ0X86+vDAjNnqzcG740k
XsU6LxR9Cxp8rol06zW9s62fhtC7Gm8sbyewuN8uAD8EfQf6jLR7N9bf1ysO
-----END CERTIFICATE-----
";

#[test]
fn a_certificate_of_another_kind_is_refused_where_it_is_read_by_its_file() {
    let folder = Folder::new("", 3, false);
    let file = folder.0.join("2.pem");
    std::fs::write(&file, OTHER_KIND).unwrap();
    let checks = examine(
        &folder.config(),
        Who::Party(0),
        Duration::from_millis(100),
        &Words::PARTIES,
    );
    let found = check(&checks, "certificate of party 2");
    let said = format!(
        "the certificate of party 2, {}, is damaged, or of a kind that tacit does not use",
        file.display()
    );
    assert!(!found.ok && found.detail == said, "{found:?}");
    assert!(
        found
            .remedy
            .starts_with("have one made by `tacit certificates`: ECDSA P-256")
    );
    // The certificate is refused before any other member is called.
    let config = net::config::Config::read(&folder.config()).unwrap();
    let refused = config.identity(0, false).err().unwrap().to_string();
    assert_eq!(refused, format!("setup: {said}; {}", found.remedy));
}

#[test]
fn a_certificate_that_is_not_valid_yet_points_at_the_clock() {
    let checks = examined(2, [1, 3]);
    let found = check(&checks, "certificate of party 2");
    assert!(!found.ok && found.detail.starts_with("it is valid only from 20"));
    assert_eq!(
        found.remedy,
        "check the clock of this machine, and of the one that made it"
    );
}
