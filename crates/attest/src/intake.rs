//! The data in the report of a server for its clients, in a federation or a service: it ties the
//! report to one process of one server.

use crate::binding::{DATA, filled};

const DOMAIN: &str = "tacit 2026 attested intake: data of a report";

/// What the report of a server for its clients is made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntakeBinding<'a> {
    /// Digest of the federation or the service: its name, and the certificates of its servers or
    /// parties in their order.
    pub intake: [u8; 32],
    /// Number of the server that the report is of.
    pub server: usize,
    /// The server's TLS certificate, in DER.
    pub certificate: &'a [u8],
    /// The Ed25519 key that signs connections.
    pub key: [u8; 32],
    /// Digest of the policy.
    pub policy: [u8; 32],
    /// Digest of the program.
    pub program: [u8; 32],
    /// When the report was made, in seconds since 1970.
    pub made: u64,
}

impl IntakeBinding<'_> {
    /// Returns the data of the report.
    #[must_use]
    pub fn data(&self) -> [u8; DATA] {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        let certificate = self.certificate.len() as u64;
        for number in [self.server as u64, self.made, certificate] {
            hasher.update(&number.to_le_bytes());
        }
        for part in [&self.intake, &self.key, &self.policy, &self.program] {
            hasher.update(part);
        }
        hasher.update(self.certificate);
        filled(&hasher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Binding;

    #[test]
    fn every_part_counts_and_parties_reports_are_others() {
        let first = IntakeBinding {
            intake: [1; 32],
            server: 0,
            certificate: b"certificate",
            key: [2; 32],
            policy: [3; 32],
            program: [4; 32],
            made: 5,
        };
        let changes: [fn(&mut IntakeBinding<'_>); 8] = [
            |it| it.intake[0] ^= 1,
            |it| it.server = 1,
            |it| it.certificate = b"certificatf",
            |it| it.certificate = b"certificat",
            |it| it.key[0] ^= 1,
            |it| it.policy[0] ^= 1,
            |it| it.program[0] ^= 1,
            |it| it.made = 6,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = first.clone();
            change(&mut other);
            assert_ne!(other.data(), first.data(), "{number}");
        }
        let party = Binding {
            nonces: &[],
            role: 0,
            roster: first.intake,
            certificate: first.certificate,
            key: first.key,
            policy: first.policy,
            program: first.program,
        };
        assert_ne!(party.data(), first.data());
    }
}
