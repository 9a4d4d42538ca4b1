//! AMD SEV-SNP: reports of versions 2 to 5, checked offline against collateral in a file.
//!
//! Evidence is a report, and after it the table of certificates that the host handed out with it,
//! which may be empty. The key that signs reports is certified for one chip and one set of
//! versions of its firmware ("VCEK"), or for a cloud's provider ("VLEK"); its certificate is in
//! the table or in the collateral. The collateral also has AMD's certificates and its revocation
//! list.
//!
//! AMD publishes no statuses of firmware: a policy names the least versions, for each generation
//! of processors that it accepts.
//!
//! | module | content |
//! | --- | --- |
//! | `report` | a report's fields and signature |
//! | `table` | the certificates that the host hands out |
//! | `signed`, `certificate`, `revocation` | X.509 |
//! | `collateral`, `chain`, `roots` | the way from a key to AMD's root |

mod certificate;
mod chain;
mod collateral;
mod report;
mod revocation;
mod roots;
mod signed;
mod table;
#[cfg(test)]
mod tests;

use crate::binding::DATA;
use crate::error::{Error, Result, hex};
use crate::kind::{Kind, Report};
use crate::policy::{GuestRules, Policy};
use crate::tsm;
use crate::versions::{Generation, Versions};
use certificate::Certificate;
use chain::Chain;
use collateral::Collateral;
use report::{CXL_ALLOWED, DEBUG_ALLOWED, MIGRATION_ALLOWED, Signer, Unverified};
use roots::Root;

/// Name of the kind.
pub const NAME: &str = "sev-snp";

/// AMD SEV-SNP, with the roots that are accepted.
pub struct SevSnp {
    roots: &'static [Root],
}

impl SevSnp {
    /// The kind with AMD's own roots.
    pub const AMD: Self = Self { roots: &roots::AMD };

    /// Finds the certificate of the key that a report says has signed it, whose chain holds. If
    /// there are several, one that holds is enough.
    fn chain<'a>(
        &self,
        report: &Unverified<'_>,
        handed_out: &'a [Certificate],
        collateral: &'a Collateral,
        now: u64,
    ) -> Result<Chain<'a>> {
        let mut refusal = None;
        for leaf in handed_out.iter().chain(&collateral.certificates) {
            let generations = [Generation::Milan, Generation::Genoa, Generation::Turin];
            let mut claims = generations
                .map(|each| chain::names(leaf, report, each))
                .into_iter();
            if !claims.any(|claim| claim == Ok(true)) {
                continue;
            }
            let chain = Chain::of(leaf, collateral, self.roots);
            let checked = chain.and_then(|chain| chain.check(collateral, now).map(|()| chain));
            match checked {
                Ok(chain) if chain.is_of(report)? => return Ok(chain),
                Ok(_) => {}
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.unwrap_or_else(|| {
            Error::Chain(format!(
                "neither the host nor the collateral has the certificate of the key that signs \
                 reports of chip {} with versions {}: add it to the collateral",
                hex(&report.chip()),
                hex(&report.reported())
            ))
        }))
    }
}

impl Kind for SevSnp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn number(&self) -> u8 {
        2
    }

    fn measurement_bytes(&self) -> usize {
        48
    }

    fn provider(&self) -> &'static str {
        "sev_guest"
    }

    fn make_in(&self, folder: &std::path::Path, data: &[u8; DATA]) -> Result<Vec<u8>> {
        let answer = tsm::read(folder, self.name(), self.provider(), data)?;
        // What stands after the report would be read as the table.
        if answer.report.len() != report::BYTES {
            return Err(Error::Machine(format!(
                "its kernel gave a report of {} bytes, and those of SEV-SNP have {}",
                answer.report.len(),
                report::BYTES
            )));
        }
        Ok([answer.report, answer.certificates].concat())
    }

    fn check(&self, evidence: &[u8], policy: &Policy, now: u64) -> Result<Report> {
        let (bytes, table) = evidence
            .split_at_checked(report::BYTES)
            .ok_or_else(|| Error::Malformed("it is shorter than a report of SEV-SNP".to_owned()))?;
        let report = Unverified::of(bytes)?;
        // A host may hand out certificates that cannot be read, besides one that can.
        let handed_out = table::signers(table)?.into_iter();
        let handed_out: Vec<_> = handed_out
            .filter_map(|bytes| Certificate::of(bytes).ok())
            .collect();
        let collateral = collateral(policy)?;
        let chain = self.chain(&report, &handed_out, &collateral, now)?;
        report.verify(chain.key()?)?;
        let rules = rules(policy)?;
        let reported = check_versions(&report, chain.generation, rules)?;
        check_guest(&report, rules)?;
        Ok(Report {
            measurement: report.measurement().to_vec(),
            data: report.data(),
            debug: report.guest_policy() & DEBUG_ALLOWED != 0,
            tcb: format!("{}: {reported}", chain.generation),
        })
    }

    fn check_policy(&self, policy: &Policy) -> Result<()> {
        rules(policy)?;
        collateral(policy).map(drop)
    }
}

fn rules(policy: &Policy) -> Result<&GuestRules> {
    policy.guest().ok_or_else(|| {
        Error::Policy(
            "kind \"sev-snp\" needs least_tcb, the least versions of the firmware".to_owned(),
        )
    })
}

fn collateral(policy: &Policy) -> Result<Collateral> {
    let file = policy.collateral().ok_or_else(|| {
        Error::Policy("kind \"sev-snp\" needs collateral, AMD's certificates in PEM".to_owned())
    })?;
    Collateral::of(file)
}

/// Checks all versions in a report, and returns those by which its key was derived.
fn check_versions(
    report: &Unverified<'_>,
    generation: Generation,
    rules: &GuestRules,
) -> Result<Versions> {
    let least = rules.least.of(generation).ok_or_else(|| Error::Tcb {
        found: format!("that of {generation}"),
        accepted: "only generations that least_tcb names".to_owned(),
    })?;
    for (which, bytes) in report.versions() {
        let found = Versions::of(generation, bytes);
        if !found.is_at_least(least) {
            return Err(Error::Tcb {
                found: format!("{which}: {found}"),
                accepted: format!("from {least} on"),
            });
        }
    }
    Ok(Versions::of(generation, report.reported()))
}

/// Checks how the guest was started.
fn check_guest(report: &Unverified<'_>, rules: &GuestRules) -> Result<()> {
    let refused = |what: String| Err(Error::Guest(what));
    if report.guest_policy() & MIGRATION_ALLOWED != 0 {
        return refused("it may move to another machine".to_owned());
    }
    if report.guest_policy() & CXL_ALLOWED != 0 {
        return refused("its memory may lie in devices on CXL".to_owned());
    }
    if rules.demand_alias_check && !report.is_alias_checked() {
        return refused(
            "its firmware has not checked the memory for aliases, and the policy sets \
             demand_alias_check = true"
                .to_owned(),
        );
    }
    if report.signer()? == Signer::Vlek && !rules.allow_vlek {
        return refused(
            "its report is signed by the key of a cloud's provider, and the policy does not set \
             allow_vlek = true"
                .to_owned(),
        );
    }
    if report.has_smt() && !rules.allow_smt {
        return refused(
            "its cores may run two threads, and the policy does not set allow_smt = true"
                .to_owned(),
        );
    }
    if report.level() != rules.vmpl {
        return refused(format!(
            "the software that attests has privilege level {}, and the policy accepts {}",
            report.level(),
            rules.vmpl
        ));
    }
    Ok(())
}
