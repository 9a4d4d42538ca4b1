//! Certificates that an authority did not sign, or that do not count: each is refused by its name.

use super::Admission;
use crate::error::{CertificateFault, Denial, Name, SetupFault};
use crate::issuing::{self, Authority};
use crate::kinds::certificate;
use crate::tcp::tls;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PKCS_ED25519, SigningKey,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;

const MOST: usize = 8;

const DAY: u64 = 24 * 3600;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tacit-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// An authority in a folder, and what admits its clients.
struct World {
    folder: Folder,
    authority: Authority,
    admission: Admission,
    pem: String,
}

impl World {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        issuing::write_authority("authority", &folder.0).unwrap();
        let pem = read(&folder.0, "authority.pem");
        let authority = Authority::read(&pem, &folder.0.join("authority.key")).unwrap();
        let admission = tls::admission(&pem, MOST).unwrap();
        Self {
            folder,
            authority,
            admission,
            pem,
        }
    }

    fn request(&self, client: usize) -> String {
        issuing::write_request(client, &self.folder.0).unwrap();
        read(&self.folder.0, &format!("client-{client}.request"))
    }

    fn admitted(&self, client: usize) -> String {
        let request = self.request(client);
        self.authority.admit(&request, client, 1).unwrap()
    }

    /// Signs a certificate as whoever has the authority's key could.
    fn signed(&self, key: &impl SigningKey, change: impl Fn(&mut CertificateParams)) -> Pem {
        let own = KeyPair::from_pem(&read(&self.folder.0, "authority.key")).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&self.pem, own).unwrap();
        let names = vec!["client-3.tacit".to_owned()];
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut parameters);
        parameters.signed_by(key, &issuer).unwrap().pem()
    }

    fn fault(&self, pem: &str) -> Option<SetupFault> {
        self.fault_at(pem, UnixTime::now())
    }

    fn fault_at(&self, pem: &str, at: UnixTime) -> Option<SetupFault> {
        self.admission.check(&der(pem), at).err()
    }

    fn denial(&self, pem: &str) -> Denial {
        // No such certificate gets through the handshake.
        assert_eq!(self.admission.owner(&der(pem)), None);
        match self.fault(pem) {
            Some(SetupFault::NotAdmitted(denial)) => denial,
            other => panic!("{other:?}"),
        }
    }
}

type Pem = String;

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn der(pem: &str) -> CertificateDer<'static> {
    certificate(pem).unwrap()
}

fn key() -> KeyPair {
    KeyPair::generate().unwrap()
}

fn from_now(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::now_utc() + time::Duration::seconds(seconds)
}

#[test]
fn a_client_of_the_authority_is_admitted_by_its_number() {
    let world = World::new("admitted");
    let pem = world.admitted(7);
    assert_eq!(world.admission.owner(&der(&pem)), Some(7));
    assert_eq!(world.fault(&pem), None);
}

#[test]
fn certificates_that_the_authority_did_not_sign_are_refused() {
    let (world, other) = (World::new("own"), World::new("other"));
    assert_eq!(world.denial(&other.admitted(1)), Denial::OtherIssuer);
    let alone = crate::certificates::generate(1, 1).unwrap();
    assert_eq!(world.denial(&alone.certificate_pem), Denial::OtherIssuer);
    // A client cannot admit others, nor can an authority below the authority.
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let middle = key();
        let signed = world.signed(&middle, |parameters| parameters.is_ca = is_ca);
        let issuer = Issuer::from_ca_cert_pem(&signed, middle).unwrap();
        let names = vec!["client-4.tacit".to_owned()];
        let parameters = CertificateParams::new(names).unwrap();
        let below = parameters.signed_by(&key(), &issuer).unwrap();
        assert_eq!(world.denial(&below.pem()), Denial::OtherIssuer);
    }
    // Neither is the authority a client, nor is a certificate that is for servers only.
    assert_eq!(world.denial(&world.pem), Denial::OtherIssuer);
    let for_servers = world.signed(&key(), |parameters| {
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    assert_eq!(world.denial(&for_servers), Denial::OtherIssuer);
    // A changed byte of what was signed, or of the signature.
    let mut bytes = der(&world.admitted(2)).to_vec();
    for place in [bytes.len() - 1, bytes.len() / 2] {
        bytes[place] ^= 1;
        assert_eq!(
            world.admission.owner(&CertificateDer::from(bytes.clone())),
            None
        );
        bytes[place] ^= 1;
    }
    assert_eq!(world.admission.owner(&CertificateDer::from(bytes)), Some(2));
}

#[test]
fn certificates_that_name_no_client_of_the_federation_are_refused() {
    let world = World::new("names");
    let of = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        world.signed(&key(), |parameters| {
            parameters.subject_alt_names = CertificateParams::new(names.clone())
                .unwrap()
                .subject_alt_names;
        })
    };
    for names in [
        &["client-03.tacit"][..],
        &["client-.tacit"],
        &["client--1.tacit"],
        &["client-+1.tacit"],
        &["client-3.tacit.example"],
        &["client-99999999999999999999999.tacit"],
        &["*.tacit"],
        &["server-1.tacit"],
        &["client-3.tacit", "client-4.tacit"],
        &[],
    ] {
        assert_eq!(world.denial(&of(names)), Denial::NoNumber, "{names:?}");
    }
    let beyond = Denial::Beyond {
        client: MOST,
        most: MOST,
    };
    assert_eq!(world.denial(&of(&["client-8.tacit"])), beyond);
    assert_eq!(world.fault(&of(&["client-7.tacit"])), None);
    let unfit = world.signed(&KeyPair::generate_for(&PKCS_ED25519).unwrap(), |_| {});
    assert_eq!(world.denial(&unfit), Denial::CannotSign { client: 3 });
}

#[test]
fn dates_are_those_of_the_certificate_and_of_the_authority() {
    let world = World::new("dates");
    let dated = |from: i64, to: i64| {
        world.signed(&key(), |parameters| {
            parameters.not_before = from_now(from);
            parameters.not_after = from_now(to);
        })
    };
    let of = Name::Client(3);
    let expired = world.fault(&dated(-7200, -3600));
    assert!(
        matches!(&expired, Some(SetupFault::Certificate { of: found, fault: CertificateFault::Expired { .. } }) if *found == of),
        "{expired:?}"
    );
    let early = world.fault(&dated(3600, 7200));
    assert!(
        matches!(&early, Some(SetupFault::Certificate { of: found, fault: CertificateFault::NotYetValid { .. } }) if *found == of),
        "{early:?}"
    );
    // The owner is known, so that the refusal names it.
    assert_eq!(world.admission.owner(&der(&dated(-7200, -3600))), Some(3));
    // A certificate does not outlive its authority.
    let long = dated(-10, 40 * 365 * 24 * 3600);
    assert_eq!(world.fault(&long), None);
    let later = UnixTime::since_unix_epoch(
        Duration::from_secs(UnixTime::now().as_secs()) + Duration::from_secs(20 * 365 * DAY),
    );
    let old = SetupFault::NotAdmitted(Denial::OldAuthority);
    assert_eq!(world.fault_at(&long, later), Some(old));
}

#[test]
fn revoked_certificates_do_not_count_from_the_list_on() {
    let (world, other) = (World::new("revoking"), World::new("another"));
    let (stays, goes, later) = (world.admitted(1), world.admitted(2), world.admitted(3));
    let admission = &world.admission;
    let empty = world.authority.revoke(None, &[], 30).unwrap();
    admission.revoke(Some(&empty)).unwrap();
    assert_eq!(world.fault(&goes), None);
    let list = world
        .authority
        .revoke(Some(&empty), std::slice::from_ref(&goes), 30)
        .unwrap();
    admission.revoke(Some(&list)).unwrap();
    let revoked = |client| Some(SetupFault::NotAdmitted(Denial::Revoked { client }));
    assert_eq!(world.fault(&goes), revoked(2));
    assert_eq!(world.fault(&stays), None);
    // A longer list keeps what was in it.
    let list = world
        .authority
        .revoke(Some(&list), std::slice::from_ref(&later), 30)
        .unwrap();
    admission.revoke(Some(&list)).unwrap();
    assert_eq!(
        (world.fault(&goes), world.fault(&later)),
        (revoked(2), revoked(3))
    );
    assert_eq!(world.fault(&stays), None);
    // A list that is out of date lets nobody in.
    let after = UnixTime::since_unix_epoch(
        Duration::from_secs(UnixTime::now().as_secs()) + Duration::from_secs(31 * DAY),
    );
    let long = world.signed(&key(), |parameters| {
        parameters.not_after = from_now(1 << 30)
    });
    assert!(matches!(
        world.fault_at(&long, after),
        Some(SetupFault::NotAdmitted(Denial::OldList { .. }))
    ));
    // Nor does one that something was changed in, or that another authority made.
    let foreign = other.authority.revoke(None, &[], 30).unwrap();
    assert!(
        admission
            .revoke(Some(&foreign))
            .unwrap_err()
            .to_string()
            .contains("another authority")
    );
    assert!(admission.revoke(Some("no list")).is_err());
    assert_eq!(world.fault(&goes), revoked(2));
    let changed = with_changed_end(&list);
    admission.revoke(Some(&changed)).unwrap();
    let wrong = SetupFault::NotAdmitted(Denial::WrongList);
    assert_eq!(world.fault(&stays), Some(wrong));
}

/// Returns a list with another signature.
fn with_changed_end(list: &str) -> String {
    use rustls::pki_types::CertificateRevocationListDer;
    use rustls::pki_types::pem::PemObject;
    let mut bytes = CertificateRevocationListDer::from_pem_slice(list.as_bytes())
        .unwrap()
        .to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    pem("X509 CRL", &bytes)
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_usize, |word, byte| word << 8 | usize::from(*byte));
        for place in 0..4 {
            let letter = LETTERS[word >> (18 - 6 * place) & 63] as char;
            text.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    let lines: Vec<String> = text
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8(line.to_vec()).unwrap())
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n")
}

#[test]
fn an_authority_signs_only_requests_of_the_client_that_it_means() {
    let world = World::new("requests");
    let request = world.request(5);
    let refused = |request: &str, client, days| {
        let made = world.authority.admit(request, client, days);
        made.unwrap_err().to_string()
    };
    assert!(refused(&request, 6, 1).contains("the request is not of client 6"));
    assert!(refused("no request", 5, 1).contains("this is no request"));
    assert!(refused(&world.pem, 5, 1).contains("this is no request"));
    assert!(refused(&request, 5, 0).contains("1 to 36500 days"));
    // A request may ask for more than a client's certificate: only its key is taken.
    let own = key();
    let mut parameters = CertificateParams::new(vec!["client-5.tacit".to_owned()]).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.is_ca = IsCa::NoCa;
    let asked = parameters.serialize_request(&own).unwrap().pem().unwrap();
    let made = world.authority.admit(&asked, 5, 1).unwrap();
    assert_eq!(world.fault(&made), None);
    let two = vec!["client-5.tacit".to_owned(), "client-6.tacit".to_owned()];
    let asked = CertificateParams::new(two).unwrap();
    let asked = asked.serialize_request(&own).unwrap().pem().unwrap();
    assert!(refused(&asked, 5, 1).contains("the request is not of client 5"));
    let weak = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let asked = CertificateParams::new(vec!["client-5.tacit".to_owned()]).unwrap();
    let asked = asked.serialize_request(&weak).unwrap().pem().unwrap();
    assert!(refused(&asked, 5, 1).contains("is no ECDSA P-256 key"));
}

#[test]
fn only_an_authoritys_certificate_is_one() {
    let (world, other) = (World::new("authorities"), World::new("others"));
    let alone = crate::certificates::generate(1, 1).unwrap();
    for (pem, reason) in [
        (world.admitted(1), "is not one of an authority"),
        (alone.certificate_pem, "is not one of an authority"),
        ("no certificate".to_owned(), "is not a certificate in PEM"),
    ] {
        let refused = tls::admission(&pem, MOST).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    let key = other.folder.0.join("authority.key");
    let refused = Authority::read(&world.pem, &key).err().unwrap().to_string();
    assert!(
        refused.contains("its key is of another certificate"),
        "{refused}"
    );
}
