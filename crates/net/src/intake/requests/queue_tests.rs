//! The rules of admission, order and kept answers, and the messages.

use super::FRESH;
use super::queue::{Admission, Answer, End, Key, Limits, Proposed, Queue, Quota, Whole};
use super::statement::Statement;
use super::tests::{MODEL, WORDS};
use super::wire::{Cause, Question, Refusal, Told};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn statement(client: u64, number: u8) -> Statement {
    Statement {
        service: [1; 32],
        client,
        number: [number; 16],
        made: 0,
        model: MODEL,
        words: WORDS,
        pieces: vec![[2; 32]; 3],
    }
}

/// A queue of two clients, with room for three requests, two of each client, and a model.
fn queue(now: Instant) -> Queue {
    let limits = Limits {
        queue: 3,
        deadline: Duration::from_secs(10),
        tell: super::TELL,
    };
    let quota = Quota {
        per_minute: 60,
        waiting: 2,
    };
    let mut queue = Queue::new(limits, &[quota; 2], now);
    queue.serve(Some(BTreeMap::from([(MODEL, WORDS), ([8; 32], 1)])), now);
    queue
}

fn cause(admission: &Admission) -> Option<Cause> {
    match admission {
        Admission::Refused(refusal) => Some(refusal.cause),
        _ => None,
    }
}

/// A request of [`statement`], as a connection waits for it.
fn asked(client: usize, number: u8) -> Proposed {
    let of = statement(client as u64, number);
    Proposed {
        key: (client, of.number),
        digest: of.digest(),
    }
}

/// Admits a request and lets it arrive.
fn wait(queue: &mut Queue, client: usize, number: u8, now: Instant) -> Key {
    let statement = statement(client as u64, number);
    assert_eq!(queue.admit(client, &statement, 0, now), Admission::Wanted);
    let key = (client, statement.number);
    let pieces = Vec::new();
    queue.arrived(key, Whole { statement, pieces });
    key
}

/// Lets a request of the first client wait, another of it arrive, and takes one of the second.
fn one_of_each_state(queue: &mut Queue, now: Instant) {
    wait(queue, 0, 1, now);
    let arriving = queue.admit(0, &statement(0, 2), 0, now);
    assert_eq!(arriving, Admission::Wanted);
    let taken = wait(queue, 1, 1, now);
    let proposed = queue.propose(9, now);
    assert!(queue.promise(proposed.iter().find(|each| each.key == taken).unwrap()));
}

fn answered(tag: u8) -> End {
    let tag = [tag; 32];
    let words = vec![1];
    End::Answered(Arc::new(Answer { tag, words }))
}

#[test]
fn a_number_is_used_once_and_its_answer_is_kept() {
    let now = Instant::now();
    let mut queue = queue(now);
    let key = wait(&mut queue, 0, 1, now);
    assert_eq!(queue.admit(0, &statement(0, 1), 0, now), Admission::Known);
    let other = Statement {
        pieces: vec![[3; 32]; 3],
        ..statement(0, 1)
    };
    let conflict = queue.admit(0, &other, 0, now);
    assert_eq!(cause(&conflict), Some(Cause::Conflict));
    let proposed = queue.propose(9, now);
    assert!(queue.promise(&proposed[0]));
    assert!(!queue.promise(&proposed[0]), "it is taken once");
    assert!(queue.taken(key, now).is_some());
    assert!(queue.propose(9, now).is_empty());
    assert!(queue.end(key, answered(1), now));
    assert!(!queue.end(key, answered(2), now), "it is answered once");
    assert_eq!(queue.admit(0, &statement(0, 1), 0, now), Admission::Known);
    assert_eq!(queue.told(&asked(0, 1)), Some(answered(1)));
    assert_eq!(queue.open(), 0);
    // For as long as a statement is fresh, its number is known.
    let later = now + Duration::from_secs(2 * FRESH);
    queue.expire(later);
    assert_eq!(queue.admit(0, &statement(0, 1), 0, later), Admission::Known);
    // All four connections have heard the answer.
    (0..4).for_each(|_| queue.left(&asked(0, 1)));
    let later = later + Duration::from_secs(1);
    queue.expire(later);
    let late = queue.admit(0, &statement(0, 1), 2 * FRESH as i64 + 1, later);
    assert_eq!(cause(&late), Some(Cause::Invalid));
}

#[test]
fn quotas_and_bounds_hold_and_say_when_to_come_again() {
    let now = Instant::now();
    let mut queue = queue(now);
    wait(&mut queue, 0, 1, now);
    wait(&mut queue, 0, 2, now);
    let third = queue.admit(0, &statement(0, 3), 0, now);
    assert_eq!(cause(&third), Some(Cause::Quota));
    wait(&mut queue, 1, 1, now);
    let full = queue.admit(1, &statement(1, 2), 0, now);
    assert_eq!(cause(&full), Some(Cause::Busy));
    assert!(matches!(
        full,
        Admission::Refused(Refusal { again: Some(_), .. })
    ));
    // Sixty a minute: as many at once, then one a second.
    for number in 3..61 {
        let key = (1, [1; 16]);
        queue.end(key, answered(0), now);
        let statement = statement(1, number);
        assert_eq!(queue.admit(1, &statement, 0, now), Admission::Wanted);
        queue.end((1, statement.number), answered(0), now);
    }
    wait(&mut queue, 1, 61, now);
    queue.end((1, [61; 16]), answered(0), now);
    let beyond = queue.admit(1, &statement(1, 62), 0, now);
    let Admission::Refused(refusal) = beyond else {
        panic!("the quota is used up");
    };
    assert_eq!(refusal.cause, Cause::Quota);
    let again = refusal.again.expect("it may come again");
    assert!(again > Duration::from_millis(900) && again <= Duration::from_secs(1));
    let admitted = queue.admit(1, &statement(1, 62), 0, now + again);
    assert_eq!(admitted, Admission::Wanted);
}

#[test]
fn refusals_name_their_cause() {
    let now = Instant::now();
    let mut queue = queue(now);
    let model = |model, words| Statement {
        model,
        words,
        ..statement(0, 1)
    };
    let unknown = queue.admit(0, &model([9; 32], WORDS), 0, now);
    assert_eq!(cause(&unknown), Some(Cause::Unknown));
    let long = queue.admit(0, &model(MODEL, WORDS + 1), 0, now);
    assert_eq!(cause(&long), Some(Cause::Invalid));
    let early = queue.admit(0, &statement(0, 1), -(FRESH as i64) - 1, now);
    assert_eq!(cause(&early), Some(Cause::Invalid));
    queue.serve(None, now);
    let starting = queue.admit(0, &statement(0, 1), 0, now);
    assert_eq!(cause(&starting), Some(Cause::Starting));
    queue.drain();
    let draining = queue.admit(0, &statement(0, 1), 0, now);
    assert_eq!(cause(&draining), Some(Cause::Draining));
    assert_eq!(queue.open(), 0);
}

#[test]
fn batches_take_clients_in_turn_and_one_model() {
    let now = Instant::now();
    let mut queue = queue(now);
    let first = wait(&mut queue, 0, 1, now);
    let second = wait(&mut queue, 0, 2, now);
    let third = wait(&mut queue, 1, 1, now);
    let keys = |queue: &Queue, most, now| -> Vec<Key> {
        let proposed = queue.propose(most, now).into_iter();
        proposed.map(|each| each.key).collect()
    };
    assert_eq!(keys(&queue, 2, now), [first, third]);
    assert_eq!(keys(&queue, 9, now), [first, third, second]);
    queue.pass_turn();
    assert_eq!(keys(&queue, 2, now), [third, first]);
    // A request that does not wait at all parties lets others pass.
    let mut proposed = queue.propose(9, now).into_iter();
    let first_of_all = proposed.find(|each| each.key == first).unwrap();
    assert!(queue.promise(&first_of_all));
    queue.release(first, now);
    assert_eq!(keys(&queue, 9, now), [third, second]);
    assert_eq!(keys(&queue, 1, now + Duration::from_secs(1)), [third]);
    queue.end(third, answered(0), now);
    let other = Statement {
        model: [8; 32],
        words: 1,
        ..statement(1, 3)
    };
    assert_eq!(queue.admit(1, &other, 0, now), Admission::Wanted);
    let whole = Whole {
        statement: other,
        pieces: Vec::new(),
    };
    queue.arrived((1, [3; 16]), whole);
    assert_eq!(keys(&queue, 9, now), [(1, [3; 16])]);
}

#[test]
fn what_a_party_lacks_is_proposed_less_and_less_often() {
    let mut now = Instant::now();
    let mut queue = queue(now);
    let key = wait(&mut queue, 0, 1, now);
    let mut pauses = Vec::new();
    for _ in 0..9 {
        assert!(queue.promise(&queue.propose(1, now)[0]));
        queue.release(key, now);
        let released = now;
        while queue.propose(1, now).is_empty() {
            now += Duration::from_millis(10);
        }
        pauses.push(now.duration_since(released).as_millis());
    }
    assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1280, 2560, 2560]);
}

#[test]
fn what_nobody_waits_for_is_dropped_and_what_waits_too_long_is_refused() {
    let now = Instant::now();
    let mut queue = queue(now);
    wait(&mut queue, 0, 1, now);
    queue.left(&asked(0, 1));
    assert_eq!(queue.open(), 0);
    let key = wait(&mut queue, 0, 2, now);
    assert!(queue.promise(&queue.propose(1, now)[0]));
    queue.left(&asked(0, 2));
    queue.expire(now + Duration::from_secs(11));
    assert_eq!(queue.open(), 1, "all parties have been promised it");
    assert!(queue.taken(key, now).is_some());
    queue.give_back();
    assert_eq!(queue.open(), 0, "nobody waits for it any more");
    wait(&mut queue, 0, 3, now);
    assert!(queue.promise(&queue.propose(1, now)[0]));
    assert!(queue.propose(9, now).is_empty());
    queue.give_back();
    assert_eq!(queue.propose(9, now).len(), 1);
    queue.expire(now + Duration::from_secs(11));
    let Some(End::Refused(refusal)) = queue.told(&asked(0, 3)) else {
        panic!("it is refused");
    };
    assert_eq!(refusal.cause, Cause::Deadline);
}

#[test]
fn a_number_has_one_statement_while_a_connection_waits() {
    let now = Instant::now();
    let mut queue = queue(now);
    // A connection withholds its pieces until after the request has ended and grown old.
    wait(&mut queue, 0, 1, now);
    assert_eq!(queue.admit(0, &statement(0, 1), 0, now), Admission::Known);
    queue.end((0, [1; 16]), answered(1), now);
    queue.left(&asked(0, 1));
    let other = Statement {
        pieces: vec![[3; 32]; 3],
        ..statement(0, 1)
    };
    let old = now + Duration::from_secs(2 * FRESH + 1);
    queue.expire(old);
    let conflict = queue.admit(0, &other, 0, old);
    assert_eq!(cause(&conflict), Some(Cause::Conflict));
    assert_eq!(queue.told(&asked(0, 1)), Some(answered(1)));
    // Once it has gone, another request may have the number. What comes late is not its own.
    queue.left(&asked(0, 1));
    let older = old + Duration::from_secs(2 * FRESH + 1);
    queue.expire(older);
    assert_eq!(queue.admit(0, &other, 0, older), Admission::Wanted);
    let stray = |statement| Whole {
        statement,
        pieces: Vec::new(),
    };
    queue.arrived((0, [1; 16]), stray(statement(0, 1)));
    assert!(queue.propose(9, older).is_empty());
    queue.left(&asked(0, 1));
    assert_eq!(queue.open(), 1);
    let Some(End::Refused(refusal)) = queue.told(&asked(0, 1)) else {
        panic!("its connection ends");
    };
    assert_eq!(refusal.cause, Cause::Lost);
    let of_other = Proposed {
        digest: other.digest(),
        ..asked(0, 1)
    };
    assert_eq!(queue.told(&of_other), None);
    queue.arrived((0, [1; 16]), stray(other));
    assert_eq!(queue.propose(9, older), [of_other]);
}

#[test]
fn an_answer_is_kept_until_it_is_sent() {
    let now = Instant::now();
    let mut queue = queue(now);
    let long = |tag| {
        let words = vec![0; 3 << 20];
        let tag = [tag; 32];
        End::Answered(Arc::new(Answer { tag, words }))
    };
    for number in 1..4 {
        let key = wait(&mut queue, 0, number, now);
        queue.end(key, long(number), now);
    }
    for number in 1..4 {
        let told = queue.told(&asked(0, number));
        assert!(
            told == Some(long(number)),
            "answer {number} is not sent yet"
        );
    }
    // Those that have been sent make room, until few enough are left.
    queue.left(&asked(0, 2));
    queue.left(&asked(0, 1));
    for number in 1..3 {
        let Some(End::Refused(refusal)) = queue.told(&asked(0, number)) else {
            panic!("answer {number} is no longer kept");
        };
        assert_eq!(refusal.cause, Cause::Lost);
    }
    queue.left(&asked(0, 3));
    assert!(queue.told(&asked(0, 3)) == Some(long(3)));
}

#[test]
fn requests_for_a_model_that_is_gone_are_refused() {
    let now = Instant::now();
    let mut queue = queue(now);
    one_of_each_state(&mut queue, now);
    // While the parties open another session, requests wait.
    queue.serve(None, now);
    assert_eq!(queue.open(), 3);
    queue.serve(Some(BTreeMap::from([([8; 32], 1)])), now);
    assert_eq!(queue.open(), 1, "the batch that computes is answered");
    for number in 1..3 {
        let Some(End::Refused(refusal)) = queue.told(&asked(0, number)) else {
            panic!("request {number} would wait in vain");
        };
        assert_eq!(refusal.cause, Cause::Unknown);
    }
    queue.give_back();
    assert_eq!(queue.propose(9, now).len(), 1);
    queue.serve(Some(BTreeMap::from([([8; 32], 1)])), now);
    assert_eq!(queue.open(), 0);
}

#[test]
fn what_is_withdrawn_is_brought_again() {
    let now = Instant::now();
    let mut queue = queue(now);
    wait(&mut queue, 0, 1, now);
    let taken = wait(&mut queue, 1, 1, now);
    let proposed = queue.propose(9, now);
    assert!(queue.promise(proposed.iter().find(|each| each.key == taken).unwrap()));
    queue.withdraw();
    assert!(queue.propose(9, now).is_empty());
    assert!(queue.taken(taken, now).is_some(), "its batch is computed");
    // The client comes again before its first connection has ended.
    assert_eq!(queue.admit(0, &statement(0, 1), 0, now), Admission::Wanted);
    queue.left(&asked(0, 1));
    assert_eq!(queue.open(), 2);
    let whole = Whole {
        statement: statement(0, 1),
        pieces: Vec::new(),
    };
    queue.arrived((0, [1; 16]), whole);
    assert_eq!(queue.propose(9, now), [asked(0, 1)]);
    queue.left(&asked(0, 1));
    assert_eq!(queue.open(), 1);
}

#[test]
fn a_party_without_a_session_refuses_what_waits_when_it_ends() {
    let now = Instant::now();
    let mut queue = queue(now);
    one_of_each_state(&mut queue, now);
    queue.dismiss(now);
    for number in 1..3 {
        let Some(End::Refused(refusal)) = queue.told(&asked(0, number)) else {
            panic!("request {number} would wait in vain");
        };
        assert_eq!(refusal.cause, Cause::Draining);
        assert!(refusal.again.is_some());
    }
    assert_eq!(queue.open(), 1, "a batch that computes is answered");
    let late = queue.admit(1, &statement(1, 2), 0, now);
    assert_eq!(cause(&late), Some(Cause::Draining));
}

#[test]
fn messages_are_read_back_and_garbage_is_not() {
    let asked = Question::Ask {
        statement: statement(3, 4),
        signature: vec![5; 70],
    };
    let mut bytes = Vec::new();
    asked.write(&mut bytes).unwrap();
    assert_eq!(Question::read(&mut &bytes[..]).unwrap(), asked);
    for at in 0..bytes.len() {
        assert!(Question::read(&mut &bytes[..at]).is_err());
    }
    let told = Told::Refusal(Refusal::until(
        Cause::Busy,
        Duration::from_millis(5),
        "full\u{7}",
    ));
    let mut bytes = Vec::new();
    told.write(&mut bytes).unwrap();
    let Told::Refusal(read) = Told::read(&mut &bytes[..]).unwrap() else {
        panic!("a refusal");
    };
    assert_eq!((read.cause, read.reason.as_str()), (Cause::Busy, "full "));
    assert_eq!(read.again, Some(Duration::from_millis(5)));
    let mut bytes = Vec::new();
    Told::Waiting.write(&mut bytes).unwrap();
    assert_eq!(Told::read(&mut &bytes[..]).unwrap(), Told::Waiting);
    // An answer that is longer than any.
    let long = Told::Answer {
        tag: [0; 32],
        words: super::wire::MOST_ANSWERED + 1,
    };
    let mut bytes = Vec::new();
    long.write(&mut bytes).unwrap();
    assert!(Told::read(&mut &bytes[..]).is_err());
}
