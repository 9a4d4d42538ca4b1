//! Sessions on one machine: between processes that one parent starts, and between threads.

use crate::{Options, Session, Transport, deal};
use mpc::{Error, Result};
use net::tcp::{self, Identity, Listener};
use net::{MOST_PARTIES, Mesh, in_process};
use std::thread;

/// A member's share of what the parent of several processes hands out.
pub struct Local {
    /// Listener, made before its address was given to the others.
    pub listener: Listener,
    /// Number of the member; a dealer has the number after the last party.
    pub member: usize,
    /// Addresses of all members.
    pub addresses: Vec<String>,
    /// Certificates of all members, and this member's key.
    pub identity: Identity,
}

impl Local {
    /// Takes part as a party.
    ///
    /// # Errors
    /// `Setup` or `Misuse` for errors in what was handed out; `Peer` for a member that does not
    /// come.
    pub fn connect(self, options: &Options) -> Result<Session> {
        let device = options.devices.open(self.member)?;
        Session::open(
            self.meet(options)?,
            &options.settings,
            device,
            Transport::Tls,
        )
    }

    /// Deals correlations until the parties have finished.
    ///
    /// # Errors
    /// As [`Local::connect`] and [`deal`].
    pub fn serve(self, options: &Options) -> Result<()> {
        let device = options.devices.open_for_dealer(self.member)?;
        deal(&self.meet(options)?, device)
    }

    fn meet(self, options: &Options) -> Result<Mesh> {
        let members = options.members()?;
        let dealer = usize::from(members.dealer);
        let parties = self.addresses.len().saturating_sub(dealer);
        options.settings.check(parties, false)?;
        let certificates = self.identity.certificates.clone();
        let mesh = tcp::connect(
            self.listener,
            self.member,
            &self.addresses,
            members,
            self.identity,
            options.timeout,
            &options.parameters()?,
        )?;
        options.attest(&mesh, &certificates)?;
        Ok(mesh)
    }
}

/// Opens all parties of a session in this process, to find its demand: zeros replace what the
/// source makes, and nothing is secret.
///
/// # Errors
/// As [`in_memory`].
pub fn rehearsed(parties: usize, options: &Options) -> Result<Vec<Session>> {
    let mut options = options.clone();
    options.settings.rehearsed = true;
    options.settings.record = true;
    in_memory(parties, &options)
}

/// Opens all parties of a session in this process, one for each thread of the caller. The parties
/// agree on keys in parallel; a dealer runs in one more thread.
///
/// # Errors
/// `Misuse` for a number of parties that the protocol does not support; `Setup` for a device that
/// this machine lacks.
pub fn in_memory(parties: usize, options: &Options) -> Result<Vec<Session>> {
    if !(2..=MOST_PARTIES).contains(&parties) {
        return Err(Error::misuse(format!(
            "a session has 2 to {MOST_PARTIES} parties, not {parties}"
        )));
    }
    if options.attestation.is_some() {
        return Err(Error::misuse(
            "parties that are threads of one process cannot attest: run them as processes \
             (transport \"tcp\")",
        ));
    }
    let settings = &options.settings;
    settings.check(parties, true)?;
    let members = options.members()?;
    options.devices.check(parties, members.dealer)?;
    let devices: Result<Vec<_>> = (0..parties).map(|at| options.devices.open(at)).collect();
    let devices = devices?;
    let mut meshes = in_process::mesh_of(parties, members, options.timeout);
    for dealer in meshes.drain(parties..) {
        let device = options.devices.open_for_dealer(parties)?;
        // The parties learn why the dealer ends.
        let work = move || drop(deal(&dealer, device));
        let started = thread::Builder::new().name("dealer".to_owned()).spawn(work);
        started.map_err(|_| net::no_thread("the dealer"))?;
    }
    let open = |(mesh, device)| Session::open(mesh, settings, device, Transport::Memory);
    thread::scope(|scope| {
        let threads = meshes
            .into_iter()
            .zip(devices)
            .map(|party| scope.spawn(move || open(party)));
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("opening a session does not panic"))
            .collect()
    })
}
