//! Examination whether the session of a `parties.toml` is possible: one check after another, each
//! with a remedy.

use crate::attestation::{Attestation, Verdict};
use crate::options::protocol_of;
use crate::{Error, Fault, Options, Result, Voice, Words};
use net::config::Config;
use net::tcp::period;
use net::tcp::{self, Found, Identity, Listener};
use net::{DEALER, Members};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest accepted difference between two clocks, in seconds.
const CLOCKS: u64 = 60;

/// Result of one check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Name of the check.
    pub check: String,
    /// Whether a session is possible as far as this check goes.
    pub ok: bool,
    /// Finding of the check.
    pub detail: String,
    /// Remedy if the check failed.
    pub remedy: String,
}

/// Checks so far.
struct Report {
    checks: Vec<Check>,
    words: &'static Words,
}

/// Member that examines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// No member: only the files are examined, and no peer can be met.
    Nobody,
    /// A party, by its number.
    Party(usize),
    /// The dealer.
    Dealer,
}

/// Examines a configuration, this member's files, and the addresses of the others, for at most
/// `most`. `words` are the words of texts for the members.
#[must_use]
pub fn examine(path: &Path, who: Who, most: Duration, words: &'static Words) -> Vec<Check> {
    let mut report = Report {
        checks: Vec::new(),
        words,
    };
    let Some((config, options)) = report.configuration(path) else {
        return report.checks;
    };
    let Some(dealer) = report.value("dealer", options.settings.has_dealer()) else {
        return report.checks;
    };
    let Some(addresses) = report.value("addresses", config.addresses(dealer)) else {
        return report.checks;
    };
    let member = match who {
        Who::Nobody => None,
        Who::Party(party) => Some(party),
        Who::Dealer => Some(config.parties()),
    };
    if let Some(member) = member.filter(|member| *member >= addresses.len()) {
        let last = config.parties() - 1;
        let (own, members) = (words.own, words.members);
        let remedy =
            format!("give this {own}'s own number; the dealer belongs to source \"dealer\" alone");
        let detail = format!("there is no member {member}; the {members} are 0 to {last}");
        report.wrong(&format!("this {own}"), detail, &remedy);
        return report.checks;
    }
    for (member, address) in addresses.iter().enumerate() {
        let check = format!("address of {}", report.name(&config, member));
        report.address(&check, address);
    }
    report.certificates(&config, addresses.len());
    let identities = report.keys(&config, member, addresses.len(), dealer);
    let Some(member) = member else {
        return report.checks;
    };
    let listener = report.listening(&config, member);
    if let (Some(identity), Some(parameters)) =
        (identities, report.value("protocol", options.parameters()))
    {
        let found = tcp::look(
            listener.as_ref(),
            member,
            &addresses,
            Members {
                dealer,
                words,
                network: None,
            },
            &identity,
            &parameters,
            most,
        );
        for (peer, found) in found.into_iter().flatten().enumerate() {
            if peer != member {
                let name = report.name(&config, peer);
                report.peer(&name, &addresses[peer], found, &parameters);
            }
        }
    }
    report.checks
}

impl Report {
    fn name(&self, config: &Config, member: usize) -> String {
        let is_dealer = member == config.parties();
        self.words.name(if is_dealer { DEALER } else { member })
    }

    fn well(&mut self, check: &str, detail: impl Into<String>) {
        self.checks.push(Check {
            check: check.to_owned(),
            ok: true,
            detail: detail.into(),
            remedy: String::new(),
        });
    }

    fn wrong(&mut self, check: &str, detail: impl Into<String>, remedy: &str) {
        self.checks.push(Check {
            check: check.to_owned(),
            ok: false,
            detail: detail.into(),
            remedy: remedy.to_owned(),
        });
    }

    /// Reports a fault, with the remedy `otherwise` if it has none.
    fn fault(&mut self, check: &str, fault: Fault, otherwise: &str) {
        let remedy = Some(fault.remedy.as_str()).filter(|remedy| !remedy.is_empty());
        self.wrong(check, fault.what.as_str(), remedy.unwrap_or(otherwise));
    }

    /// Returns a value, or reports its error. Reports nothing for a value; an error of the files
    /// has its own remedy.
    fn value<T>(&mut self, check: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let fault = match error {
                    Error::Setup { fault } => fault.said(&Voice::own(self.words)),
                    other => other.reason(&Voice::own(self.words)).into(),
                };
                self.fault(check, fault, "correct the configuration");
                None
            }
        }
    }

    fn configuration(&mut self, path: &Path) -> Option<(Config, Options)> {
        let config = self.value("configuration", Config::read(path))?;
        let options = Options::new(protocol_of(&config), config.source.clone(), config.timeout);
        let options = self.value("protocol", options)?;
        let options = self.attestation(&config, options)?;
        let model = options.settings.threat_model(config.parties());
        let model = self.value("protocol", model)?;
        let seconds = config.timeout.as_secs_f64();
        self.well("configuration", format!("{model}; timeout {seconds} s"));
        Some((config, options))
    }

    /// Checks the policy, and that this machine makes evidence that it accepts.
    fn attestation(&mut self, config: &Config, options: Options) -> Option<Options> {
        let attestation = Attestation::of_dealer(config);
        let attestation = self.value("attestation", attestation)?;
        if let Some(attestation) = &attestation {
            let found = attestation.examine();
            if let Some(verdict) = self.value("attestation", found) {
                let Verdict {
                    kind,
                    measurement,
                    tcb,
                } = verdict;
                let detail = format!("{kind}, firmware {tcb}, measurement {measurement}");
                self.well("attestation", detail);
            }
        }
        self.value("attestation", options.attested(attestation))
    }

    fn address(&mut self, check: &str, address: &str) {
        match address.to_socket_addrs().map(|mut all| all.next()) {
            Ok(Some(found)) if found.to_string() == address => self.well(check, address),
            Ok(Some(found)) => self.well(check, format!("{address} is {found}")),
            _ => self.wrong(
                check,
                format!("the host of {address} cannot be resolved"),
                "correct the address, or ask the administrator of this network",
            ),
        }
    }

    fn certificates(&mut self, config: &Config, members: usize) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs());
        for member in 0..members {
            let check = format!("certificate of {}", self.name(config, member));
            let pem = self.value(&check, config.certificate(member));
            match pem.and_then(|pem| period(&pem)) {
                None => {}
                Some(period) if now < period.not_before => self.wrong(
                    &check,
                    format!("it is valid only from {}", period.begins()),
                    "check the clock of this machine, and of the one that made it",
                ),
                Some(period) if now > period.not_after => self.wrong(
                    &check,
                    format!("it expired at {}", period.ends()),
                    "its owner must make a new one and give it to all",
                ),
                Some(period) => self.well(&check, format!("valid until {}", period.ends())),
            }
        }
    }

    /// Checks all keys that are on this machine; returns the identity of this member, if there is
    /// one.
    fn keys(
        &mut self,
        config: &Config,
        member: Option<usize>,
        members: usize,
        dealer: bool,
    ) -> Option<Identity> {
        let mut own = None;
        let here = |other: &usize| config.has_key(*other) || Some(*other) == member;
        for other in (0..members).filter(here) {
            let check = format!("key of {}", self.name(config, other));
            let identity = config.identity(other, dealer).and_then(|identity| {
                identity.check(other, dealer)?;
                Ok(identity)
            });
            let identity = self.value(&check, identity);
            if identity.is_some() {
                self.well(&check, "fits its certificate; nobody else may read it");
            }
            if Some(other) == member {
                own = identity;
            }
        }
        own
    }

    fn listening(&mut self, config: &Config, member: usize) -> Option<Listener> {
        let bound = config.listen_address(member).and_then(Listener::bind);
        let listener = self.value("listening", bound)?;
        self.well("listening", format!("can, on {}", listener.local_address()));
        Some(listener)
    }

    fn peer(&mut self, name: &str, address: &str, found: Found, ours: &str) {
        match found {
            Found::Nobody => self.well(
                name,
                format!("its machine answers; nobody listens at {address} yet"),
            ),
            Found::Nothing(cause) => self.wrong(
                name,
                format!("nothing answers at {address}: {cause}"),
                "check the address, the firewalls and the network between",
            ),
            Found::Wrong(fault) => {
                let fault = fault.said(&Voice::own(self.words));
                self.fault(name, fault, "check its address and certificate");
            }
            Found::Member { parameters, ahead } => {
                if parameters == ours {
                    self.well(name, format!("is there, with the same {parameters}"));
                } else {
                    let Words { own, members, .. } = self.words;
                    self.wrong(
                        name,
                        format!("is there with \"{parameters}\", this {own} with \"{ours}\""),
                        &format!("start all {members} with the same settings and release"),
                    );
                }
                let check = format!("clock of {name}");
                if ahead.unsigned_abs() <= CLOCKS {
                    self.well(&check, "agrees with this machine's");
                } else {
                    let direction = if ahead > 0 { "ahead of" } else { "behind" };
                    let seconds = ahead.unsigned_abs();
                    self.wrong(
                        &check,
                        format!("is {seconds} s {direction} this machine's"),
                        "set both clocks, for example by NTP",
                    );
                }
            }
        }
    }
}
