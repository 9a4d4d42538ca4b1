//! Prints how many transfers, correlations and products each end makes per second:
//! `RAYON_NUM_THREADS=1 cargo run --release -p tacit-ot --example throughput`. Arguments give
//! depths of the trees other than the usual one.

use ot::products::{self, ScalarKeys, Scalars};
use ot::{Pair, Receiver, Sender, Setup};
use std::time::Instant;

/// The allocator of sessions.
#[global_allocator]
static MEMORY: kernels::large_pages::LargePages = kernels::large_pages::LargePages;

const WORDS: usize = 1 << 14;
const REPETITIONS: usize = 9;

/// Returns the median time of calls of `run`, in seconds, and the last result.
fn median<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        let result = run();
        times.push(start.elapsed().as_secs_f64());
        if times.len() == REPETITIONS {
            times.sort_by(f64::total_cmp);
            return (times[REPETITIONS / 2], result);
        }
    }
}

/// Returns the medians at both ends of a step in which the chooser, the sender and the chooser take
/// turns.
fn both<A, B>(
    mut choose: impl FnMut() -> A,
    mut offer: impl FnMut(&A) -> B,
    mut receive: impl FnMut(A, B),
) -> (f64, f64) {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        let chosen = choose();
        let chooser = start.elapsed();
        let start = Instant::now();
        let offered = offer(&chosen);
        times[0].push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        receive(chosen, offered);
        times[1].push((chooser + start.elapsed()).as_secs_f64());
    }
    times
        .each_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[REPETITIONS / 2]
        })
        .into()
}

fn report(what: &str, count: usize, words: usize, (sender, receiver): (f64, f64)) {
    let millions = |seconds: f64| count as f64 / seconds / 1e6;
    println!(
        "  {what:32} sender {:8.2} M/s, receiver {:8.2} M/s; {:8.2} bits each",
        millions(sender),
        millions(receiver),
        words as f64 * 64.0 / count as f64
    );
}

fn set_up(depth: usize) -> (Pair, Pair) {
    let (one, first) = Setup::with_depth(b"throughput", true, depth).expect("randomness");
    let (two, second) = Setup::with_depth(b"throughput", false, depth).expect("randomness");
    let (one, for_two) = one.reply(&second).expect("a point");
    let (two, for_one) = two.reply(&first).expect("a point");
    let (one, after) = one.correct(&for_one).expect("points");
    let (two, other) = two.correct(&for_two).expect("points");
    (
        one.finish(&other).expect("corrections"),
        two.finish(&after).expect("corrections"),
    )
}

fn main() {
    let mut depths: Vec<usize> = std::env::args()
        .skip(1)
        .map(|depth| depth.parse().expect("a depth"))
        .collect();
    if depths.is_empty() {
        depths.push(ot::DEPTH);
    }
    println!("{} threads", rayon::current_num_threads());
    for depth in depths {
        measure(depth);
    }
}

fn measure(depth: usize) {
    let (seconds, (mut one, mut two)) = median(|| set_up(depth));
    println!(
        "trees of depth {depth}: set-up of both ends {:.1} ms",
        seconds * 1e3
    );
    let choices: Vec<u64> = (0..WORDS as u64)
        .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let values: Vec<u64> = (0..64 * WORDS as u64)
        .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let (chooser, sender) = (&mut one.receiver, &mut two.sender);
    forms(chooser, sender, &choices, &values, false);

    let scalars = &values[..WORDS];
    let bits = products::choices(scalars);
    let times = both(
        || chooser.extend(&bits),
        |(message, _)| {
            let offered = sender.extend(bits.len(), message).expect("its length");
            products::offer(offered, scalars).1
        },
        |(_, chosen), message| drop(products::receive(chosen, WORDS, &message)),
    );
    report(
        "products",
        WORDS,
        chooser.extension_words(WORDS) + products::message_words(WORDS),
        times,
    );

    for (bits, n) in [
        (1, 1),
        (1, 10),
        (1, 1000),
        (2, 1),
        (2, 10),
        (2, 1000),
        (4, 1),
        (4, 10),
        (4, 1000),
    ] {
        let (m, k) = (4, 100);
        let choices = products::choices(&values[..m * k]);
        let (message, chosen) = chooser.extend(&choices);
        let offered = sender.extend(choices.len(), &message).expect("its length");
        let (mut keys, message) = ScalarKeys::new(offered, m * k).in_digits(bits);
        let set = Scalars::new(chosen, &values[..m * k]);
        let mut set = set.in_digits(bits, &message).expect("its length");
        let words = keys.rows_words(k, m, n);
        let (mut mine, mut theirs) = (vec![0; m * n], vec![0; m * n]);
        let times = both(
            || (),
            |()| keys.multiply_rows(k, 0..m, &values[..k * n], n, &mut mine),
            |(), message| {
                set.multiply_rows(k, 0..m, n, &mut theirs, &message)
                    .expect("its length");
            },
        );
        report(
            &format!("rows by {n} columns, digits of {bits}"),
            m * k * n,
            words,
            times,
        );
    }
    println!("silent");
    forms(chooser, sender, &choices, &values, true);
}

/// Measures the forms of transfers.
fn forms(
    chooser: &mut Receiver,
    sender: &mut Sender,
    choices: &[u64],
    values: &[u64],
    is_silent: bool,
) {
    refill(chooser, sender, is_silent);
    let extension = chooser.extension_words(WORDS);
    let times = both(
        || chooser.extend(choices),
        |(message, _)| sender.extend(WORDS, message),
        |_, _| (),
    );
    report("extension alone", 64 * WORDS, extension, times);
    refill(chooser, sender, is_silent);
    let times = both(
        || chooser.extend(choices),
        |(message, _)| sender.extend(WORDS, message).expect("its length").random(),
        |(_, chosen), _| drop(chosen.random()),
    );
    report("random", 64 * WORDS, extension, times);
    refill(chooser, sender, is_silent);
    let times = both(
        || chooser.extend(choices),
        |(message, _)| {
            sender
                .extend(WORDS, message)
                .expect("its length")
                .correlate_bits(&[choices])
                .1
        },
        |(_, chosen), message| drop(chosen.correlate_bits(1, &message)),
    );
    report("correlated bits", 64 * WORDS, extension + WORDS, times);
    refill(chooser, sender, is_silent);
    let times = both(
        || chooser.extend(choices),
        |(message, _)| {
            sender
                .extend(WORDS, message)
                .expect("its length")
                .correlate(&[values], 64)
                .1
        },
        |(_, chosen), message| drop(chosen.correlate(1, 64, &message)),
    );
    report(
        "correlated words",
        64 * WORDS,
        extension + 64 * WORDS,
        times,
    );
}

/// Prepares silent transfers for one measurement, if they are wanted.
fn refill(chooser: &mut Receiver, sender: &mut Sender, is_silent: bool) {
    let transfers = REPETITIONS * 64 * WORDS;
    if let Some(lengths) = chooser.refill(transfers).filter(|_| is_silent) {
        let start = Instant::now();
        let request = chooser.request();
        let requested = start.elapsed();
        let start = Instant::now();
        let answer = sender.answer(lengths, &request).expect("its length");
        let answered = start.elapsed();
        let start = Instant::now();
        chooser.refilled(&answer).expect("its length");
        sender.refilled();
        println!(
            "  refill: sender {:.1} ms, receiver {:.1} ms; {} kB",
            answered.as_secs_f64() * 1e3,
            (requested + start.elapsed()).as_secs_f64() * 1e3,
            8 * (request.len() + answer.len()) / 1000
        );
    }
}
