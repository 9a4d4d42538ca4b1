//! Evidence of a root of the test's own, with exactly one defect each.

#[path = "../../../tests/kernel/mod.rs"]
mod kernel;
mod made;
#[cfg(target_os = "linux")]
mod published;
#[cfg(target_os = "linux")]
#[path = "../../../tests/registry/mod.rs"]
mod registry;

use super::{NAME, report};
use crate::evidence::judge_as;
use crate::kind::Kind;
use crate::{Error, Evidence, Policy, Result, Verdict};
use kernel::Kernel;
use made::{DATA, LEAF, LIST, MEASUREMENT, MIDDLE, Made, NOW, Plan, ROOT, SERIALS, key};
use std::fs;

/// Of a provider's key, and of a chip's.
const PROVIDER: &str = "1.3.6.1.4.1.3704.1.5";
const CHIP: &str = "1.3.6.1.4.1.3704.1.4";

const RULES: &str = "allow_smt = true\nallow_vlek = true\n[least_tcb]\n\
    milan = { bootloader = 3, tee = 1, snp = 8, microcode = 115 }\n\
    genoa = { bootloader = 3, tee = 1, snp = 8, microcode = 115 }\n\
    turin = { fmc = 2, bootloader = 3, tee = 1, snp = 8, microcode = 115 }\n";

/// Returns a policy with that collateral, from files as a user has them.
fn policy(collateral: &str, measurement: &[u8], rules: &str) -> Result<Policy> {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("test").replace("::", "-");
    let folder = std::env::temp_dir().join(format!("tacit-snp-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("amd.pem"), collateral).unwrap();
    let text = format!(
        "kind = \"{NAME}\"\nmeasurements = [\"{}\"]\ncollateral = \"amd.pem\"\n{rules}",
        crate::hex(measurement)
    );
    fs::write(folder.join("policy.toml"), text).unwrap();
    let policy = Policy::read(&folder.join("policy.toml"));
    fs::remove_dir_all(&folder).unwrap();
    policy
}

fn judged_by(made: &Made, policy: &Policy) -> Result<Verdict> {
    let evidence = Evidence::of(&made.kind, made.body.clone()).encode();
    judge_as(&made.kind, &evidence, policy, Some(&DATA), NOW)
}

fn judged(made: &Made) -> Result<Verdict> {
    judged_by(made, &policy(&made.collateral(), &MEASUREMENT, RULES)?)
}

#[test]
fn evidence_without_a_defect_is_accepted() {
    let of_provider = Plan {
        is_provider: true,
        ..Plan::good()
    };
    let from_collateral = Plan {
        is_handed_out: false,
        ..Plan::good()
    };
    let tagged = Plan {
        tagged_chip: true,
        list_extension: Some(false),
        version: 3,
        ..Plan::good()
    };
    for plan in [
        Plan::good(),
        of_provider,
        from_collateral,
        tagged,
        Plan::turin(),
    ] {
        let verdict = judged(&plan.make()).unwrap();
        assert_eq!(verdict.kind, NAME);
        assert_eq!(verdict.measurement, crate::hex(&MEASUREMENT));
        assert!(
            verdict
                .tcb
                .ends_with("bootloader 3, tee 1, snp 8, microcode 115")
        );
    }
}

/// A defect by name, the refusal of its evidence, and how it is made.
type Defect = (&'static str, &'static str, fn(&mut Plan));

const OF_CHAIN: [Defect; 22] = [
    ("root", "not a root of AMD's", |plan| {
        plan.is_root_known = false
    }),
    ("root too old", "ARK-Own is not valid", |plan| {
        plan.dates[ROOT].1 = NOW - 1
    }),
    ("root too new", "ARK-Own is not valid", |plan| {
        plan.dates[ROOT].0 = NOW + 1
    }),
    ("middle too old", "SEV-Own is not valid", |plan| {
        plan.dates[MIDDLE].1 = NOW - 1
    }),
    ("middle too new", "SEV-Own is not valid", |plan| {
        plan.dates[MIDDLE].0 = NOW + 1
    }),
    ("leaf too old", "SEV-VCEK is not valid", |plan| {
        plan.dates[LEAF].1 = NOW - 1
    }),
    ("leaf too new", "SEV-VCEK is not valid", |plan| {
        plan.dates[LEAF].0 = NOW + 1
    }),
    ("list too old", "the revocation list is not valid", |plan| {
        plan.dates[LIST].1 = NOW - 1
    }),
    ("list too new", "the revocation list is not valid", |plan| {
        plan.dates[LIST].0 = NOW + 1
    }),
    ("middle signed", "no certificate of CN=ARK-Own", |plan| {
        plan.signers[MIDDLE] = key("other")
    }),
    ("leaf signed", "no certificate of CN=SEV-Own", |plan| {
        plan.signers[LEAF] = key("other")
    }),
    ("list signed", "signature of the revocation list", |plan| {
        plan.signers[LIST] = key("other")
    }),
    ("leaf of the root", "signed by the root, and not", |plan| {
        (plan.leaf_issuer, plan.signers[LEAF]) = (Some("ARK-Own"), key("root"));
    }),
    ("middle certifies", "no certificate of CN=SEV-Own", |plan| {
        plan.may_certify = false
    }),
    (
        "no list",
        "needs AMD's certificates and its revocation list",
        |plan| plan.has_list = false,
    ),
    ("critical", "critical extension", |plan| {
        plan.list_extension = Some(true)
    }),
    ("list without end", "the revocation list is not", |plan| {
        plan.has_next = false
    }),
    ("critical entry", "critical extension", |plan| {
        (plan.revoked, plan.entry_extension) = (Some(99), Some(true))
    }),
    (
        "leaf revoked with a reason",
        "SEV-VCEK is revoked",
        |plan| (plan.revoked, plan.entry_extension) = (Some(SERIALS[LEAF]), Some(false)),
    ),
    ("root revoked", "ARK-Own is revoked", |plan| {
        plan.revoked = Some(SERIALS[ROOT])
    }),
    ("middle revoked", "SEV-Own is revoked", |plan| {
        plan.revoked = Some(SERIALS[MIDDLE])
    }),
    ("leaf revoked", "SEV-VCEK is revoked", |plan| {
        plan.revoked = Some(SERIALS[LEAF])
    }),
];

const OF_REPORT: [Defect; 31] = [
    ("version 1", "version 1", |plan| plan.version = 1),
    ("version 6", "version 6", |plan| {
        plan.before = |report| report[0] = 6
    }),
    ("algorithm", "ECDSA", |plan| {
        plan.before = |report| report[0x34] = 2
    }),
    ("unsigned", "no key", |plan| {
        plan.before = |report| report[0x48] = 2
    }),
    ("no key", "no key", |plan| {
        plan.before = |report| report[0x48] = 0b11100
    }),
    ("key's bits", "no key", |plan| {
        plan.before = |report| report[0x49] = 1
    }),
    ("reserved 4c", "reserved", |plan| {
        plan.before = |report| report[0x4f] = 1
    }),
    ("reserved 188", "reserved", |plan| {
        plan.before = |report| report[0x188] = 1
    }),
    ("reserved 19f", "reserved", |plan| {
        plan.before = |report| report[0x19f] = 1
    }),
    ("reserved 1eb", "reserved", |plan| {
        plan.before = |report| report[0x1eb] = 1
    }),
    ("reserved 1ef", "reserved", |plan| {
        plan.before = |report| report[0x1ef] = 1
    }),
    ("reserved 1f8", "reserved", |plan| {
        plan.before = |report| report[0x1f8] = 1
    }),
    ("reserved 29f", "reserved", |plan| {
        plan.before = |report| report[0x29f] = 1
    }),
    ("signature's 2d0", "reserved", |plan| {
        plan.after = |report| report[0x2d0] = 1
    }),
    ("signature's 318", "reserved", |plan| {
        plan.after = |report| report[0x318] = 1
    }),
    ("after 330", "reserved", |plan| {
        plan.after = |report| report[0x49f] = 1
    }),
    ("policy's bits", "no known form", |plan| {
        plan.before = |report| report[8 + 3] = 4
    }),
    ("policy's one", "no known form", |plan| {
        plan.before = |report| report[8 + 2] = 1
    }),
    ("signature", "signature of the report", |plan| {
        plan.after = |report| report[0x2a0] ^= 1
    }),
    ("debug", "debug", |plan| {
        plan.before = |report| report[8 + 2] |= 8
    }),
    ("moves", "move to another", |plan| {
        plan.before = |report| report[8 + 2] |= 4
    }),
    ("CXL", "devices on CXL", |plan| {
        plan.before = |report| report[8 + 2] |= 0x20
    }),
    ("level", "level 2", |plan| {
        plan.before = |report| report[0x30] = 2
    }),
    ("measurement", "measurement", |plan| {
        plan.before = |report| report[0x90] ^= 1
    }),
    ("data", "something else", |plan| {
        plan.before = |report| report[0x8f] ^= 1
    }),
    ("chip", "add it to the collateral", |plan| {
        plan.before = |report| report[0x1df] ^= 1
    }),
    ("reported", "add it to the collateral", |plan| {
        plan.before = |report| report[0x180] -= 1
    }),
    ("committed", "committed: boot", |plan| {
        plan.before = |report| report[0x1e0] -= 1
    }),
    ("running", "running: boot", |plan| {
        plan.before = |report| report[0x38] -= 1
    }),
    ("started", "at the guest's start: boot", |plan| {
        plan.before = |report| report[0x1f0] -= 1
    }),
    ("key of a cloud", "add it to the", |plan| {
        plan.before = |report| report[0x48] = 4
    }),
];

const OF_LEAF: [Defect; 4] = [
    ("hidden chip", "add it to the collateral", |plan| {
        plan.chip = vec![0; 64];
        plan.before = |report| report[0x1a0..0x1e0].fill(0);
    }),
    ("older", "reported: bootloader 2", |plan| {
        plan.certified[0] = 2;
        plan.before = |report| report[0x180] = 2;
    }),
    ("other versions", "add it to the collateral", |plan| {
        plan.certified[7] += 1
    }),
    ("other chip", "add it to the collateral", |plan| {
        plan.chip[63] ^= 1
    }),
];

const OF_KINDS: [Defect; 9] = [
    ("chip by the key of providers", "add it to", |plan| {
        plan.middle_name = Some("SEV-VLEK-Own")
    }),
    ("chip by another key", "add it to", |plan| {
        plan.middle_name = Some("Own")
    }),
    ("chip by name of a provider", "add it to", |plan| {
        plan.leaf_name = Some("SEV-VLEK")
    }),
    ("chip of a provider too", "add it to", |plan| {
        plan.ambiguous = Some(PROVIDER)
    }),
    ("chip of several", "add it to", |plan| {
        plan.ambiguous = Some(CHIP)
    }),
    ("provider by the key of chips", "add it to", |plan| {
        (plan.is_provider, plan.middle_name) = (true, Some("SEV-Own"))
    }),
    ("provider by name of a chip", "add it to", |plan| {
        (plan.is_provider, plan.leaf_name) = (true, Some("SEV-VCEK"))
    }),
    ("provider of chips too", "add it to", |plan| {
        (plan.is_provider, plan.ambiguous) = (true, Some(CHIP))
    }),
    ("provider of several", "add it to", |plan| {
        (plan.is_provider, plan.ambiguous) = (true, Some(PROVIDER))
    }),
];

#[test]
fn each_defect_has_its_refusal() {
    let defects = OF_CHAIN.iter().chain(&OF_REPORT);
    for (defect, names, change) in defects.chain(&OF_LEAF).chain(&OF_KINDS) {
        let mut plan = Plan::good();
        change(&mut plan);
        let refused = judged(&plan.make()).expect_err(defect).to_string();
        assert!(refused.contains(names), "{defect}: {refused}");
    }
    let turin: [Defect; 2] = [
        ("long number", "add it to the", |plan| {
            plan.before = |report| report[0x1a8] = 1
        }),
        ("reserved 208", "reserved", |plan| {
            plan.before = |report| report[0x208] = 1
        }),
    ];
    for (defect, names, change) in turin {
        let mut plan = Plan::turin();
        change(&mut plan);
        let refused = judged(&plan.make()).expect_err(defect).to_string();
        assert!(refused.contains(names), "{defect}: {refused}");
    }
}

/// Every byte of the report, of the table with the key's certificate, of all other certificates,
/// and of the revocation list: 0 altered ones are accepted.
#[test]
fn every_altered_byte_is_refused() {
    let mut made = Plan::good().make();
    let good = policy(&made.collateral(), &MEASUREMENT, RULES).unwrap();
    judged_by(&made, &good).unwrap();
    let mut accepted = Vec::new();
    for at in 0..made.body.len() {
        made.body[at] ^= 1 << (at % 8);
        if judged_by(&made, &good).is_ok() {
            accepted.push(("evidence", at));
        }
        made.body[at] ^= 1 << (at % 8);
    }
    let mut altered = |made: &mut Made, what, part: fn(&mut Made) -> &mut Vec<u8>| {
        for at in 0..part(made).len() {
            part(made)[at] ^= 1 << (at % 8);
            if judged(made).is_ok() {
                accepted.push((what, at));
            }
            part(made)[at] ^= 1 << (at % 8);
        }
    };
    altered(&mut made, "root", |made| &mut made.certificates[0]);
    altered(&mut made, "middle", |made| &mut made.certificates[1]);
    altered(&mut made, "list", |made| made.list.as_mut().unwrap());
    let leaf = Plan {
        is_handed_out: false,
        ..Plan::good()
    };
    altered(&mut leaf.make(), "leaf", |made| &mut made.certificates[2]);
    assert_eq!(accepted, [], "altered and accepted");
}

#[test]
fn what_is_cut_off_is_refused() {
    let made = Plan::good().make();
    let good = policy(&made.collateral(), &MEASUREMENT, RULES).unwrap();
    for length in 0..made.body.len() {
        let cut = Evidence::of(&made.kind, made.body[..length].to_vec()).encode();
        let judged = judge_as(&made.kind, &cut, &good, Some(&DATA), NOW);
        assert!(judged.is_err(), "{length} bytes");
    }
}

#[test]
fn the_policy_decides() {
    let made = Plan::good().make();
    let collateral = made.collateral();
    let cases = [
        (RULES.replace("allow_smt = true\n", ""), "allow_smt = true"),
        (format!("vmpl = 1\n{RULES}"), "privilege level 0"),
        (
            RULES.replace("milan", "genoa2").replace("genoa ", "milan "),
            "unknown field",
        ),
        (
            RULES.replace("milan =", "# milan ="),
            "firmware is that of Milan",
        ),
        (
            RULES.replace("microcode = 115", "microcode = 116"),
            "reported: bootloader 3",
        ),
    ];
    for (rules, names) in cases {
        let refused = policy(&collateral, &MEASUREMENT, &rules)
            .and_then(|policy| judged_by(&made, &policy))
            .expect_err(names)
            .to_string();
        assert!(refused.contains(names), "{refused}");
    }
    let leveled = Plan {
        before: |report| report[0x30] = 1,
        ..Plan::good()
    };
    let made = leveled.make();
    let level = policy(
        &made.collateral(),
        &MEASUREMENT,
        &format!("vmpl = 1\n{RULES}"),
    );
    judged_by(&made, &level.unwrap()).unwrap();
    // Each entry is part of what all members agree on.
    let of = |rules: &str| policy(&collateral, &MEASUREMENT, rules).unwrap().digest();
    for other in [
        format!("vmpl = 1\n{RULES}"),
        format!("demand_alias_check = true\n{RULES}"),
        RULES.replace("allow_vlek = true", "allow_vlek = false"),
        RULES.replace("115", "116"),
    ] {
        assert_ne!(of(RULES), of(&other), "{other}");
    }
}

/// Each list of the root's must hold: who adds a new one removes the old one.
#[test]
fn an_old_list_beside_a_new_one_is_refused() {
    let made = Plan::good().make();
    let list = |end| {
        let mut plan = Plan::good();
        plan.dates[LIST].1 = end;
        Made {
            certificates: Vec::new(),
            ..plan.make()
        }
        .collateral()
    };
    for (ends, holds) in [
        ([NOW + 1, NOW + 2], true),
        ([NOW - 1, NOW + 2], false),
        ([NOW + 1, NOW - 1], false),
    ] {
        let text = format!("{}{}{}", made.collateral(), list(ends[0]), list(ends[1]));
        let judged = policy(&text, &MEASUREMENT, RULES).and_then(|rules| judged_by(&made, &rules));
        assert_eq!(judged.is_ok(), holds, "{judged:?}");
    }
}

#[test]
fn a_providers_key_signs_only_if_the_policy_allows_it() {
    let provider = Plan {
        is_provider: true,
        ..Plan::good()
    };
    let made = provider.make();
    let rules = RULES.replace("allow_vlek = true\n", "");
    let strict = policy(&made.collateral(), &MEASUREMENT, &rules).unwrap();
    let refused = judged_by(&made, &strict).expect_err("a provider's key");
    assert!(matches!(refused, Error::Guest(_)), "{refused}");
    assert!(
        refused.to_string().contains("allow_vlek = true"),
        "{refused}"
    );
    let made = Plan::good().make();
    let strict = policy(&made.collateral(), &MEASUREMENT, &rules).unwrap();
    judged_by(&made, &strict).unwrap();
}

#[test]
fn a_check_for_aliases_may_be_demanded() {
    let rules = format!("demand_alias_check = true\n{RULES}");
    let judged = |plan: &Plan| {
        let made = plan.make();
        let policy = policy(&made.collateral(), &MEASUREMENT, &rules)?;
        judged_by(&made, &policy)
    };
    let refused = judged(&Plan::good()).expect_err("not checked").to_string();
    assert!(refused.contains("demand_alias_check"), "{refused}");
    let checked = Plan {
        before: |report| report[0x40] |= 0x20,
        ..Plan::good()
    };
    judged(&checked).unwrap();
}

/// Certificates that are of no use do no harm to those that are, nor hide what is missing.
#[test]
fn certificates_of_no_use_are_passed_over() {
    let good = Plan {
        is_handed_out: false,
        ..Plan::good()
    };
    let mut made = good.make();
    made.body.extend(made::table(false, b"no certificate"));
    judged(&made).unwrap();
    // Of the same chip and versions, but its dates are over.
    let old = Plan {
        dates: [(NOW - 1000, NOW - 1); 4],
        ..good.clone()
    };
    let mut made = good.make();
    made.certificates
        .insert(2, old.make().certificates.remove(2));
    judged(&made).unwrap();
    // Another machine's certificate, by a key that the collateral does not have.
    let other = Plan {
        chip: vec![8; 64],
        leaf_issuer: Some("SEV-Other"),
        ..good.clone()
    };
    let mut made = good.make();
    made.certificates[2] = other.make().certificates.remove(2);
    let refused = judged(&made).expect_err("no certificate").to_string();
    assert!(refused.contains("reports of chip 0909"), "{refused}");
}

#[test]
fn collateral_of_another_form_is_refused() {
    let made = Plan::good().make();
    let text = made.collateral();
    let key = include_str!("keys/other.pem");
    for (collateral, names) in [
        ("{}".to_owned(), "needs AMD's certificates"),
        (text.replace("-----END", "----END"), "PEM"),
        (format!("{text}{key}"), "no certificate and no list"),
        (text.replace("X509 CRL", "CERTIFICATE"), "cannot be read"),
    ] {
        let refused = policy(&collateral, &MEASUREMENT, RULES).expect_err(names);
        assert!(refused.to_string().contains(names), "{refused}");
    }
}

#[test]
fn what_stands_behind_a_certificate_or_list_is_refused() {
    let mut made = Plan::good().make();
    made.certificates[1].push(0);
    let refused = judged(&made).expect_err("a certificate with more after it");
    assert!(refused.to_string().contains("it is not X.509"), "{refused}");
    let mut made = Plan::good().make();
    made.list.as_mut().unwrap().push(0);
    let refused = judged(&made).expect_err("a list with more after it");
    assert!(refused.to_string().contains("it is not X.509"), "{refused}");
}

#[test]
fn tables_are_bounded() {
    let signers = super::table::signers;
    assert_eq!(signers(&[]).unwrap(), Vec::<&[u8]>::new());
    assert_eq!(signers(&[0; 24]).unwrap(), Vec::<&[u8]>::new());
    let endless = [[1; 16].to_vec(), vec![0; 8]].concat().repeat(100);
    for table in [&[0; 23][..], &[255; 48], &endless] {
        let refused = signers(table).expect_err("refused");
        assert!(matches!(refused, Error::Malformed(_)), "{refused}");
    }
}

/// Makes evidence from a folder of the kernel's, whose driver is of that name.
fn read(name: &str, driver: &str, answer: (Vec<u8>, Vec<u8>), made: &Made) -> Result<Vec<u8>> {
    let kernel = Kernel::new(name);
    std::thread::scope(|scope| {
        scope.spawn(|| kernel.serve(driver, |_| answer.clone()));
        let read = made.kind.make_in(&kernel.folder, &DATA);
        kernel.end();
        read
    })
}

#[test]
fn reports_of_the_kernel_take_the_whole_path() {
    let from_collateral = Plan {
        is_handed_out: false,
        ..Plan::good()
    };
    for (name, plan) in [("table", Plan::good()), ("without", from_collateral)] {
        let made = plan.make();
        let (report, table) = made.body.split_at(report::BYTES);
        let body = read(name, "sev_guest", (report.to_vec(), table.to_vec()), &made).unwrap();
        assert_eq!(body, made.body);
        judged(&Made { body, ..made }).unwrap();
    }
}

#[test]
fn a_kernel_without_such_reports_says_so() {
    let made = Plan::good().make();
    let (report, table) = made.body.split_at(report::BYTES);
    let other = read("driver", "tdx_guest", (report.to_vec(), Vec::new()), &made);
    let other = other.expect_err("another driver").to_string();
    assert!(other.contains("come from \"tdx_guest\""), "{other}");
    let long = read(
        "long",
        "sev_guest",
        (made.body.clone(), table.to_vec()),
        &made,
    );
    let long = long.expect_err("a report with more after it").to_string();
    assert!(long.contains("those of SEV-SNP have 1184"), "{long}");
}
