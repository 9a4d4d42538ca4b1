//! What servers of a federation have of clients' vectors.

use kernels::stream::Key;
use mpc::submission::Component;
use net::intake::statement::Piece;
use net::intake::{HELD, REST};

/// Returns a server's part of all clients' pieces.
#[must_use]
pub fn components(server: usize, pieces: &[[Piece; 3]]) -> Vec<Component> {
    let component = |at: usize| {
        let pieces = pieces.iter().map(|pieces| &pieces[at]);
        if !HELD[server].contains(&at) {
            Component::Promised(pieces.map(Piece::commitment).collect())
        } else if at == REST {
            Component::Pieces(pieces.cloned().collect())
        } else {
            let seed = |piece: &Piece| Key::from_words([piece.words[0], piece.words[1]]);
            Component::Seeds(pieces.map(seed).collect())
        }
    };
    vec![component(server), component((server + 1) % 3)]
}
