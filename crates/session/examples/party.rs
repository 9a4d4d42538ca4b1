//! A party in Rust: parties 0 and 1 share numbers, and all learn how many of the first are greater.
//!
//! ```sh
//! tacit certificates --parties 3 --out examples/certificates
//! for party in 0 1 2; do cargo run --example party -- examples/parties.toml $party & done
//! ```

use mpc::{Protocol, Recipient, Result, functions};
use session::configured::{Choices, connect};
use std::path::Path;

/// Salaries of party 0 and party 1; neither sees the other's.
const SALARIES: [[u64; 4]; 2] = [[52, 61, 48, 75], [50, 64, 47, 70]];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [config, party] = &arguments[..] else {
        eprintln!("usage: party CONFIG PARTY");
        std::process::exit(2);
    };
    let outcome = party
        .parse()
        .map_err(|_| mpc::Error::misuse(format!("\"{party}\" is not a party's number")))
        .and_then(|party| take_part(Path::new(config), party));
    if let Err(error) = outcome {
        eprintln!("party: {error}");
        std::process::exit(1);
    }
}

fn take_part(config: &Path, party: usize) -> Result<()> {
    let session = connect(config, party, &Choices::default())?;
    println!("{}", session.threat_model());
    let mine = SALARIES.get(party).map(<[u64; 4]>::as_slice);
    let greater = session.run(|protocol| how_many_are_greater(protocol, mine))?;
    println!("{greater} of the first party's numbers are greater");
    Ok(())
}

/// Counts how many of party 0's four numbers are greater than party 1's; each owner passes its own.
fn how_many_are_greater(protocol: &mut dyn Protocol, mine: Option<&[u64]>) -> Result<u64> {
    let me = protocol.party();
    let empty = vec![vec![0; 4]; protocol.parts()];
    let (mut first, mut second) = (empty.clone(), empty);
    protocol.share(0, mine.filter(|_| me == 0), 4, &mut slices_mut(&mut first))?;
    protocol.share(1, mine.filter(|_| me == 1), 4, &mut slices_mut(&mut second))?;

    // second − first < 0: each party subtracts its own components, and only the sign needs
    // interaction.
    let difference: Vec<Vec<u64>> = first
        .iter()
        .zip(&second)
        .map(|(first, second)| {
            first
                .iter()
                .zip(second)
                .map(|(a, b)| b.wrapping_sub(*a))
                .collect()
        })
        .collect();
    let greater = protocol.sign(&slices(&difference), 64)?;
    let mut ones = vec![vec![0; 4]; protocol.parts()];
    functions::binary_to_additive(protocol, &greater, &mut slices_mut(&mut ones))?;
    let sum: Vec<Vec<u64>> = ones
        .iter()
        .map(|part| vec![part.iter().fold(0, |sum: u64, one| sum.wrapping_add(*one))])
        .collect();
    let opened = protocol.reveal(&slices(&sum), Recipient::All)?;
    Ok(opened.expect("all learn it")[0])
}

fn slices(parts: &[Vec<u64>]) -> Vec<&[u64]> {
    parts.iter().map(Vec::as_slice).collect()
}

fn slices_mut(parts: &mut [Vec<u64>]) -> Vec<&mut [u64]> {
    parts.iter_mut().map(Vec::as_mut_slice).collect()
}
