//! The end of a mesh: with a peer whose link is gone, and while word of a failure is on its way.

use super::*;
use crate::Channel;
use crate::in_process::InProcess;
use crate::parameters::Parameters;

/// A link whose other end has gone.
struct Broken;

impl Link for Broken {
    fn send(&self, _: Frame) -> std::result::Result<(), PeerFault> {
        Ok(())
    }

    fn flush(&self, _: Duration, _: bool) -> std::result::Result<(), PeerFault> {
        Err("its connection broke".into())
    }

    fn cut(&self) {}
}

/// Returns this party's mesh and its inbox.
fn mesh() -> (Mesh, Arc<Inbox>) {
    mesh_of(Box::new(Broken))
}

fn mesh_of(link: Box<dyn Link>) -> (Mesh, Arc<Inbox>) {
    let roster = Roster::new(2, false.into());
    let inbox = Arc::new(Inbox::new(0, roster, 1 << 20));
    let links: Vec<Option<Box<dyn Link>>> = vec![None, Some(link)];
    let mesh = Mesh::new(0, Duration::from_millis(300), Arc::clone(&inbox), links);
    (mesh, inbox)
}

/// Closes the mesh of a peer that says goodbye, or nothing, a moment later.
fn close(goodbye: bool) -> Result<()> {
    let (mesh, inbox) = mesh();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            if goodbye {
                inbox.deliver(1, control(Kind::Goodbye, "end", Vec::new()));
            }
        });
        mesh.close()
    })
}

/// The goodbye may still be queued behind what the peer sent before.
#[test]
fn a_peer_whose_goodbye_is_on_its_way_has_finished() {
    assert!(close(true).is_ok());
}

#[test]
fn a_peer_that_takes_nothing_and_says_nothing_is_blamed() {
    let error = close(false).unwrap_err().to_string();
    assert!(error.contains("party 1 failed in step \"end\""), "{error}");
}

/// A party that computes for long between two messages finds out without a message.
#[test]
fn whoever_looks_up_knows_of_a_peer_that_has_died() {
    let (mesh, inbox) = mesh();
    let mut channel = mesh.channel(0);
    assert_eq!(channel.look(), Ok(()));
    inbox.deliver(1, control(Kind::Goodbye, "end", Vec::new()));
    assert_eq!(
        channel.look(),
        Ok(()),
        "the end of a peer was reported as an error"
    );
    let (mesh, inbox) = self::mesh();
    let mut channel = mesh.channel(0);
    inbox.ended(1, "it died".into());
    let error = channel.look().unwrap_err().to_string();
    assert!(
        error.contains("party 1 failed in step") && error.contains("it died"),
        "{error}"
    );
    // It also finds out that the program itself aborted.
    let (mesh, _) = self::mesh();
    let mut channel = mesh.channel(0);
    mesh.abort("it was wrong");
    assert!(channel.look().is_err());
}

/// A link on which nothing has arrived yet.
struct Slow;

impl Link for Slow {
    fn send(&self, _: Frame) -> std::result::Result<(), PeerFault> {
        Ok(())
    }

    fn cut(&self) {}
}

/// Three parties between threads, with a slow link from party 1 to party 2.
fn three(timeout: Duration) -> [Mesh; 3] {
    let roster = Roster::new(3, false.into());
    let inboxes: Vec<_> = (0..3)
        .map(|party| Arc::new(Inbox::new(party, roster, usize::MAX)))
        .collect();
    let link = |from: usize, to: usize| -> Option<Box<dyn Link>> {
        let to_inbox = || Arc::clone(&inboxes[to]);
        match (from, to) {
            (1, 2) => Some(Box::new(Slow)),
            _ if from == to => None,
            _ => Some(Box::new(InProcess {
                from,
                to: to_inbox(),
            })),
        }
    };
    let mesh = |party: usize| {
        let links = (0..3).map(|to| link(party, to)).collect();
        Mesh::new(party, timeout, Arc::clone(&inboxes[party]), links)
    };
    [0, 1, 2].map(mesh)
}

/// Party 1 fails; party 0 hears of it and ends, before party 2 has heard of it from party 1.
#[test]
fn who_ends_since_it_heard_of_a_failure_passes_that_on() {
    for dropped in [false, true] {
        let [zero, one, two] = three(Duration::from_secs(60));
        one.abort("its program raised");
        if dropped {
            drop(zero);
        } else {
            let mut channel = zero.channel(0);
            channel.begin("reveal");
            let error = channel.receive(2, 1).unwrap_err().to_string();
            assert_eq!(error, "party 1 failed in step \"end\": its program raised");
        }
        let mut channel = two.channel(0);
        channel.begin("reveal");
        let error = channel.receive(0, 1).unwrap_err().to_string();
        let expected = "party 1 failed in step \"end\": as party 0 reports, its program raised";
        assert_eq!(error, expected);
    }
}

/// A party's own word counts more than that of others.
#[test]
fn who_failed_is_heard_itself_where_its_word_comes_soon() {
    let [zero, one, two] = three(Duration::from_secs(60));
    one.abort("its program raised");
    drop(zero);
    let inbox = &two.shared.inbox;
    assert!(inbox.failure().is_none());
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            inbox.deliver(1, abort(Kind::Abort, Some(1), "end", "its program raised"));
        });
        two.channel(0).receive(0, 1).unwrap_err().to_string()
    });
    assert_eq!(error, "party 1 failed in step \"end\": its program raised");
}

/// A party does not pass on what others say of it as if it were its own word.
#[test]
fn who_is_blamed_passes_on_who_says_so() {
    let [zero, one, two] = three(Duration::from_secs(60));
    let blamed = Error::peer(0, "reveal", "it sent an invalid message");
    one.fail(blamed);
    drop(zero);
    let mut channel = two.channel(0);
    channel.begin("reveal");
    let error = channel.receive(0, 1).unwrap_err().to_string();
    let expected =
        "party 0 failed in step \"reveal\": as party 1 reports, it sent an invalid message";
    assert_eq!(error, expected);
}

/// Word of cheating that is passed on is the same as at first hand. Each party suspects the two
/// others.
#[test]
fn cheating_is_passed_on_as_such() {
    let [zero, one, two] = three(Duration::from_secs(60));
    let found = one.channel(0).cheated("matmul", "reveal");
    assert_eq!(found, Error::cheating(1, "matmul", "reveal"));
    drop(zero);
    let mut channel = two.channel(0);
    channel.begin("reveal");
    let error = channel.receive(0, 1).unwrap_err();
    assert_eq!(error, Error::cheating(2, "matmul", "reveal"));
}

/// The link of a party that has ended accepts nothing, and word of the cause comes a moment later.
#[test]
fn who_cannot_send_to_a_party_that_died_waits_for_word_of_the_cause() {
    let (mesh, inbox) = mesh_of(Box::new(Gone));
    let mut channel = mesh.channel(0);
    channel.begin("reveal");
    inbox.ended(1, PeerFault::NoGoodbye);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            inbox.deliver(1, abort(Kind::Abort, Some(1), "end", "its program raised"));
        });
        channel.send(1, vec![7]).unwrap_err().to_string()
    });
    assert_eq!(error, "party 1 failed in step \"end\": its program raised");
}

/// A link that accepts nothing.
struct Gone;

impl Link for Gone {
    fn send(&self, _: Frame) -> std::result::Result<(), PeerFault> {
        Err("its connection broke".into())
    }

    fn cut(&self) {}
}

/// A peer reports progress for ever, and sends the message that it owes after a minute.
#[test]
fn by_word_alone_nobody_is_waited_for_for_long() {
    let timeout = Duration::from_millis(200);
    let [zero, one, two] = three(timeout);
    let over = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            for progress in 1..6000 {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let waiting = control(Kind::Waiting, "reveal", vec![2, progress]);
                zero.shared.inbox.deliver(1, waiting);
                std::thread::sleep(Duration::from_millis(10));
            }
            let mut channel = one.channel(0);
            channel.begin("reveal");
            channel.send(0, vec![7]).unwrap();
        });
        let mut channel = zero.channel(0);
        channel.begin("reveal");
        let received = channel.receive(1, 1);
        over.store(true, Ordering::Relaxed);
        received
    });
    let error = received.unwrap_err().to_string();
    assert!(error.contains("party 2 failed"), "{error}");
    assert!(
        error.contains("it kept this party waiting for 2 s"),
        "{error}"
    );
    drop(two);
}

/// Makes a mesh with more data from a peer than there is room for, on a channel from which nothing
/// is taken. The peer has died since. That does not show, because its link is not read.
fn full() -> (Mesh, Arc<Inbox>) {
    let (mesh, inbox) = mesh();
    while inbox.queued(1) <= 1 << 20 {
        inbox.deliver(1, on(5));
    }
    (mesh, inbox)
}

fn on(channel: u16) -> Frame {
    Frame {
        channel,
        ..control(Kind::Data, "share", vec![7; 1 << 14])
    }
}

#[test]
fn behind_what_nobody_takes_no_end_is_waited_for() {
    let waits: [fn(&mut Channel) -> Result<()>; 2] =
        [Channel::close, |channel| channel.follow(1, 1).map(drop)];
    for wait in waits {
        let (mesh, _) = full();
        let error = wait(&mut mesh.channel(0)).unwrap_err().to_string();
        assert!(error.starts_with("party 1 failed in step"), "{error}");
        assert!(
            error.contains("it sent more data than this party can buffer"),
            "{error}"
        );
        mesh.close().unwrap();
    }
}

/// The wait lasts several timeouts.
#[test]
fn behind_what_somebody_takes_slowly_an_end_is_waited_for() {
    let (mesh, inbox) = full();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10 {
                inbox.deliver(1, on(5));
                std::thread::sleep(Duration::from_millis(100));
                assert!(matches!(inbox.take(1, 5, 1 << 14), Ok(Arrival::Message(_))));
            }
            let mut parameters = Parameters::default();
            parameters.fold_bytes(b"end");
            let end = Frame {
                sequence: 1,
                parameters: parameters.value(),
                ..control(Kind::End, "start", Vec::new())
            };
            inbox.deliver(1, end);
        });
        mesh.channel(0).close()
    })
    .unwrap();
}
