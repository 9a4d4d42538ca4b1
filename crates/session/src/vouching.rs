//! What the servers of a federation attest to its clients, and how clients judge them.

use crate::attestation::Attestation;
use attest::{Error as Refused, IntakeBinding};
use mpc::Result;
use net::intake::evidence::{Vouched, Voucher};

/// Returns the data in the report of a server.
fn data(about: &Vouched<'_>) -> [u8; attest::DATA] {
    IntakeBinding {
        intake: about.intake,
        server: about.server,
        certificate: about.certificate,
        key: about.key,
        policy: about.policy,
        program: about.program,
        made: about.made,
    }
    .data()
}

impl Voucher for Attestation {
    fn policy(&self) -> [u8; 32] {
        Attestation::policy(self).digest()
    }

    fn program(&self) -> [u8; 32] {
        self.own_program()
    }

    fn make(&self, about: &Vouched<'_>) -> Result<Vec<u8>> {
        self.evidence(&data(about))
    }

    fn judge(&self, about: &Vouched<'_>, evidence: &[u8]) -> std::result::Result<(), String> {
        let policy = Attestation::policy(self);
        let judged = policy
            .check_program(&about.program)
            .and_then(|()| attest::judge(evidence, policy, Some(&data(about)), attest::now()));
        judged.map(drop).map_err(|error| said(&error, self.file))
    }
}

/// Returns a refusal as a client reads it, with what to do.
fn said(error: &Refused, file: &str) -> String {
    let remedy = match error {
        Refused::Data => {
            return "the evidence was made for something else: another federation or service, \
                    server, certificate, key, policy, program or time"
                .to_owned();
        }
        Refused::Measurement(_) | Refused::Program(_) => {
            &format!("if it is right, add it to [attestation] in everybody's {file}")
        }
        Refused::Chain(_) => &format!(
            "if collateral has expired, get the vendor's current one for this client's {file}, \
             and start the client again"
        ),
        Refused::Tcb { .. } => {
            "its owner must update the firmware, or all accept that status in [attestation]"
        }
        Refused::Kind { .. } => "the table [attestation] is the same for all",
        Refused::Debug => "its owner must start it without debug mode",
        Refused::Guest(_) => "its owner must start the guest as [attestation] demands",
        Refused::Malformed(_) => "run the same release of tacit at all clients and servers",
        Refused::Policy(_) | Refused::Machine(_) => "check the table [attestation]",
    };
    format!("{error}; {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attestation;
    use attest::simulated::{Defect, Simulated, report};
    use attest::{Evidence, hex};

    const RULES: &[u8] = b"rules";

    fn policy(programs: &[[u8; 32]]) -> String {
        let programs: Vec<String> = programs
            .iter()
            .map(|program| format!("\"{}\"", hex(program)))
            .collect();
        format!(
            "kind = \"simulated\"\nallow_simulated = true\nmeasurements = [\"{}\"]\nprograms = [{}]",
            attestation::simulated_measurement(),
            programs.join(", ")
        )
    }

    fn about(policy: [u8; 32]) -> Vouched<'static> {
        Vouched {
            intake: [1; 32],
            server: 1,
            certificate: b"certificate",
            key: [2; 32],
            policy,
            program: attestation::federation(RULES),
            made: 3,
        }
    }

    fn both() -> (Attestation, Attestation) {
        let policy = policy(&[attestation::federation(RULES)]);
        (
            Attestation::of_server(&policy, RULES).unwrap(),
            Attestation::of_client(&policy, false).unwrap(),
        )
    }

    #[test]
    fn a_client_accepts_what_its_policy_names() {
        let (server, client) = both();
        assert_eq!(Voucher::policy(&server), Voucher::policy(&client));
        let about = about(Voucher::policy(&server));
        assert_eq!(Voucher::program(&server), about.program);
        let evidence = Voucher::make(&server, &about).unwrap();
        Voucher::judge(&client, &about, &evidence).unwrap();
    }

    #[test]
    fn evidence_for_anything_else_is_refused() {
        let (server, client) = both();
        let about = about(Voucher::policy(&server));
        let evidence = Voucher::make(&server, &about).unwrap();
        let changes: [fn(&mut Vouched<'_>); 6] = [
            |it| it.intake[0] ^= 1,
            |it| it.server = 2,
            |it| it.certificate = b"certificatf",
            |it| it.key[0] ^= 1,
            |it| it.policy[0] ^= 1,
            |it| it.made = 4,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = about.clone();
            change(&mut other);
            let said = Voucher::judge(&client, &other, &evidence).unwrap_err();
            assert!(said.contains("made for something else"), "{number}: {said}");
        }
        let mut other = about.clone();
        other.program[0] ^= 1;
        let said = Voucher::judge(&client, &other, &evidence).unwrap_err();
        let expected = format!(
            "the program {} is not among those that the policy accepts; if it is right, add it to \
             [attestation] in everybody's federation.toml",
            hex(&other.program)
        );
        assert_eq!(said, expected);
        for bit in 0..8 * evidence.len() {
            let mut flipped = evidence.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                Voucher::judge(&client, &about, &flipped).is_err(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn each_defect_is_named_with_what_to_do() {
        let (_, client) = both();
        let about = about(Voucher::policy(&client));
        let data = data(&about);
        for defect in Defect::ALL {
            let body = report(&data, Some(defect));
            let evidence = Evidence::of(&Simulated, body).encode();
            let said = Voucher::judge(&client, &about, &evidence).unwrap_err();
            let expected = match defect {
                Defect::OtherRoot => "the root's signature is wrong; if collateral has expired",
                Defect::OtherKey => "the platform's signature is wrong; if collateral",
                Defect::Expired => "certificate has expired; if collateral has expired",
                Defect::RevokedPlatform => "certificate is revoked; if collateral",
                Defect::OldFirmware => "accepts UpToDate; its owner must update the firmware",
                Defect::RevokedFirmware => "firmware is Revoked, and the policy accepts UpToDate; ",
                Defect::Debug => "change everything; its owner must start it without debug mode",
                Defect::Measurement => "that the policy accepts; if it is right, add it to",
                Defect::Data => "made for something else: another federation or service",
                Defect::Short => "305 bytes; run the same release of tacit",
            };
            assert!(said.contains(expected), "{defect:?}: {said}");
        }
    }

    #[test]
    fn a_server_runs_what_the_policy_names_or_does_not_open() {
        let error = Attestation::of_server(&policy(&[[9; 32]]), RULES)
            .err()
            .expect("the policy names another program")
            .to_string();
        assert!(
            error.contains("is not among those that the policy accepts"),
            "{error}"
        );
        assert_ne!(
            attestation::federation(RULES),
            attestation::program(RULES),
            "rules are no program of a party"
        );
        assert_ne!(
            attestation::federation(RULES),
            attestation::service(RULES),
            "a federation is no service"
        );
    }

    #[test]
    fn a_client_of_a_service_is_told_of_its_file() {
        let policy = policy(&[attestation::service(RULES)]);
        let party = Attestation::of_service(&policy, RULES).unwrap();
        let client = Attestation::of_client(&policy, true).unwrap();
        let mut about = Vouched {
            program: attestation::service(RULES),
            ..about(Voucher::policy(&party))
        };
        let evidence = Voucher::make(&party, &about).unwrap();
        Voucher::judge(&client, &about, &evidence).unwrap();
        about.program = attestation::federation(RULES);
        let said = Voucher::judge(&client, &about, &evidence).unwrap_err();
        assert!(
            said.ends_with("add it to [attestation] in everybody's service.toml"),
            "{said}"
        );
    }
}
