//! Verification of many signatures by one key: Ed25519 (RFC 8032, section 5.1).
//!
//! A signature (R, s) of M by the key A is accepted if s is below the order of the base point B,
//! and R = s·B − k·A with k = SHA-512(R, A, M), compared as bytes. This is the strict form, without
//! the cofactor: the same signatures are accepted by all members. Keys are public, so multiples of
//! A are looked up in a table that is made once, and no access needs to hide which.

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use ring::digest::{Context, SHA512};
use std::sync::LazyLock;

/// Bits of a digit of a scalar. Larger tables fit no cache beside the payload.
const DIGIT: usize = 5;

/// Digits of a scalar of 253 bits. The last one takes the carry.
const DIGITS: usize = 253_usize.div_ceil(DIGIT);

/// Largest magnitude of a digit.
const HALF: usize = 1 << (DIGIT - 1);

static OF_BASE: LazyLock<Multiples> = LazyLock::new(|| Multiples::of(ED25519_BASEPOINT_POINT));

/// A member's public key.
pub(crate) struct Verifier {
    key: [u8; 32],
    /// Multiples of −A.
    negated: Multiples,
}

impl Verifier {
    /// Makes a verifier; `None` for bytes that are no key, or a key that nothing binds to messages.
    pub(crate) fn of(key: [u8; 32]) -> Option<Self> {
        let point = CompressedEdwardsY(key).decompress()?;
        let is_sound = point.compress().0 == key && !point.is_small_order();
        is_sound.then(|| Self {
            key,
            negated: Multiples::of(-point),
        })
    }

    /// Returns whether this key has signed the message.
    pub(crate) fn accepts(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let (point, scalar) = signature.split_at(32);
        let scalar = <[u8; 32]>::try_from(scalar).expect("32 bytes");
        let Some(scalar) = Scalar::from_canonical_bytes(scalar).into_option() else {
            return false;
        };
        let mut hash = Context::new(&SHA512);
        for part in [point, &self.key, message] {
            hash.update(part);
        }
        let hash = hash.finish();
        let wide = hash.as_ref().try_into().expect("64 bytes");
        let challenge = Scalar::from_bytes_mod_order_wide(&wide);
        let sum = self.negated.add(&challenge, EdwardsPoint::identity());
        OF_BASE.add(&scalar, sum).compress().0 == *point
    }
}

/// The multiples of a point P by which a scalar is multiplied: m·2^(5i)·P for m of 1 to 16.
struct Multiples(Vec<[EdwardsPoint; HALF]>);

impl Multiples {
    fn of(mut point: EdwardsPoint) -> Self {
        let rows = (0..DIGITS).map(|_| {
            let mut row = [point; HALF];
            for at in 1..HALF {
                row[at] = row[at - 1] + point;
            }
            point = row[HALF - 1] + row[HALF - 1];
            row
        });
        Self(rows.collect())
    }

    /// Adds the multiple by a scalar to a point.
    fn add(&self, scalar: &Scalar, to: EdwardsPoint) -> EdwardsPoint {
        let digits = digits(scalar.as_bytes());
        let rows = self.0.iter().zip(digits);
        rows.fold(to, |sum, (row, digit)| match digit {
            0 => sum,
            1.. => sum + row[digit as usize - 1],
            _ => sum - row[digit.unsigned_abs() as usize - 1],
        })
    }
}

/// Splits a number below 2^253 into digits of −15 to 16, the lowest first.
fn digits(bytes: &[u8; 32]) -> [i8; DIGITS] {
    let mut carry = 0;
    std::array::from_fn(|at| {
        let bits = (at * DIGIT..(at + 1) * DIGIT).filter(|bit| *bit < 256);
        let value = bits.fold(0, |value, bit| {
            value | (bytes[bit / 8] >> (bit % 8) & 1) << (bit - at * DIGIT)
        });
        let digit = value as i8 + carry;
        carry = i8::from(digit > HALF as i8);
        digit - (carry << DIGIT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

    fn made(seed: [u8; 32]) -> (Ed25519KeyPair, [u8; 32]) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let key = pair.public_key().as_ref().try_into().unwrap();
        (pair, key)
    }

    fn added(number: &[u8; 32], other: &[u8; 32]) -> [u8; 32] {
        let mut carry = 0;
        std::array::from_fn(|at| {
            let sum = u16::from(number[at]) + u16::from(other[at]) + carry;
            carry = sum >> 8;
            sum as u8
        })
    }

    /// The order of the base point.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];

    proptest! {
        /// As another implementation says, also of what was changed.
        #[test]
        fn what_is_signed_is_accepted_and_nothing_else(
            seed: [u8; 32],
            message in proptest::collection::vec(any::<u8>(), 0..100),
            at in 0_usize..512,
        ) {
            let (pair, key) = made(seed);
            let verifier = Verifier::of(key).unwrap();
            let mut signature: [u8; 64] = pair.sign(&message).as_ref().try_into().unwrap();
            prop_assert!(verifier.accepts(&message, &signature));
            signature[at / 8] ^= 1 << (at % 8);
            let other = UnparsedPublicKey::new(&ED25519, &key).verify(&message, &signature);
            prop_assert!(other.is_err());
            prop_assert!(!verifier.accepts(&message, &signature));
        }

        #[test]
        fn digits_are_the_number(mut bytes: [u8; 32]) {
            bytes[31] &= 0x1f;
            let point = ED25519_BASEPOINT_POINT;
            let scalar = Scalar::from_bytes_mod_order(bytes);
            prop_assert_eq!(OF_BASE.add(&scalar, point), EdwardsPoint::mul_base(&scalar) + point);
            let sum = digits(&bytes).iter().rev().fold(Scalar::ZERO, |sum, digit| {
                let magnitude = Scalar::from(digit.unsigned_abs());
                let digit = if *digit < 0 { -magnitude } else { magnitude };
                sum * Scalar::from(1_u64 << DIGIT) + digit
            });
            prop_assert_eq!(sum, scalar);
        }
    }

    /// Known answers: tests 1 and 2 of RFC 8032, section 7.1.
    #[test]
    fn known_answers() {
        let read = |text: &str| -> Vec<u8> {
            let digits = (0..text.len()).step_by(2);
            digits
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
                .collect()
        };
        for (key, message, signature) in [
            (
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
        ] {
            let verifier = Verifier::of(read(key).try_into().unwrap()).unwrap();
            let mut signature: [u8; 64] = read(signature).try_into().unwrap();
            assert!(verifier.accepts(&read(message), &signature));
            assert!(!verifier.accepts(b"x", &signature));
            // The same point, by a scalar that is not below the order.
            let scalar = signature[32..].try_into().unwrap();
            signature[32..].copy_from_slice(&added(&scalar, &ORDER));
            assert!(!verifier.accepts(&read(message), &signature));
        }
    }

    /// Of points of small order, a signature would hold for many messages.
    #[test]
    fn what_is_no_sound_key_is_refused() {
        let mut identity = [0; 32];
        identity[0] = 1;
        assert!(Verifier::of(identity).is_none());
        assert!(Verifier::of([0; 32]).is_none(), "a point of order 4");
        let mut beyond = [0xff; 32];
        beyond[31] = 0x7f;
        assert!(Verifier::of(beyond).is_none(), "y is not below the prime");
        let mut none = [0; 32];
        none[0] = 2;
        assert!(Verifier::of(none).is_none(), "no point has this y");
    }
}
