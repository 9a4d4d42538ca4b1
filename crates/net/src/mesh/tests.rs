//! How a mesh closes towards a peer whose link is gone.

use super::*;

/// A link whose other end has gone.
struct Broken;

impl Link for Broken {
    fn send(&self, _: Frame) -> std::result::Result<(), String> {
        Ok(())
    }

    fn clear(&self) {}

    fn flush(&self, _: Duration) -> std::result::Result<(), String> {
        Err("its connection broke".to_owned())
    }

    fn cut(&self) {}
}

/// Closes towards a peer that says goodbye, or nothing, a moment later.
fn close(goodbye: bool) -> Result<()> {
    let roster = Roster {
        members: 2,
        dealer: false,
    };
    let inbox = Arc::new(Inbox::new(roster, 1 << 20));
    let links: Vec<Option<Box<dyn Link>>> = vec![None, Some(Box::new(Broken))];
    let mesh = Mesh::new(0, Duration::from_millis(300), Arc::clone(&inbox), links);
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
