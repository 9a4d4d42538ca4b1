//! Connections of clients to one server: how many there are, and whose.
//!
//! A connection whose client is not identified yet is a stranger's. Anybody may open one, and their
//! number is bounded. If there are too many, the address that has most of them gives up its oldest
//! one. So whoever opens many connections and says nothing displaces their own, and a client at
//! another address gets in. A client at the same address gets in too: it says who it is before as
//! many strangers have come after it. Each also has a deadline for its handshake.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};

/// Most connections at a time whose client is not identified yet. A test has fewer descriptors.
pub(super) const MOST_STRANGERS: usize = if cfg!(test) { 64 } else { 256 };

/// The connections that are open.
#[derive(Default)]
pub(super) struct Connections {
    is_closed: bool,
    sockets: HashMap<u64, TcpStream>,
    next: u64,
    strangers: Strangers,
    present: HashMap<usize, usize>,
    /// Connections whose client is identified.
    known: usize,
}

/// Connections whose client is not identified yet, by their numbers, with the addresses that they
/// come from. The oldest is the first.
#[derive(Default)]
struct Strangers(BTreeMap<u64, IpAddr>);

impl Strangers {
    /// Adds a connection. Returns the one that gives up its place, if one must.
    fn enter(&mut self, id: u64, address: IpAddr) -> Option<u64> {
        let displaced = if self.0.len() < MOST_STRANGERS {
            None
        } else {
            self.oldest_of_most()
        };
        if let Some(displaced) = displaced {
            self.0.remove(&displaced);
        }
        self.0.insert(id, address);
        displaced
    }

    /// Returns the oldest connection from the address that has most.
    fn oldest_of_most(&self) -> Option<u64> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for address in self.0.values() {
            *counts.entry(*address).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let mut oldest = self.0.iter();
        let found = oldest.find(|(_, address)| counts[*address] == most);
        found.map(|(id, _)| *id)
    }
}

/// Returns what stands for the origin of a connection: whoever has an address of IPv6 has all those
/// with the same first 64 bits.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}

impl Connections {
    /// Records a connection, unless this side is closed, and ends the one that it displaces.
    /// Returns its number.
    pub(super) fn enter(&mut self, socket: &TcpStream) -> Option<u64> {
        let copy = socket.try_clone().ok()?;
        let address = origin(socket.peer_addr().ok()?.ip());
        if self.is_closed {
            return None;
        }
        let id = self.next;
        self.next += 1;
        self.sockets.insert(id, copy);
        if let Some(displaced) = self.strangers.enter(id, address) {
            self.cut(displaced);
        }
        Some(id)
    }

    /// Records that a connection's client is identified. Returns false if it now has more than
    /// `most` connections.
    pub(super) fn is_known(&mut self, id: u64, client: usize, most: usize) -> bool {
        self.strangers.0.remove(&id);
        self.known += 1;
        let present = self.present.entry(client).or_default();
        *present += 1;
        *present <= most
    }

    /// Records that a connection has ended, whose client is not known if it was not identified.
    pub(super) fn leave(&mut self, id: u64, client: Option<usize>) {
        self.sockets.remove(&id);
        match client {
            None => {
                self.strangers.0.remove(&id);
            }
            Some(client) => {
                self.known -= 1;
                if let Some(present) = self.present.get_mut(&client) {
                    *present -= 1;
                }
            }
        }
    }

    /// Returns the number of connections whose client is identified.
    pub(super) fn known(&self) -> usize {
        self.known
    }

    /// Ends a connection, if it is still there.
    pub(super) fn cut(&self, id: u64) {
        self.sockets.get(&id).into_iter().for_each(shut_down);
    }

    /// Ends all connections that there are.
    pub(super) fn cut_all(&self) {
        self.sockets.values().for_each(shut_down);
    }

    /// Ends all connections, and lets none in from now on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.cut_all();
    }

    /// Returns whether this side is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

fn shut_down(socket: &TcpStream) {
    // A connection that has already ended cannot be shut down.
    drop(socket.shutdown(Shutdown::Both));
}

#[cfg(test)]
mod tests {
    use super::{MOST_STRANGERS, Strangers, origin};
    use std::net::IpAddr;

    fn address(text: &str) -> IpAddr {
        origin(text.parse().unwrap())
    }

    #[test]
    fn an_address_displaces_its_own_connections() {
        let mut strangers = Strangers::default();
        let many = MOST_STRANGERS as u64;
        // One other connection is older than all of the address that has most.
        assert_eq!(strangers.enter(0, address("10.0.0.1")), None);
        for id in 1..many {
            assert_eq!(strangers.enter(id, address("10.0.0.2")), None);
        }
        assert_eq!(strangers.enter(many, address("10.0.0.3")), Some(1));
        assert_eq!(strangers.enter(many + 1, address("10.0.0.2")), Some(2));
        assert_eq!(strangers.0.len(), MOST_STRANGERS);
        assert!(strangers.0.contains_key(&0) && strangers.0.contains_key(&many));
    }

    #[test]
    fn a_network_of_ipv6_is_one_origin() {
        let one = address("2001:db8:0:1::1");
        assert_eq!(one, address("2001:db8:0:1:ffff::2"));
        assert_ne!(one, address("2001:db8:0:2::1"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
    }
}
