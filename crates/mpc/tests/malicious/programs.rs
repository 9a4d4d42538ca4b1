//! Small programs, one for each operation. Each opens its result to all parties.

use mpc::{Bilinear, Bits, Compared, Join, Operand, Protocol, Recipient, Result, Shift};

/// A program on n elements.
pub struct Program {
    /// What it is.
    pub name: &'static str,
    /// By how much two honest results may differ, since truncations round up or down.
    pub tolerance: u64,
    /// Returns what this party learns.
    pub work: fn(&mut dyn Protocol, usize) -> Result<Vec<u64>>,
}

const fn exact(
    name: &'static str,
    work: fn(&mut dyn Protocol, usize) -> Result<Vec<u64>>,
) -> Program {
    Program {
        name,
        tolerance: 0,
        work,
    }
}

const fn rounding(
    name: &'static str,
    work: fn(&mut dyn Protocol, usize) -> Result<Vec<u64>>,
) -> Program {
    Program {
        name,
        tolerance: 1,
        work,
    }
}

/// A sharing of words.
type Shared = Vec<Vec<u64>>;

/// All programs.
pub const PROGRAMS: [Program; 14] = [
    exact("share", |p, n| {
        let x = shared(p, n)?;
        opened(p, &x)
    }),
    exact("product", |p, n| {
        let (x, y) = (shared(p, n)?, shared(p, n)?);
        let z = product(p, &x, &y, n, None)?;
        opened(p, &z)
    }),
    exact("product of products", |p, n| {
        let x = shared(p, n)?;
        let y = product(p, &x, &x, n, None)?;
        let z = product(p, &y, &x, n, None)?;
        opened(p, &z)
    }),
    rounding("fixed-point product", |p, n| {
        let (x, y) = (shared(p, n)?, shared(p, n)?);
        let z = product(p, &x, &y, n, Shift::new(16))?;
        opened(p, &z)
    }),
    rounding("truncation", |p, n| {
        let x = shared(p, n)?;
        let mut z = zeros(p, n);
        let shift = Shift::new(7).expect("a shift");
        p.truncate(&parts(&x), shift, &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    exact("bits", |p, n| {
        let x = bits(p, n, 5)?;
        opened_bits(p, &x)
    }),
    exact("AND", |p, n| {
        let (x, y) = (bits(p, n, 5)?, bits(p, n, 5)?);
        let both = p.and_all(&[Join::new(&x, vec![&y, &x])])?;
        let first = opened_bits(p, &both[0])?;
        Ok([first, opened_bits(p, &both[1])?].concat())
    }),
    exact("sign", |p, n| {
        let x = shared(p, n)?;
        let sign = p.sign(&parts(&x), 64)?;
        opened_bits(p, &sign)
    }),
    exact("zero", |p, n| {
        let x = shared(p, n)?;
        let zero = p.equal_zero(&parts(&x), 9)?;
        opened_bits(p, &zero)
    }),
    exact("decomposition", |p, n| {
        let x = shared(p, n)?;
        let binary = p.to_binary(&parts(&x), 11)?;
        opened_bits(p, &binary)
    }),
    exact("bit product", |p, n| {
        let (bit, x) = (bits(p, n, 1)?, shared(p, n)?);
        let mut z = zeros(p, n);
        p.bit_multiply(&bit, &parts(&x), &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    exact("bit as a number", |p, n| {
        let bit = bits(p, n, 1)?;
        let mut z = zeros(p, n);
        p.bit_to_ring(&bit, &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    exact("ReLU", |p, n| {
        let x = shared(p, n)?;
        let mut z = zeros(p, n);
        let compared = Compared::proved(64);
        p.rectify(&parts(&x), None, compared, &mut parts_mut(&mut z))?;
        opened(p, &z)
    }),
    exact("opening to one", |p, n| {
        let (x, y) = (shared(p, n)?, shared(p, n)?);
        let z = product(p, &x, &y, n, None)?;
        let mut all = Vec::new();
        for party in 0..3 {
            let one = p.reveal(&parts(&z), Recipient::One(party))?;
            all.extend(one.unwrap_or_default());
        }
        Ok(all)
    }),
];

/// Shares numbers below 2^21 of either sign, zero among them, so that products can be truncated.
fn shared(p: &mut dyn Protocol, n: usize) -> Result<Shared> {
    let values: Vec<u64> = (0..n as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 43).wrapping_sub(1 << 20))
        .map(|value| if value % 5 == 0 { 0 } else { value })
        .collect();
    let mut x = zeros(p, n);
    let mine = (p.party() == 1).then_some(&values[..]);
    p.share(1, mine, n, &mut parts_mut(&mut x))?;
    Ok(x)
}

fn bits(p: &mut dyn Protocol, n: usize, width: usize) -> Result<Bits> {
    let words = width * n.div_ceil(64);
    let planes: Vec<u64> = (1..=words as u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let mine = (p.party() == 2).then_some(&planes[..]);
    p.share_bits(2, mine, width, n)
}

fn product(
    p: &mut dyn Protocol,
    x: &Shared,
    y: &Shared,
    n: usize,
    shift: Option<Shift>,
) -> Result<Shared> {
    let mut z = zeros(p, n);
    let (x, y) = (parts(x), parts(y));
    let map = Bilinear::Elementwise { n };
    p.bilinear(
        &map,
        Operand::once(&x),
        Operand::once(&y),
        shift,
        &mut parts_mut(&mut z),
    )?;
    Ok(z)
}

fn opened(p: &mut dyn Protocol, x: &Shared) -> Result<Vec<u64>> {
    Ok(p.reveal(&parts(x), Recipient::All)?
        .expect("all receive it"))
}

fn opened_bits(p: &mut dyn Protocol, x: &Bits) -> Result<Vec<u64>> {
    Ok(p.reveal_bits(x, Recipient::All)?.expect("all receive it"))
}

fn zeros(p: &dyn Protocol, n: usize) -> Shared {
    vec![vec![0; n]; p.parts()]
}

fn parts(x: &Shared) -> Vec<&[u64]> {
    x.iter().map(Vec::as_slice).collect()
}

fn parts_mut(x: &mut Shared) -> Vec<&mut [u64]> {
    x.iter_mut().map(Vec::as_mut_slice).collect()
}
