//! Parties that falsify a value before they record it and before they derive anything else from it.
//! All that they send afterwards agrees with the lie, and so does their proof. So a lie is found
//! only if the relation of this very value is proven.
//!
//! The values are those of an honest run, so that none is forgotten.

use crate::parties::{Found, honest, judge, nothing_is_opened, run};
use crate::programs::{PROGRAMS, Program, SHIFT};
use mpc::replicated::Replicated;
use mpc::replicated::lies::Value;
use mpc::{Error, Protocol};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use testkit::Random;

/// Numbers of elements: one run of roles, and three.
const SIZES: [usize; 2] = [3, 1540];

/// The names of all values that operations send.
const NAMES: [&str; 30] = [
    "AND",
    "E1",
    "E2",
    "H",
    "U",
    "a1",
    "a2",
    "b0",
    "b1",
    "b2",
    "c1",
    "c2",
    "carries",
    "d",
    "guard of role 1",
    "guard of role 2",
    "k1",
    "k2",
    "leaves of role 1",
    "leaves of role 2",
    "low carries",
    "m",
    "product",
    "product of residues",
    "products",
    "s2·s1",
    "s3·(s2 ∨ s1)",
    "s3·s2",
    "sums of pieces",
    "top carries",
];

/// A value of an honest run on n elements.
#[derive(Clone)]
struct Site {
    n: usize,
    liar: usize,
    /// Counts the values of this party.
    at: usize,
    value: Value,
}

/// What is added by XOR to a word of a value.
#[derive(Clone, Copy, Debug)]
struct Change {
    word: usize,
    mask: u64,
}

impl Site {
    /// Returns the words of a plane. Of bits without gaps, all words are one plane.
    fn stride(&self) -> usize {
        match self.is_of_planes() {
            true => self.value.n.div_ceil(64),
            false => self.value.words,
        }
    }

    fn is_of_planes(&self) -> bool {
        let words = ["product", "m", "H", "U", "E1", "E2", "a1", "a2", "c1", "c2"];
        let is_word = words.contains(&self.value.name)
            || self.value.name.starts_with("guard")
            || self.value.name == "sums of pieces";
        !is_word && !self.is_of_residues()
    }

    fn is_of_residues(&self) -> bool {
        let residues = ["b0", "b1", "b2", "d", "k1", "k2", "product of residues"];
        residues.contains(&self.value.name)
    }

    /// Returns bits of a word of which each counts. The others may be padding.
    fn real(&self, program: &Program, word: usize) -> u64 {
        let lowest = |bits: usize| u64::MAX >> (64 - bits.min(64));
        match self.value.name {
            // The last word is filled up, and only its lowest bit is certain.
            "AND" if word + 1 == self.value.words => 1,
            "a1" | "a2" | "c1" | "c2" if program.name == "truncation" => lowest(SHIFT as usize),
            "a1" | "a2" | "c1" | "c2" => lowest(16),
            _ if self.is_of_residues() => lowest(31),
            _ if self.is_of_planes() => lowest(self.value.n - 64 * (word % self.stride())),
            _ => u64::MAX,
        }
    }

    /// Returns changes: of a bit of each plane; of the highest bit that counts in a word, of a
    /// random bit, and of all kinds of bits of the last word.
    fn changes(&self, program: &Program, random: &mut Random) -> Vec<Change> {
        let words = self.value.words;
        let planes = (0..words).step_by(self.stride());
        let mut changes: Vec<Change> = planes.map(|word| Change { word, mask: 1 }).collect();
        let mut add = |word: usize, mask| changes.push(Change { word, mask });
        let word = random.word() as usize % words;
        add(word, 1 << self.real(program, word).ilog2());
        add(random.word() as usize % words, 1 << (random.word() % 64));
        add(words - 1, random.word() | 1);
        changes
    }
}

/// Returns all values that parties send in an honest run.
fn sites(program: &Program, n: usize) -> Vec<Site> {
    let seen: Arc<Mutex<Vec<Site>>> = Arc::default();
    let found = run(program, n, &|_| None, &|p| {
        let (liar, seen, mut at) = (p.party(), Arc::clone(&seen), 0);
        p.falsify(Box::new(move |value, _| {
            let value = value.clone();
            seen.lock().unwrap().push(Site { n, liar, at, value });
            at += 1;
        }));
    });
    assert!(found.iter().all(|found| found.result.is_ok()));
    let mut seen = seen.lock().unwrap().clone();
    seen.retain(|site| site.value.words > 0);
    seen.sort_by_key(|site| (site.liar, site.at));
    seen
}

/// Runs a program in which the liar changes a value before anything depends on it. `prepare` may
/// change all parties.
fn lied(
    program: &Program,
    site: &Site,
    change: Change,
    prepare: fn(&mut Replicated),
) -> Vec<Found> {
    let has_lied = Arc::new(AtomicBool::new(false));
    let found = run(program, site.n, &|_| None, &|p| {
        prepare(p);
        if p.party() != site.liar {
            return;
        }
        let (has_lied, Site { at, value, .. }) = (Arc::clone(&has_lied), site.clone());
        let mut seen = 0;
        p.falsify(Box::new(move |told, words| {
            if seen == at {
                assert!(*told == value, "{told:?} in place of {value:?}");
                words[change.word] ^= change.mask;
                has_lied.store(true, Ordering::Relaxed);
            }
            seen += 1;
        }));
    });
    assert!(has_lied.load(Ordering::Relaxed), "no lie was told");
    found
}

/// Checks that both honest parties stop because one of the others cheated.
fn both_stop(liar: usize, found: &[Found], of: &str) {
    for (party, Found { result, .. }) in found.iter().enumerate() {
        assert!(
            party == liar
                || matches!(result, Err(Error::Cheating { suspects, .. })
                    if !suspects.contains(&party)),
            "party {party} after {of}: {result:?}"
        );
    }
}

/// Numbers of lies that were tried, and of those that changed nothing but padding.
#[derive(Default)]
struct Tried {
    lies: usize,
    of_padding: usize,
}

impl Tried {
    /// Lets the liar of a site lie, in parties that `prepare` may change. Returns whether more than
    /// padding was changed.
    ///
    /// # Panics
    /// If an honest party does not stop, unless only padding was changed, or if something is
    /// opened.
    fn one(
        &mut self,
        program: &Program,
        site: &Site,
        change: Change,
        right: &[Vec<u64>],
        prepare: fn(&mut Replicated),
    ) -> bool {
        let (liar, n) = (site.liar, site.n);
        let of = format!("{change:?} in {:?} of {n}", site.value);
        let found = lied(program, site, change, prepare);
        let stopped = judge(program, liar, &found, right, &of);
        self.lies += 1;
        if change.mask & site.real(program, change.word) == 0 {
            self.of_padding += 1;
            return false;
        }
        assert!(stopped, "{}: nobody notices {of}", program.name);
        both_stop(liar, &found, &of);
        nothing_is_opened(program, liar, &found, &of);
        true
    }

    /// Checks the numbers.
    fn check(&self, least: usize) {
        let Self { lies, of_padding } = self;
        assert!(*lies > least, "{lies} lies");
        // Of few elements, random bits of planes are padding.
        assert!(
            of_padding * 6 < *lies,
            "{of_padding} of {lies} are of padding"
        );
    }
}

/// A lie about every value of few elements, of which every other is told where all is verified at
/// once; and one about every third value of one party that has all roles.
#[test]
fn no_lie_is_proven() {
    let (mut random, mut tried, mut names) = (Random::new(1), Tried::default(), BTreeSet::new());
    for (liar, program) in PROGRAMS.iter().enumerate() {
        for n in SIZES {
            let (right, _) = honest(program, n);
            for (at, site) in sites(program, n).into_iter().enumerate() {
                let changes = site.changes(program, &mut random);
                let mut one = |which: usize, prepare| {
                    let change = changes[which % changes.len()];
                    if tried.one(program, &site, change, &right, prepare) {
                        names.insert(site.value.name);
                    }
                };
                if n == SIZES[0] && at % 2 == 0 {
                    one(at / 2, |p| p.verify_from(0));
                } else if n == SIZES[0] || (site.liar == liar % 3 && at % 3 == 0) {
                    one(at / 2, |_| {});
                }
            }
        }
    }
    assert!(
        names.into_iter().eq(NAMES),
        "the list of values is not complete"
    );
    tried.check(300);
}

#[test]
#[ignore = "long: ten minutes"]
fn no_lie_of_thousands_is_proven() {
    let (mut random, mut tried) = (Random::new(2), Tried::default());
    for program in &PROGRAMS {
        for n in SIZES {
            let (right, _) = honest(program, n);
            for site in sites(program, n) {
                for change in site.changes(program, &mut random) {
                    tried.one(program, &site, change, &right, |_| {});
                }
            }
        }
    }
    tried.check(4000);
}
