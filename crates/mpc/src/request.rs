//! Requests of clients outside the session: vectors in as many pieces as there are parties, so that
//! a client uploads its vector once.
//!
//! **Computes** a sharing of x = rest + Σ PRG(s_j). The client draws a seed s_j of 128 bits for each
//! piece but one, which is the rest ([`net::intake::REST`]). Piece j is component j of the sharing:
//! an additive sharing has as many as parties, and a replicated one has three. A party gets the
//! seeds of its components. The rest goes to the party of its number, which passes it on if another
//! party holds it too. That party compares it with the client's commitment, as in
//! [`crate::replicated::submissions`]. Parties with the same signed statement hold the same pieces.
//!
//! **Adversary:** as in the protocol; clients may deviate. Any pieces are a sharing of some x, so a
//! client that deviates chooses its x and nothing else.
//!
//! **Rounds and bits:** none between parties that share additively. By replicated sharing one
//! round, 64 bits for each element, and 256 for each vector, from party 1 to party 0.
//!
//! **Symbols.** PRG(s): AES-128 in counter mode under a key derived from s. A seed serves one piece.
//!
//! **Simulation.** Parties that may collude lack at least one piece j. If that is a seed, PRG(s_j)
//! masks the rest, the only thing that they have of x. If it is the rest, they have seeds, which
//! are independent of x. Either way what they have is indistinguishable from uniform. A commitment
//! hides its piece, since its salt of 256 bits goes only to those who get the piece.

use crate::Result;
use crate::group::Group;
use kernels::stream::{Key, Stream, random_key};
use net::intake::REST;
use net::intake::statement::{Piece, Salt};

/// Label of a seed's stream.
const LABEL: &str = "request: a piece";

/// Splits a vector into this number of pieces, at least two.
///
/// # Errors
/// `Setup` if the operating system gives no random bytes.
pub fn split(vector: &[u64], pieces: usize) -> Result<Vec<Piece>> {
    let mut rest = vector.to_vec();
    let mut mask = vec![0; vector.len()];
    let mut made = Vec::with_capacity(pieces);
    for piece in 0..pieces {
        let salt = salt()?;
        let mut words = Vec::new();
        if piece != REST {
            let seed = random_key()?;
            expand(&seed, &mut mask);
            Group::Additive.subtract(&mut rest, &mask);
            words = seed.to_words().to_vec();
        }
        made.push(Piece { salt, words });
    }
    made[REST].words = rest;
    Ok(made)
}

fn salt() -> Result<Salt> {
    let (low, high) = (random_key()?.to_words(), random_key()?.to_words());
    Ok([low[0], low[1], high[0], high[1]])
}

/// Writes the component that a seed stands for.
pub(crate) fn expand(seed: &Key, out: &mut [u64]) {
    let length = out.len();
    Stream::new(seed, LABEL).reserve(length).fill(0, out);
}

#[cfg(test)]
mod tests {
    use super::{expand, split};
    use crate::group::Group;
    use kernels::stream::Key;
    use net::intake::REST;

    #[test]
    fn pieces_add_up_to_the_vector() {
        let vector: Vec<u64> = (0..1001_u64)
            .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        for pieces in [2, 3, 5] {
            let made = split(&vector, pieces).unwrap();
            let mut sum = made[REST].words.clone();
            for (at, piece) in made.iter().enumerate().filter(|(at, _)| *at != REST) {
                let mut mask = vec![0; vector.len()];
                let words = piece.words[..].try_into().expect("a seed");
                expand(&Key::from_words(words), &mut mask);
                // Without this piece nothing of the vector is left.
                let mut without = vector.clone();
                Group::Additive.subtract(&mut without, &sum);
                assert!(without.iter().all(|word| *word != 0), "piece {at}");
                Group::Additive.add(&mut sum, &mask);
            }
            assert_eq!(sum, vector);
        }
    }
}
