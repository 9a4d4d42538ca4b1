//! How a mesh closes towards a peer whose link is gone.

use super::*;

/// A link whose other end has gone.
struct Broken;

impl Link for Broken {
    fn send(&self, _: Frame) -> std::result::Result<(), String> {
        Ok(())
    }

    fn clear(&self) {}

    fn flush(&self, _: Duration, _: bool) -> std::result::Result<(), String> {
        Err("its connection broke".to_owned())
    }

    fn cut(&self) {}
}

/// This party's end, and what comes in there.
fn mesh() -> (Mesh, Arc<Inbox>) {
    let roster = Roster {
        members: 2,
        dealer: false,
    };
    let inbox = Arc::new(Inbox::new(roster, 1 << 20));
    let links: Vec<Option<Box<dyn Link>>> = vec![None, Some(Box::new(Broken))];
    let mesh = Mesh::new(0, Duration::from_millis(300), Arc::clone(&inbox), links);
    (mesh, inbox)
}

/// Closes towards a peer that says goodbye, or nothing, a moment later.
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

/// As when its goodbye is still behind what it sent before.
#[test]
fn a_peer_whose_goodbye_is_on_its_way_has_finished() {
    assert!(close(true).is_ok());
}

#[test]
fn a_peer_that_takes_nothing_and_says_nothing_is_blamed() {
    let error = close(false).unwrap_err().to_string();
    assert!(error.contains("party 1 failed in step \"end\""), "{error}");
}

/// Who computes for long between two messages looks up, and needs nobody's message to know.
#[test]
fn whoever_looks_up_knows_of_a_peer_that_has_died() {
    let (mesh, inbox) = mesh();
    let mut channel = mesh.channel(0);
    assert_eq!(channel.look(), Ok(()));
    inbox.deliver(1, control(Kind::Goodbye, "end", Vec::new()));
    assert_eq!(channel.look(), Ok(()), "it has finished in order");
    let (mesh, inbox) = self::mesh();
    let mut channel = mesh.channel(0);
    inbox.ended(1, "it died".to_owned());
    let error = channel.look().unwrap_err().to_string();
    assert!(
        error.contains("party 1 failed in step") && error.contains("it died"),
        "{error}"
    );
    // Also of one that says so.
    let (mesh, _) = self::mesh();
    let mut channel = mesh.channel(0);
    mesh.abort("it was wrong");
    assert!(channel.look().is_err());
}
