//! Published quotes of TDX with their collateral, which `dcap-qvl` ships as its test data: at a
//! fixed date they are accepted, and with anything altered they are not.

mod registry;

use attest::policy::Policy;
use attest::tdx::{Tdx, check_additions};
use attest::{Error, Evidence, KINDS, Kind, judge};
use dcap_qvl::quote::{Quote, Report, TDReport15Ex};
use std::fs;

/// A published quote, its collateral, and a moment at which both are valid.
struct Published {
    quote: Vec<u8>,
    collateral: serde_json::Value,
    now: u64,
}

fn published(name: &str) -> Published {
    let folder = registry::folder_of("dcap-qvl").join("sample");
    let collateral = fs::read(folder.join(format!("{name}_collateral.json"))).expect("collateral");
    let collateral = serde_json::from_slice(&collateral).expect("JSON");
    Published {
        quote: fs::read(folder.join(name)).expect("a quote"),
        now: moment(&collateral),
        collateral,
    }
}

impl Published {
    /// Returns a policy with that collateral, in a folder of this test's own.
    fn policy(&self, measurement: &[u8], rest: &str) -> attest::Result<Policy> {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("test").replace("::", "-");
        let folder = std::env::temp_dir().join(format!("tacit-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("c.json"), self.collateral.to_string()).expect("written");
        let text = format!(
            "kind = \"tdx\"\nmeasurements = [\"{}\"]\ncollateral = \"c.json\"\n{rest}",
            attest::hex(measurement)
        );
        fs::write(folder.join("policy.toml"), text).expect("written");
        let policy = Policy::read(&folder.join("policy.toml"));
        fs::remove_dir_all(&folder).expect("removed");
        policy
    }

    fn report(&self) -> attest::Report {
        let policy = self.policy(&[0; 32], ALL).expect("a policy");
        Tdx.check(&self.quote, &policy, self.now)
            .expect("a valid quote")
    }

    fn judged(&self, policy: &Policy, data: &[u8; 64]) -> attest::Result<attest::Verdict> {
        let evidence = Evidence::of(&Tdx, self.quote.clone()).encode();
        judge(&evidence, policy, Some(data), self.now)
    }
}

/// Accepts every status but a revoked one.
const ALL: &str = "statuses = [\"UpToDate\", \"SWHardeningNeeded\", \"ConfigurationNeeded\", \
    \"ConfigurationAndSWHardeningNeeded\", \"OutOfDate\", \"OutOfDateConfigurationNeeded\", \
    \"TDRelaunchAdvised\", \"TDRelaunchAdvisedConfigurationNeeded\"]\n";

/// Published quotes of platforms with a known status.
const QUOTES: [&str; 2] = ["tdx_quote", "tdx_quote_td15ex"];

/// A published quote of a platform that is older than everything in its collateral.
const TOO_OLD: &str = "tdx_quote_outdated";

fn all() -> impl Iterator<Item = Published> {
    QUOTES.into_iter().map(published)
}

/// Returns a moment at which the collateral is valid: a minute after the latest of its dates.
fn moment(collateral: &serde_json::Value) -> u64 {
    let dates = ["tcb_info", "qe_identity"].map(|part| {
        let text = collateral[part].as_str().expect("text");
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        seconds(value["issueDate"].as_str().expect("a date"))
    });
    dates.into_iter().max().unwrap_or_default() + 60
}

/// Returns the seconds since 1970 of a date such as 2025-06-19T10:16:03Z.
fn seconds(date: &str) -> u64 {
    let number = |from: usize, to: usize| date[from..to].parse::<i64>().expect("a number");
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719_469;
    let of_day = number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19);
    (days * 86_400 + of_day) as u64
}

#[test]
fn published_quotes_are_accepted_at_their_date() {
    for each in all() {
        let report = each.report();
        let policy = each.policy(&report.measurement, ALL).unwrap();
        let verdict = each.judged(&policy, &report.data).unwrap();
        assert_eq!(verdict.kind, "tdx");
        assert_eq!(verdict.tcb, report.tcb);
    }
}

#[test]
fn a_platform_that_is_too_old_is_refused_whatever_the_policy() {
    let each = published(TOO_OLD);
    let policy = each.policy(&[0; 32], ALL).unwrap();
    let refused = Tdx.check(&each.quote, &policy, each.now).unwrap_err();
    assert!(matches!(refused, Error::Chain(_)), "{refused}");
}

/// Every byte of the header and the report, which the platform's key signs: 0 altered ones are
/// accepted. (What follows has parts that say nothing, such as the root's certificate, in place of
/// which the vendor's own is used.)
#[test]
fn every_altered_byte_of_a_quote_is_refused() {
    for each in all() {
        let report = each.report();
        let policy = each.policy(&report.measurement, ALL).unwrap();
        let mut accepted = Vec::new();
        let signed = Quote::parse(&each.quote).expect("a quote").signed_length();
        assert!(signed >= 632, "only {signed} bytes are signed");
        for at in 0..signed {
            let mut quote = each.quote.clone();
            quote[at] ^= 1;
            let altered = Published {
                quote,
                collateral: serde_json::Value::Null,
                now: each.now,
            };
            if altered.judged(&policy, &report.data).is_ok() {
                accepted.push(at);
            }
        }
        assert!(
            accepted.is_empty(),
            "altered and accepted: bytes {accepted:?}"
        );
    }
}

/// Each field of the collateral altered once: none is accepted.
#[test]
fn every_altered_field_of_the_collateral_is_refused() {
    for each in all() {
        let report = each.report();
        let names: Vec<String> = each
            .collateral
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        // The list is verified by the quote's own chain, and this copy of it is not used.
        for name in names
            .into_iter()
            .filter(|name| name != "pck_crl_issuer_chain")
        {
            let mut altered = Published {
                quote: each.quote.clone(),
                collateral: each.collateral.clone(),
                now: each.now,
            };
            let text = altered.collateral[&name].as_str().expect("text").to_owned();
            // The first half of a chain is the certificate that signs; its root is not used.
            let places = [text.len() / 4, text.len() / 2, 2 * text.len() / 3];
            let most = if name.ends_with("chain") {
                1
            } else {
                places.len()
            };
            for at in places.into_iter().take(most) {
                let old = text.as_bytes()[at];
                let new = if old == b'1' { '2' } else { '1' };
                let mut changed = text.clone();
                changed.replace_range(at..=at, &new.to_string());
                altered.collateral[&name] = changed.into();
                let judged = altered
                    .policy(&report.measurement, ALL)
                    .and_then(|policy| altered.judged(&policy, &report.data));
                assert!(judged.is_err(), "{name} at {at}");
            }
        }
    }
}

#[test]
fn what_the_policy_does_not_accept_is_refused() {
    for mut each in all() {
        let report = each.report();
        let good = each.policy(&report.measurement, ALL).unwrap();
        let mut data = report.data;
        data[63] ^= 1;
        assert_eq!(each.judged(&good, &data), Err(Error::Data));
        let other = each.policy(&[1; 32], ALL).unwrap();
        let refused = each.judged(&other, &report.data);
        assert_eq!(
            refused,
            Err(Error::Measurement(attest::hex(&report.measurement)))
        );
        let later = each.policy(
            &report.measurement,
            &format!("{ALL}least_evaluation = 9999"),
        );
        let refused = each.judged(&later.unwrap(), &report.data);
        assert!(matches!(refused, Err(Error::Tcb { .. })), "{refused:?}");
        let default = each.policy(&report.measurement, "").unwrap();
        let judged = each.judged(&default, &report.data);
        assert_eq!(judged.is_ok(), report.tcb == "UpToDate", "{judged:?}");
        // Collateral has an end, and a beginning.
        for now in [each.now + 10 * 366 * 86_400, 1_500_000_000] {
            each.now = now;
            let refused = each.judged(&good, &report.data);
            assert!(matches!(refused, Err(Error::Chain(_))), "{refused:?}");
        }
    }
}

/// Fields that are not part of a measurement must say that nothing has been added to the guest.
#[test]
fn what_was_added_to_a_guest_is_refused() {
    let quote = Quote::parse(&published("tdx_quote_td15ex").quote).expect("a quote");
    check_additions(&quote.report).expect("nothing was added");
    let Report::TD15Ex(good) = quote.report else {
        panic!("a report of TDX 1.5 with additions");
    };
    let changes: [fn(&mut TDReport15Ex); 8] = [
        |report| report.base.mr_service_td[47] = 1,
        |report| report.init_service_td_hash[0] = 1,
        |report| report.init_service_td_attributes[7] = 1,
        |report| report.cur_service_td_hash[47] = 1,
        |report| report.cur_service_td_attributes[0] = 1,
        |report| report.vmid = 1,
        |report| report.dev_info[47] = 1,
        |report| report.base.tee_tcb_svn2[2] -= 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut changed = good;
        change(&mut changed);
        let refused = check_additions(&Report::TD15Ex(changed)).expect_err("refused");
        assert!(matches!(refused, Error::Guest(_)), "{number}: {refused}");
        let earlier = check_additions(&Report::TD15(changed.base));
        assert_eq!(earlier.is_err(), [0, 7].contains(&number), "{number}");
    }
    let mut newer = good;
    newer.base.tee_tcb_svn2[0] += 1;
    check_additions(&Report::TD15Ex(newer)).expect("a newer module");
    // A module of a newer version counts its updates anew.
    let mut pair = good;
    (pair.base.base.tee_tcb_svn[1], pair.base.base.tee_tcb_svn[0]) = (1, 5);
    for (version, is_older) in [
        ((1, 5), false),
        ((2, 0), false),
        ((1, 4), true),
        ((0, 9), true),
    ] {
        (pair.base.tee_tcb_svn2[1], pair.base.tee_tcb_svn2[0]) = version;
        let checked = check_additions(&Report::TD15Ex(pair));
        assert_eq!(checked.is_err(), is_older, "{version:?}");
    }
}

/// Another kind of evidence is refused before it is looked at.
#[test]
fn a_kind_is_not_taken_for_another() {
    let each = all().next().unwrap();
    let policy = each.policy(&[0; 32], ALL).unwrap();
    for kind in KINDS {
        let evidence = Evidence::of(kind, each.quote.clone()).encode();
        let refused = judge(&evidence, &policy, None, each.now).unwrap_err();
        if kind.name() != "tdx" {
            assert!(matches!(refused, Error::Kind { .. }), "{refused}");
        }
    }
}
