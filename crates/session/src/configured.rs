//! Members of a `parties.toml`: parties, the dealer, and those that make files of correlations.

use crate::attestation::Attestation;
use crate::options::{protocol_of, settings};
use crate::{Options, Session, Transport, Words, deal, devices, local};
use kernels::device::{Cpu, Device};
use mpc::correlations::Demand;
use mpc::correlations::file::Place;
use mpc::{Error, Needs, Result, preprocessing};
use net::config::{Config, LONGEST_TIMEOUT, LenientConfig};
use net::tcp::{self, Identity};
use net::{Members, Mesh};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time for which a member whose set-up fails tries to reach the others, which may be starting too.
const WHILE_STARTING: Duration = Duration::from_secs(5);

/// Choices that replace those of the configuration file.
#[derive(Clone, Default)]
pub struct Choices {
    /// Name of the protocol.
    pub protocol: Option<String>,
    /// Name of the source of correlations.
    pub source: Option<String>,
    /// Longest wait for one message.
    pub timeout: Option<Duration>,
    /// Whether to record the demand for correlations.
    pub record: bool,
    /// Whether computed values are checked to stay in range.
    pub checked: Option<bool>,
    /// Words of texts for the members and for advice.
    pub words: Option<&'static Words>,
    /// Name of this party's device.
    pub device: Option<String>,
    /// Content of the program, whose digest is attested if the file asks for it.
    pub program: Option<Vec<u8>>,
}

/// Correlations to make.
pub struct Making {
    /// Demand of one run, by jobs.
    pub demand: Demand,
    /// Number of runs.
    pub runs: u32,
    /// Path of this party's file.
    pub out: PathBuf,
}

impl Choices {
    /// Returns the options of a configuration file, with these choices in place of the file's.
    fn options(&self, config: &Config) -> Result<Options> {
        let of_file = protocol_of(config);
        let protocol = self.protocol.as_deref().unwrap_or(of_file);
        // The file's source belongs to the file's protocol.
        let source = match self.source.as_ref() {
            None if protocol == of_file => config.source.clone(),
            source => source.cloned(),
        };
        let timeout = self.timeout.unwrap_or(config.timeout);
        let mut options = Options::new(protocol, source, timeout)?;
        options.settings.record = self.record;
        let options = options.in_words(self.words.unwrap_or(&Words::PARTIES));
        options.attested(Attestation::of_party(config, self.program.as_deref())?)
    }
}

/// Takes part as one of the parties.
///
/// # Errors
/// `Setup` or `Misuse` for errors in the file, the options or this party's own files; `Peer` for a
/// party that does not come.
pub fn connect(path: &Path, party: usize, choices: &Choices) -> Result<Session> {
    let ready = telling(path, Some(party), || {
        let config = Config::read(path)?;
        let mut options = choices.options(&config)?;
        options.settings.check(config.parties(), false)?;
        if options.settings.needs(Needs::File)? {
            let path = config.correlations(party)?;
            let secret = config.identity(party, false)?.key;
            options.settings.file = path.map(|path| Place { path, secret });
        }
        let is_checked = choices.checked.unwrap_or(config.checked);
        let ready = Ready::new(&config, Some(party), options)?;
        let device = device(&config, party, choices.device.as_deref())?;
        Ok((ready, device, is_checked))
    })?;
    let (ready, device, is_checked) = ready;
    let (mesh, options) = ready.meet()?;
    let session = Session::open(mesh, &options.settings, device, Transport::Tls)?;
    Ok(session.checked(is_checked))
}

/// Deals correlations to the parties until they have finished. `words` are the words of texts for
/// the members.
///
/// # Errors
/// As [`connect`] and [`deal`].
pub fn serve(path: &Path, timeout: Option<Duration>, words: &'static Words) -> Result<()> {
    let ready = telling(path, None, || {
        let config = Config::read(path)?;
        let options = Options::of_dealer(timeout.unwrap_or(config.timeout))?;
        let options = options.attested(Attestation::of_dealer(&config)?)?;
        let ready = Ready::new(&config, None, options.in_words(words))?;
        Ok((ready, device(&config, config.parties(), None)?))
    })?;
    let (ready, device) = ready;
    deal(&ready.meet()?.0, device)
}

/// Opens a member's device: the chosen one, or the one that the file names for the member. The
/// dealer has the number after the last party.
fn device(config: &Config, member: usize, chosen: Option<&str>) -> Result<Arc<dyn Device>> {
    match chosen.or(config.device(member)?) {
        Some(name) => devices::open(name),
        None => Ok(Arc::new(Cpu::default())),
    }
}

/// Opens, in this process, all parties of the sessions for which that source makes a file of
/// correlations. The program's requests in them are the demand of its runs.
///
/// # Errors
/// `Setup` or `Misuse` for errors in the file or the source, or for a protocol that consumes no
/// correlations.
pub fn rehearsed(path: &Path, source: Option<String>) -> Result<Vec<Session>> {
    let config = Config::read(path)?;
    let protocol = protocol_of(&config);
    if settings(protocol, None).source()?.is_none() {
        return Err(Error::misuse(format!(
            "{}: protocol {protocol:?} consumes no correlations, so none are made for it",
            path.display()
        )));
    }
    let mut options = makers(&config, source)?;
    // No party waits for a link here.
    options.timeout = LONGEST_TIMEOUT;
    local::rehearsed(config.parties(), &options)
}

/// Returns the options of members that make a file of correlations.
fn makers(config: &Config, source: Option<String>) -> Result<Options> {
    // The file is for later sessions, whose source it will be.
    let source = match source {
        None => {
            let options = Options::new(mpc::consuming(), config.source.clone(), config.timeout)?;
            let live = !options.settings.needs(Needs::File)?;
            options.settings.source.filter(|_| live)
        }
        source => source,
    };
    let options = Options::new(mpc::consuming(), source, config.timeout)?;
    if options.settings.needs(Needs::File)? {
        return Err(Error::misuse(format!(
            "a file of correlations is made by a source that needs none: {}",
            mpc::sources(|needs| needs != Needs::File)
        )));
    }
    Ok(options)
}

/// Makes this party's file of correlations together with the other parties. Calls `progress` with
/// the numbers of finished jobs and of all jobs. `words` are the words of texts for the members.
///
/// # Errors
/// As [`connect`] and [`preprocessing::make`].
pub fn make(
    path: &Path,
    party: usize,
    source: Option<String>,
    work: &Making,
    words: &'static Words,
    progress: impl FnMut(usize, usize),
) -> Result<()> {
    let made = telling(path, Some(party), || {
        let config = Config::read(path)?;
        if config.attestation().is_some() {
            return Err(Error::misuse(
                "attested parties take no correlations from files, so none are made: remove \
                 [attestation] from the file, or run the session without a file",
            ));
        }
        let options = makers(&config, source)?.in_words(words);
        let place = Place {
            path: work.out.clone(),
            secret: config.identity(party, false)?.key,
        };
        let ready = Ready::new(&config, Some(party), options)?;
        let device = device(&config, party, None)?;
        Ok((ready, device, place))
    })?;
    let (ready, device, place) = made;
    let (mesh, options) = ready.meet()?;
    let Making { demand, runs, .. } = work;
    let settings = &options.settings;
    let made = preprocessing::make(settings, &mesh, &device, demand, *runs, &place, progress);
    match made {
        Ok(()) => mesh.close(),
        Err(error) => {
            mesh.fail(error.clone());
            Err(error)
        }
    }
}

/// Tells the other members that this party cannot take part, for a reason that its program found.
/// Calls members that are not there again and again, for at most `most`.
///
/// # Errors
/// `Setup` or `Misuse` for errors in the file too. The members that it names have then been told as
/// far as it can be read.
pub fn refuse(path: &Path, party: usize, reason: &str, most: Duration) -> Result<()> {
    tell(path, Some(party), reason, most);
    check_number(&Config::read(path)?, party)
}

/// Tells the members that can be read from a file why this member does not come.
fn tell(path: &Path, party: Option<usize>, reason: &str, most: Duration) {
    if let Some(others) = LenientConfig::read(path, party, mpc::is_dealt) {
        tcp::refuse(&others, reason, most);
    }
}

fn check_number(config: &Config, party: usize) -> Result<()> {
    if party < config.parties() {
        return Ok(());
    }
    let last = config.parties() - 1;
    Err(Error::misuse(format!(
        "there is no party {party} in the file; its parties are 0 to {last}"
    )))
}

/// Runs a member's preparation before it meets the others, and tells them if it fails.
fn telling<T>(path: &Path, party: Option<usize>, prepare: impl FnOnce() -> Result<T>) -> Result<T> {
    prepare().inspect_err(|error| tell(path, party, &error.cause(), WHILE_STARTING))
}

/// A member that can meet the others: all its own files have been read and checked.
struct Ready {
    member: usize,
    listener: tcp::Listener,
    addresses: Vec<String>,
    members: Members,
    identity: Identity,
    options: Options,
}

impl Ready {
    /// Prepares a party, or the dealer if `party` is `None`.
    fn new(config: &Config, party: Option<usize>, options: Options) -> Result<Self> {
        let members = options.members()?;
        let dealer = members.dealer;
        let member = party.unwrap_or(config.parties());
        if let Some(party) = party {
            check_number(config, party)?;
        }
        let addresses = config.addresses(dealer)?;
        let identity = config.identity(member, dealer)?;
        identity.check(member, dealer)?;
        Ok(Self {
            member,
            listener: tcp::Listener::bind(config.listen_address(member)?)?,
            addresses,
            members,
            identity,
            options,
        })
    }

    /// Links with the others; returns the mesh and the session's options.
    fn meet(self) -> Result<(Mesh, Options)> {
        let parameters = self.options.parameters()?;
        let certificates = self.identity.certificates.clone();
        let mesh = tcp::connect(
            self.listener,
            self.member,
            &self.addresses,
            self.members,
            self.identity,
            self.options.timeout,
            &parameters,
        )?;
        self.options.attest(&mesh, &certificates)?;
        Ok((mesh, self.options))
    }
}
