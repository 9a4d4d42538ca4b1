//! Rehearsals: what they record must equal what a real run asks of its source.

use super::*;
use crate::additive::parts::PART;
use crate::correlations::ahead::needed;
use crate::providers::{Environment, SOURCES};
use crate::{Addend, Settings, functions, open};
use kernels::convolution::Convolution;
use kernels::device::{Cpu, Device};
use std::sync::Arc;
use std::thread;

/// Runs operations of all kinds on n numbers, with named operands.
fn program(p: &mut dyn Protocol, n: usize) {
    let x: Vec<u64> = (0..n as u64).collect();
    let y = vec![3; n];
    let (x, y) = (&[&x[..]][..], &[&y[..]][..]);
    let shift = Shift::new(16).expect("16 is a valid shift");
    let named = |parts, name| Operand {
        parts,
        name: Some(name),
    };
    let each = Bilinear::Elementwise { n };
    let matrix = Bilinear::Matrix {
        batch: 1,
        m: n,
        k: 1,
        n: 1,
    };
    let filter = Bilinear::Convolution(Convolution {
        batch: 1,
        groups: 1,
        in_channels: 1,
        out_channels: 1,
        input: [1, n],
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
    });
    let mut words = vec![0; n];
    let out = &mut [&mut words[..]][..];
    let once = Operand::once;
    p.bilinear(&each, once(x), once(y), None, out).unwrap();
    p.bilinear(&each, once(x), once(x), Some(shift), out)
        .unwrap();
    p.bilinear(&each, once(x), named(y, 4), None, out).unwrap();
    p.bilinear(&matrix, once(x), named(&[&[7]], 5), Some(shift), out)
        .unwrap();
    if n > 0 {
        p.bilinear(&filter, once(x), named(&[&[7]], 5), None, out)
            .unwrap();
    }
    let term = |map, x, y| Term { map, x, y };
    let terms = [
        term(each, named(x, 6), named(x, 6)),
        term(each, once(x), once(y)),
        term(matrix, once(y), named(&[&[7]], 5)),
    ];
    let sum = Affine {
        terms: &terms,
        addends: &[Addend::whole(x)],
        shift,
    };
    p.affine(&sum, out).unwrap();
    p.truncate(x, shift, out).unwrap();
    for width in [4, 24, 63, 64] {
        let dropped = (width as u32 - 4).min(9);
        for compared in [
            Compared::proved(width),
            Compared::guarded(width, 9).unwrap(),
            Compared::proved(width).dropping(dropped).unwrap(),
            Compared::guarded(width, 9)
                .unwrap()
                .dropping(dropped)
                .unwrap(),
        ] {
            let tally = p.rectify(x, None, compared, out).unwrap();
            let beside = p.rectified_affine(&sum, compared, out).unwrap();
            let tallies: Vec<&Tally> = tally.iter().chain(&beside).collect();
            p.in_range(&tallies).unwrap();
        }
        let sign = p.sign(x, width).unwrap();
        p.bit_multiply(&sign, x, out).unwrap();
        p.bit_to_ring(&sign, out).unwrap();
        p.equal_zero(x, width).unwrap();
        let bits = p.to_binary(x, width).unwrap();
        p.and(&bits, &bits).unwrap();
        let plane = bits.planes(0..1);
        p.and_all(&[
            Join::new(&plane, vec![&plane; 3]),
            Join::new(&bits, vec![&bits; 2]),
        ])
        .unwrap();
    }
    p.to_binary(x, 1).unwrap();
    p.equal_zero(x, 1).unwrap();
    functions::maximum(p, x, y, Compared::proved(32), out).unwrap();
    functions::leading_zeros(p, x, 17).unwrap();
    functions::low_bits(p, x, 9, out).unwrap();
    let shared = p.share_bits(0, Some(&vec![0; kernels::planes::words_of(n)]), 1, n);
    let public = p.trivial_bits(&vec![0; kernels::planes::words_of(n)], 1, n);
    p.and(&shared.unwrap(), &public).unwrap();
}

#[test]
fn it_is_known_from_shapes_what_a_run_asks_for() {
    for (parties, source, comparisons) in [
        (2, "dealer", Comparisons::Guarded),
        (2, "ot", Comparisons::LookedUp),
        (3, "dealer", Comparisons::Guarded),
        (3, "ot", Comparisons::Masked),
    ] {
        let settings = Settings {
            protocol: "additive".to_owned(),
            source: Some(source.to_owned()),
            record: true,
            rehearsed: true,
            ..Settings::default()
        };
        // The second run finds the masks that the first has kept.
        let sizes = [100, 100, 0, 1, 64];
        let meshes = in_process::mesh(parties, Duration::from_secs(60));
        let asked: Vec<Vec<Job>> = thread::scope(|scope| {
            let run = |mesh: Mesh| {
                let device: Arc<dyn Device> = Arc::new(Cpu::default());
                let mut protocol = open(&settings, &mesh, &device, true).unwrap();
                for (at, n) in sizes.into_iter().enumerate() {
                    if at > 1 {
                        for name in [4, 5, 6] {
                            protocol.forget(name);
                        }
                    }
                    program(&mut *protocol, n);
                }
                let demand = protocol.correlated().unwrap().demand().unwrap();
                demand.jobs().to_vec()
            };
            let threads: Vec<_> = meshes
                .into_iter()
                .map(|mesh| scope.spawn(move || run(mesh)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join().unwrap());
            ended.collect()
        });
        for (party, asked) in asked.into_iter().enumerate() {
            let mut noted = Rehearsed::new(
                party,
                parties,
                Trust::NOBODY,
                comparisons,
                PART,
                HashMap::new(),
            );
            for (at, n) in sizes.into_iter().enumerate() {
                if at > 1 {
                    noted.masked.clear();
                }
                program(&mut noted, n);
            }
            let needed = needed(&noted.jobs(), |_| 0);
            let asked = asked.into_iter();
            let asked: Vec<Job> = asked
                .filter(|job| !matches!(job, Job::Forget { .. }))
                .collect();
            assert_eq!(
                Vec::from(needed),
                asked,
                "party {party} of {parties}, {source}"
            );
        }
    }
}

/// Runs comparisons of all kinds that take parts.
fn comparisons(p: &mut dyn Protocol, n: usize) {
    let (x, mut words) = (vec![3; n], vec![0; n]);
    let (x, out) = (&[&x[..]][..], &mut [&mut words[..]][..]);
    p.rectify(x, None, Compared::proved(64), out).unwrap();
    p.sign(x, 5).unwrap();
    p.equal_zero(x, 33).unwrap();
    p.truncate(x, Shift::new(16).expect("16 is a valid shift"), out)
        .unwrap();
    let dropping = Compared::proved(40).dropping(7).unwrap();
    p.rectify(x, None, dropping, out).unwrap();
}

#[test]
fn parts_take_their_correlations_in_the_order_in_which_they_are_announced() {
    const SMALL: usize = 256;
    for n in [2 * SMALL, 1000, 8 * SMALL + 37] {
        let meshes = in_process::mesh(2, Duration::from_secs(60));
        let asked: Vec<Vec<Job>> = thread::scope(|scope| {
            let run = |mesh: Mesh| {
                let source = SOURCES.iter().find(|source| source.name == "ot");
                let device: Arc<dyn Device> = Arc::new(Cpu::default());
                let environment = Environment {
                    mesh: &mesh,
                    source,
                    file: None,
                    record: true,
                    rehearsed: true,
                    device: &device,
                };
                let mut protocol = environment.additive().unwrap();
                protocol.part = SMALL;
                comparisons(&mut protocol, n);
                let demand = protocol.correlated().unwrap().demand().unwrap();
                demand.jobs().to_vec()
            };
            let threads = meshes
                .into_iter()
                .map(|mesh| scope.spawn(move || run(mesh)));
            let threads: Vec<_> = threads.collect();
            let ended = threads.into_iter().map(|thread| thread.join().unwrap());
            ended.collect()
        });
        for (party, asked) in asked.into_iter().enumerate() {
            let (trust, kept) = (Trust::NOBODY, HashMap::new());
            let mut noted = Rehearsed::new(party, 2, trust, Comparisons::LookedUp, SMALL, kept);
            comparisons(&mut noted, n);
            assert_eq!(Vec::from(needed(&noted.jobs(), |_| 0)), asked, "{n}");
        }
    }
}
