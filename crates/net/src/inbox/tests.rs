//! Tests of which thread reads a link.

use super::*;
use crate::frame::LONGEST_NAME;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, ThreadId};

/// A source that returns the frames put into it, and reports which thread read each frame.
struct Fed {
    frames: Receiver<Frame>,
    readers: Sender<ThreadId>,
}

impl Source for Fed {
    fn words_under_way(&self) -> usize {
        0
    }

    fn read(&mut self) -> std::result::Result<Option<Frame>, PeerFault> {
        match self.frames.recv_timeout(PAUSE) {
            Ok(frame) => {
                self.readers.send(thread::current().id()).unwrap();
                Ok(Some(frame))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err("it is gone".into()),
        }
    }

    fn received(&self) -> u64 {
        0
    }

    fn under_way(&self) -> Option<(u16, u64)> {
        None
    }
}

fn frame(kind: Kind, channel: u16, words: usize) -> Frame {
    Frame {
        kind,
        channel,
        depth: 0,
        sequence: 0,
        parameters: 0,
        name: "test".into(),
        piggyback: Vec::new(),
        signature: None,
        payload: vec![7; words],
    }
}

/// Runs a test with the inbox of party 0, to which party 1 sends.
fn with_feed(room: usize, test: impl FnOnce(&Inbox, Sender<Frame>, &Receiver<ThreadId>)) {
    let roster = Roster::new(2, false.into());
    let inbox = Arc::new(Inbox::new(0, roster, room));
    let (feed, frames) = channel();
    let (readers, read_by) = channel();
    inbox.attach(1, Box::new(Fed { frames, readers }));
    let own = Arc::clone(&inbox);
    let own = thread::spawn(move || own.read_unattended(1));
    test(&inbox, feed, &read_by);
    inbox.close();
    own.join().unwrap();
}

/// Takes a message of a channel, however many pauses that takes.
fn message(inbox: &Inbox, channel: u16, words: usize) -> Frame {
    loop {
        match inbox.take(1, channel, words).unwrap() {
            Arrival::Message(frame) => return frame,
            Arrival::Nothing => {}
            Arrival::Ended(end) => panic!("{end:?}"),
        }
    }
}

#[test]
fn whoever_waits_for_small_messages_reads_them() {
    with_feed(1 << 20, |inbox, feed, read_by| {
        // The first frames may still be read by the link's own thread.
        for _ in 0..100 {
            feed.send(frame(Kind::Data, 0, 1)).unwrap();
            message(inbox, 0, 1);
        }
        let me = thread::current().id();
        let mine = read_by.try_iter().filter(|reader| *reader == me).count();
        assert!(mine > 10, "{mine} of 100");
    });
}

#[test]
fn what_nobody_waits_for_is_read_and_long_messages_are_read_elsewhere() {
    with_feed(1 << 20, |inbox, feed, read_by| {
        let me = thread::current().id();
        for _ in 0..10 {
            feed.send(frame(Kind::Data, 0, 1)).unwrap();
            assert_ne!(
                read_by.recv().unwrap(),
                me,
                "this thread read a message that it did not wait for"
            );
            message(inbox, 0, 1);
            feed.send(frame(Kind::Data, 0, 1 << 14)).unwrap();
            message(inbox, 0, 1 << 14);
            assert_ne!(
                read_by.recv().unwrap(),
                me,
                "this thread read a long message"
            );
        }
    });
}

#[test]
fn threads_that_wait_for_one_peer_all_get_theirs() {
    const EACH: usize = 2000;
    with_feed(1 << 20, |inbox, feed, _| {
        thread::scope(|scope| {
            for channel in 0..4_u16 {
                scope.spawn(move || {
                    for at in 0..EACH {
                        let words = if at % 7 == 0 { 1 << 12 } else { 1 };
                        assert_eq!(message(inbox, channel, words).payload.len(), words);
                    }
                });
            }
            for at in 0..EACH {
                for channel in 0..4 {
                    let words = if at % 7 == 0 { 1 << 12 } else { 1 };
                    feed.send(frame(Kind::Data, channel, words)).unwrap();
                }
            }
        });
    });
}

#[test]
fn a_full_inbox_is_read_no_further_until_there_is_room() {
    with_feed(1 << 10, |inbox, feed, read_by| {
        for _ in 0..50 {
            feed.send(frame(Kind::Data, 0, 64)).unwrap();
        }
        while read_by.recv_timeout(PAUSE).is_ok() {}
        assert!(inbox.queued(1) < 1 << 12, "{}", inbox.queued(1));
        for _ in 0..50 {
            message(inbox, 0, 64);
        }
        assert_eq!(inbox.queued(1), 0);
    });
}

#[test]
fn where_a_peer_stands_is_kept_once_for_each_of_a_bounded_number_of_channels() {
    with_feed(1 << 10, |inbox, _, _| {
        for sequence in 0..2 {
            for channel in 0..u16::MAX {
                let place = Frame {
                    sequence,
                    payload: vec![0],
                    ..frame(Kind::Waiting, channel, 1)
                };
                inbox.deliver(1, place);
            }
        }
        let reports = inbox.step_reports(1);
        assert_eq!(reports.len(), MOST_CHANNELS);
        assert!(reports.iter().all(|report| report.sequence == 1));
        assert_eq!(inbox.waits_for(1).map(|(party, _)| party), Some(0));
        inbox.deliver(1, frame(Kind::Waiting, 0, 0));
        assert_eq!(inbox.step_reports(1).len(), MOST_CHANNELS);
    });
}

#[test]
fn an_end_and_an_abort_reach_who_waits_and_who_does_not() {
    with_feed(1 << 20, |inbox, feed, _| {
        drop(feed);
        let gone = loop {
            match inbox.take(1, 0, 1).unwrap() {
                Arrival::Ended(end) => break end,
                Arrival::Nothing => {}
                Arrival::Message(_) => panic!("a message arrived although none was sent"),
            }
        };
        assert_eq!(gone, End::Died("it is gone".into()));
    });
    with_feed(1 << 20, |inbox, feed, _| {
        feed.send(frame(Kind::Abort, 0, 2)).unwrap();
        while inbox.failure().is_none() {
            thread::yield_now();
        }
        assert!(inbox.take(1, 0, 1).is_err());
        // Frames after the end are dropped with the source.
        while feed.send(frame(Kind::Data, 0, 1)).is_ok() {
            thread::yield_now();
        }
    });
}

/// Returns what a party of `members` members makes of word from party 1 that one of two cheated.
fn told(members: usize, dealer: bool, last: &[u8], length: u64) -> Error {
    let inbox = Inbox::new(0, Roster::new(members, dealer.into()), 1 << 20);
    let mut payload = vec![EITHER, length];
    payload.extend(bytes::to_words(last));
    let word = Frame {
        payload,
        ..frame(Kind::Abort, 0, 0)
    };
    inbox.deliver(1, word);
    inbox.failure().expect("an abort ends the mesh")
}

#[test]
fn word_of_cheating_is_bounded_and_freed_of_control_characters() {
    assert_eq!(
        told(3, false, b"reveal", 6),
        Error::cheating(0, "test", "reveal")
    );
    assert_eq!(
        told(3, false, b"a\x1b[2Jb\nc", 8),
        Error::cheating(0, "test", "a[2Jbc")
    );
    let long = "é".repeat(LONGEST_REASON / 2);
    let most = "é".repeat(LONGEST_NAME / 2);
    assert_eq!(
        told(3, false, long.as_bytes(), u64::MAX),
        Error::cheating(0, "test", &most)
    );
    assert_eq!(
        told(3, false, &[0xff], 1),
        Error::cheating(0, "test", "\u{fffd}")
    );
    assert_eq!(
        told(3, false, b"", u64::MAX),
        Error::cheating(0, "test", "")
    );
}

/// Only of three can it be said. Elsewhere the party that says it is to blame.
#[test]
fn word_of_cheating_means_nothing_unless_three_compute() {
    for (members, dealer) in [(2, false), (3, true), (4, false), (4, true)] {
        let blamed = Error::peer(1, "test", "reveal");
        assert_eq!(told(members, dealer, b"reveal", 6), blamed);
    }
}
