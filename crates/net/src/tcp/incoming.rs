//! The receiving half of a link: opens and decodes what a peer sends.

use super::tls;
use crate::error::cause;
use crate::frame::{Decoder, Frame};
use crate::inbox::{PAUSE, Source};
use std::io::{self, BufReader, ErrorKind};
use std::net::Shutdown;

/// Room for the heads and payloads of small messages; longer payloads go where they stay.
const SMALL: usize = 1 << 12;

pub(super) struct Incoming {
    stream: BufReader<tls::Incoming>,
    decoder: Decoder,
}

impl Incoming {
    pub(super) fn new(stream: tls::Incoming) -> io::Result<Self> {
        stream.sock.set_read_timeout(Some(PAUSE))?;
        Ok(Self {
            stream: BufReader::with_capacity(SMALL, stream),
            decoder: Decoder::default(),
        })
    }
}

impl Source for Incoming {
    fn read(&mut self) -> Result<Option<Frame>, String> {
        match self.decoder.read(&mut self.stream) {
            Ok(frame) => Ok(Some(frame)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(None),
                ErrorKind::InvalidData => Err(format!("it sent what cannot be: {error}")),
                _ => Err(format!(
                    "its connection ended without a goodbye ({}): it died, was killed or was cut off; look at its \
                     own output",
                    cause(&error)
                )),
            },
        }
    }
}

/// What the peer still sends is refused, so that it comes to an end, too.
impl Drop for Incoming {
    fn drop(&mut self) {
        drop(self.stream.get_ref().sock.shutdown(Shutdown::Both));
    }
}
