//! Intel TDX: quotes of versions 4 and 5, checked offline against collateral in a file.
//!
//! The file is JSON, as PCCS clients write it: revocation lists of the root and of the platform's
//! certificates, the TCB information and the quoting enclave's identity, with the certificates
//! that signed them. Everything in it has a date after which it is refused.

use crate::error::{Error, Result};
use crate::kind::{Kind, Report};
use crate::policy::Policy;
use dcap_qvl::quote::{Report as Body, TDReport10};
use dcap_qvl::verify::QuoteVerifier;
use dcap_qvl::{QuoteClaims, QuoteCollateralV3, QuotePolicy};

const DOMAIN: &str = "tacit 2026 attestation: measurement of TDX";

/// Bytes of the flags of a guest under debug; none of them may be set.
const UNDER_DEBUG: usize = 0;

/// Intel TDX.
pub struct Tdx;

/// Returns the measurement of a guest: the digest of everything in a report that says what was
/// started and how. These are its initial memory, the four registers that its firmware and kernel
/// extend, its configuration and owner, and its attributes.
#[must_use]
pub fn measurement(report: &TDReport10) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
    for register in [
        &report.mr_td,
        &report.rt_mr0,
        &report.rt_mr1,
        &report.rt_mr2,
        &report.rt_mr3,
        &report.mr_config_id,
        &report.mr_owner,
        &report.mr_owner_config,
    ] {
        hasher.update(register);
    }
    hasher.update(&report.td_attributes);
    hasher.update(&report.xfam);
    *hasher.finalize().as_bytes()
}

fn collateral(policy: &Policy) -> Result<QuoteCollateralV3> {
    let file = policy.collateral().ok_or_else(|| {
        Error::Policy("kind \"tdx\" needs collateral, the file of the vendor's".to_owned())
    })?;
    serde_json::from_slice(file)
        .map_err(|error| Error::Policy(format!("the collateral is not that of TDX: {error}")))
}

/// Returns what is wrong, in one line.
fn chain(error: &impl std::fmt::Display) -> Error {
    Error::Chain(format!("{error:#}").replace('\n', " "))
}

/// Checks the fields that later versions of reports have added, and which [`measurement`] leaves
/// out, so that an image has one measurement whatever version its reports are of. They must say
/// that nothing has been added: no service guest, which could move the guest to another machine; no
/// partition of it; no devices. The module that runs may be newer than the one that started the
/// guest, whose status is judged, and not older.
///
/// # Errors
/// `Guest` for anything else.
pub fn check_additions(report: &Body) -> Result<()> {
    let (later, latest) = match report {
        Body::TD15(report) => (report, None),
        Body::TD15Ex(report) => (&report.base, Some(report)),
        Body::TD10(_) | Body::SgxEnclave(_) => return Ok(()),
    };
    let is_set = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
    let mut has_service = is_set(&later.mr_service_td);
    if let Some(latest) = latest {
        has_service |= is_set(&latest.init_service_td_hash)
            || is_set(&latest.init_service_td_attributes)
            || is_set(&latest.cur_service_td_hash)
            || is_set(&latest.cur_service_td_attributes);
        if latest.vmid != 0 || is_set(&latest.dev_info) {
            return Err(Error::Guest("it is partitioned, or has devices".to_owned()));
        }
    }
    if has_service {
        return Err(Error::Guest("a service guest is bound to it".to_owned()));
    }
    let (running, started) = (&later.tee_tcb_svn2, &later.base.tee_tcb_svn);
    // The module's version is byte 1, and within that byte 0.
    let is_module_older = (running[1], running[0]) < (started[1], started[0]);
    let mut others = running.iter().zip(started).skip(2);
    if is_module_older || others.any(|(running, started)| running < started) {
        return Err(Error::Guest(
            "the module that runs is older than the one that started it".to_owned(),
        ));
    }
    Ok(())
}

fn body(claims: &QuoteClaims) -> Result<&TDReport10> {
    match &claims.report {
        Body::TD10(report) => Ok(report),
        Body::TD15(report) => Ok(&report.base),
        Body::TD15Ex(report) => Ok(&report.base.base),
        Body::SgxEnclave(_) => Err(Error::Malformed(
            "it is a quote of SGX, not of TDX".to_owned(),
        )),
    }
}

impl Kind for Tdx {
    fn name(&self) -> &'static str {
        "tdx"
    }

    fn number(&self) -> u8 {
        1
    }

    fn measurement_bytes(&self) -> usize {
        32
    }

    fn provider(&self) -> &'static str {
        "tdx_guest"
    }

    fn check(&self, evidence: &[u8], policy: &Policy, now: u64) -> Result<Report> {
        // The verifier itself checks signatures, dates, revocations, and that debug is off. Which
        // statuses are accepted is checked below, so that the refusal has a type.
        let claims = QuoteVerifier::new_prod()
            .verify_with_policy(
                evidence,
                collateral(policy)?,
                now,
                &QuotePolicy::claims_only(now),
            )
            .map_err(|error| chain(&error))?;
        if claims.earliest_expiration_date < now {
            return Err(Error::Chain("the collateral has expired".to_owned()));
        }
        let status = claims.tcb.status.to_string();
        if !policy.accepts_status(&status) {
            return Err(policy.refused_status(&status));
        }
        let (found, least) = (claims.tcb.eval_data_number, policy.least_evaluation());
        if found < least {
            return Err(Error::Tcb {
                found: format!("judged by evaluation {found}"),
                accepted: format!("evaluations from {least} on"),
            });
        }
        check_additions(&claims.report)?;
        let report = body(&claims)?;
        Ok(Report {
            measurement: measurement(report).to_vec(),
            data: report.report_data,
            debug: report.td_attributes[UNDER_DEBUG] != 0,
            tcb: status,
        })
    }

    fn check_policy(&self, policy: &Policy) -> Result<()> {
        collateral(policy).map(drop)
    }
}
