//! The data in a party's report: it ties the report to one party of one session.

/// Bytes of data in a report.
pub const DATA: usize = 64;

const DOMAIN: &str = "tacit 2026 attested party: data of a report";
const CHALLENGE: &str = "tacit 2026 attestation: data of a report for a challenge";
const PROGRAM: &str = "tacit 2026 attestation: program";

/// What the report of a party is made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding<'a> {
    /// A nonce of each member, by member: none of them can have been made before the session.
    pub nonces: &'a [[u8; 32]],
    /// Number of the member that the report is of; a dealer has the last one.
    pub role: usize,
    /// Digest of the session's members: their number, addresses' order and certificates.
    pub roster: [u8; 32],
    /// The member's TLS certificate, in DER.
    pub certificate: &'a [u8],
    /// The Ed25519 key that verifies the member's messages.
    pub key: [u8; 32],
    /// Digest of the policy.
    pub policy: [u8; 32],
    /// Digest of the program.
    pub program: [u8; 32],
}

impl Binding<'_> {
    /// Returns the data of the report.
    #[must_use]
    pub fn data(&self) -> [u8; DATA] {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        let mut number = |number: usize| {
            hasher.update(&(number as u64).to_le_bytes());
        };
        number(self.nonces.len());
        number(self.role);
        number(self.certificate.len());
        hasher.update(self.nonces.as_flattened());
        for part in [&self.roster, &self.key, &self.policy, &self.program] {
            hasher.update(part);
        }
        hasher.update(self.certificate);
        filled(&hasher)
    }
}

/// Returns the data of a report that answers a verifier's challenge outside of a session.
#[must_use]
pub fn of_challenge(challenge: &str) -> [u8; DATA] {
    let mut hasher = blake3::Hasher::new_derive_key(CHALLENGE);
    hasher.update(challenge.as_bytes());
    filled(&hasher)
}

/// Returns the digest of a program, given as its parts, such as a release and a file's content.
#[must_use]
pub fn program_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(PROGRAM);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

pub(crate) fn filled(hasher: &blake3::Hasher) -> [u8; DATA] {
    let mut data = [0; DATA];
    hasher.finalize_xof().fill(&mut data);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let nonces = [[1; 32], [2; 32]];
        let first = Binding {
            nonces: &nonces,
            role: 0,
            roster: [3; 32],
            certificate: b"certificate",
            key: [4; 32],
            policy: [5; 32],
            program: [6; 32],
        };
        let swapped = [nonces[1], nonces[0]];
        let more = [nonces[0], nonces[1], [0; 32]];
        let others = [
            Binding {
                nonces: &swapped,
                ..first.clone()
            },
            Binding {
                nonces: &more,
                ..first.clone()
            },
            Binding {
                role: 1,
                ..first.clone()
            },
            Binding {
                roster: [7; 32],
                ..first.clone()
            },
            Binding {
                certificate: b"certificatf",
                ..first.clone()
            },
            Binding {
                certificate: b"certificat",
                ..first.clone()
            },
            Binding {
                key: [7; 32],
                ..first.clone()
            },
            Binding {
                policy: [7; 32],
                ..first.clone()
            },
            Binding {
                program: [7; 32],
                ..first.clone()
            },
        ];
        for other in others {
            assert_ne!(other.data(), first.data(), "{other:?}");
        }
        assert_ne!(program_of(&[b"ab", b"c"]), program_of(&[b"a", b"bc"]));
        assert_ne!(of_challenge("a"), of_challenge("b"));
    }
}
