//! The members of a `parties.toml`: parties, the dealer, and those who make files of correlations.

use crate::options::{protocol_of, settings};
use crate::{Options, Session, Transport, Words, deal, local};
use mpc::correlations::Demand;
use mpc::correlations::file::Place;
use mpc::{Error, Needs, Result, preprocessing};
use net::config::{Config, LONGEST_TIMEOUT, LenientConfig};
use net::tcp::{self, Identity};
use net::{Members, Mesh};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a member whose set-up fails tries to reach the others, which may be starting too.
const WHILE_STARTING: Duration = Duration::from_secs(5);

/// What is said in place of the configuration file.
#[derive(Clone, Default)]
pub struct Choices {
    /// Name of the protocol.
    pub protocol: Option<String>,
    /// Name of the source of correlations.
    pub source: Option<String>,
    /// Longest wait for one message.
    pub timeout: Option<Duration>,
    /// Whether to record what is asked of the source.
    pub record: bool,
    /// Whether what is computed is checked to stay in range.
    pub checked: Option<bool>,
    /// How texts call the members, and what they advise.
    pub words: Option<&'static Words>,
}

/// What is to be made.
pub struct Making {
    /// The jobs of a run.
    pub demand: Demand,
    /// How often.
    pub runs: u32,
    /// This party's file.
    pub out: PathBuf,
}

impl Choices {
    /// The options of a configuration file, those chosen first.
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
        Ok(options.in_words(self.words.unwrap_or(&Words::PARTIES)))
    }
}

/// Takes part as one of the parties.
///
/// # Errors
/// `Setup` or `Misuse` for what is wrong in the file, the options or this party's own files; `Peer`
/// for a party that does not come.
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
        Ok((Ready::new(&config, Some(party), options)?, is_checked))
    })?;
    let (ready, is_checked) = ready;
    let (mesh, options) = ready.meet()?;
    let session = Session::open(mesh, &options.settings, Transport::Tls)?;
    Ok(session.checked(is_checked))
}

/// Deals correlations to the parties until they have finished; `words` are how texts call the
/// members.
///
/// # Errors
/// As [`connect`] and [`deal`].
pub fn serve(path: &Path, timeout: Option<Duration>, words: &'static Words) -> Result<()> {
    let ready = telling(path, None, || {
        let config = Config::read(path)?;
        let options = Options::of_dealer(timeout.unwrap_or(config.timeout))?;
        Ready::new(&config, None, options.in_words(words))
    })?;
    deal(&ready.meet()?.0)
}

/// All parties of the sessions that a file of correlations is made for by that source, in this
/// process: what a program asks for in them is the demand of its runs.
///
/// # Errors
/// `Setup` or `Misuse` for what is wrong in the file or the source, or a protocol that consumes no
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
    // No link keeps anybody waiting.
    options.timeout = LONGEST_TIMEOUT;
    local::rehearsed(config.parties(), &options)
}

/// The options of those who make a file of correlations.
fn makers(config: &Config, source: Option<String>) -> Result<Options> {
    // What is made is for later sessions, whose source is the file.
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

/// Makes this party's file of correlations together with the other parties; `progress` hears how
/// many jobs are done, and of how many. `words` are how texts call the members.
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
    let (ready, place) = telling(path, Some(party), || {
        let config = Config::read(path)?;
        let options = makers(&config, source)?.in_words(words);
        let place = Place {
            path: work.out.clone(),
            secret: config.identity(party, false)?.key,
        };
        Ok((Ready::new(&config, Some(party), options)?, place))
    })?;
    let (mesh, options) = ready.meet()?;
    let Making { demand, runs, .. } = work;
    let made = preprocessing::make(&options.settings, &mesh, demand, *runs, &place, progress);
    match made {
        Ok(()) => mesh.close(),
        Err(error) => {
            mesh.fail(error.clone());
            Err(error)
        }
    }
}

/// Tells the other members that this party cannot take part, for a reason that its program found.
/// Those that are not there are called again and again, for so long.
///
/// # Errors
/// `Setup` or `Misuse` for what is wrong in the file too, whom it names having been told as far as
/// it can be read.
pub fn refuse(path: &Path, party: usize, reason: &str, most: Duration) -> Result<()> {
    tell(path, Some(party), reason, most);
    check_number(&Config::read(path)?, party)
}

/// Tells those of a file that can be made out why this member does not come.
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

/// What a member does before it meets the others; if it fails, they are told.
fn telling<T>(path: &Path, party: Option<usize>, prepare: impl FnOnce() -> Result<T>) -> Result<T> {
    prepare().inspect_err(|error| tell(path, party, &error.cause(), WHILE_STARTING))
}

/// A member that can meet the others: everything of its own has been read and checked.
struct Ready {
    member: usize,
    listener: tcp::Listener,
    addresses: Vec<String>,
    members: Members,
    identity: Identity,
    options: Options,
}

impl Ready {
    /// A party, or the dealer where `party` is `None`.
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

    /// The links, and what the session is started with.
    fn meet(self) -> Result<(Mesh, Options)> {
        let parameters = self.options.parameters()?;
        let mesh = tcp::connect(
            self.listener,
            self.member,
            &self.addresses,
            self.members,
            self.identity,
            self.options.timeout,
            &parameters,
        )?;
        Ok((mesh, self.options))
    }
}
