//! Protocols and sources of correlations, each an entry of a table: its name, what it protects or
//! needs, and how it is opened. Nothing else matches on their names.

use crate::additive::{self, Additive};
use crate::agreement::PrivateComparison;
use crate::correlations::file::{Place, Stored};
use crate::correlations::supply::Supply;
use crate::correlations::transfer::Transfer;
use crate::correlations::zeros::Zeros;
use crate::correlations::{self, Source, dealer::Dealt};
use crate::plain::{self, Plain};
use crate::replicated::{self, Replicated};
use crate::{Error, Protocol, Result, ThreatModel, Trust};
use net::{Channel, Mesh, Patience};

/// The channel of the protocol.
const CHANNEL: u16 = 0;

/// A protocol.
pub struct ProtocolProvider {
    /// Its name.
    pub name: &'static str,
    /// Who takes part, and who may collude, in a few words.
    pub summary: &'static str,
    /// How many parties it has where nobody says how many.
    pub usual_parties: usize,
    /// Whether it consumes correlations, and so has a source.
    pub consumes: bool,
    /// Whether it keeps anything secret; one that does not stays in one process.
    pub secret: bool,
    /// Whether it serves federations: what is opened has [`crate::Protocol::federated`], noise that
    /// no party chooses among it.
    pub serves: bool,
    pub(crate) threat_model: fn(usize, Trust) -> Result<ThreatModel>,
    pub(crate) open: fn(&Environment) -> Result<Box<dyn Protocol>>,
}

/// A source of correlations.
pub struct SourceProvider {
    /// Its name.
    pub name: &'static str,
    /// How correlations are made, as a title has it.
    pub title: &'static str,
    /// The same in a few words.
    pub summary: &'static str,
    /// What it needs besides the parties.
    pub needs: Needs,
    /// What the parties send each other for it by oblivious transfer.
    pub transfers: Transfers,
    /// How correlations are made, and who must be trusted with what for it.
    pub statement: &'static str,
    open: fn(&Environment, Patience) -> Result<Box<dyn Source>>,
}

/// What a source needs besides the parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A dealer among the members of the mesh.
    Dealer,
    /// A file that each party made ahead.
    File,
}

impl Needs {
    /// In one word, empty for nothing.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Dealer => "dealer",
            Self::File => "file",
        }
    }
}

/// What a source makes by oblivious transfer, which takes most bytes where matrices are multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfers {
    /// Nothing.
    Nothing,
    /// All but products of matrices where there is something better for them.
    AllButMatrices,
    /// All correlations.
    All,
}

impl Transfers {
    /// In words, empty for nothing.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::AllButMatrices => "all but matrices",
            Self::All => "all",
        }
    }
}

/// What a protocol is opened with.
pub(crate) struct Environment<'a> {
    pub mesh: &'a Mesh,
    /// The source, for a protocol that consumes correlations.
    pub source: Option<&'static SourceProvider>,
    /// This party's file.
    pub file: Option<&'a Place>,
    /// Whether to record what is asked of the source.
    pub record: bool,
    /// Whether zeros take the place of what the source makes.
    pub rehearsed: bool,
}

/// The first is what is meant when nothing is said.
pub static PROTOCOLS: [ProtocolProvider; 3] = [
    ProtocolProvider {
        name: "replicated",
        summary: "three parties, of whom no two collude",
        usual_parties: 3,
        consumes: false,
        secret: true,
        serves: true,
        threat_model: |parties, _| replicated::threat_model(parties),
        open: |environment| Ok(Box::new(Replicated::new(online(environment.mesh)?)?)),
    },
    ProtocolProvider {
        name: "additive",
        summary: "any number of parties, of whom all but one may collude",
        usual_parties: 2,
        consumes: true,
        secret: true,
        serves: false,
        threat_model: additive::threat_model,
        open: |environment| Ok(Box::new(environment.additive()?)),
    },
    ProtocolProvider {
        name: "plain",
        summary: "no secrecy, for trials in one process",
        usual_parties: 2,
        consumes: false,
        secret: false,
        serves: false,
        threat_model: |parties, _| Ok(plain::threat_model(parties)),
        open: |environment| Ok(Box::new(Plain::new(online(environment.mesh)?))),
    },
];

/// The first is what is meant when nothing is said.
pub static SOURCES: [SourceProvider; 4] = [
    SourceProvider {
        name: "ot",
        title: "oblivious transfer",
        summary: "oblivious transfer between the parties",
        transfers: Transfers::All,
        needs: Needs::Nothing,
        statement: "correlations by oblivious transfer between the parties: no third party is needed",
        open: |environment, patience| Ok(Box::new(Transfer::new(environment.channel(patience))?)),
    },
    SourceProvider {
        name: "he",
        title: "homomorphic encryption and oblivious transfer",
        summary: "the same, and homomorphic encryption for products of matrices",
        transfers: Transfers::AllButMatrices,
        needs: Needs::Nothing,
        statement: "correlations by oblivious transfer and homomorphic encryption (ring-LWE) between the parties: \
                    no third party is needed",
        open: |environment, patience| {
            let transfer = Transfer::new(environment.channel(patience))?;
            Ok(Box::new(transfer.with_encryption()?))
        },
    },
    SourceProvider {
        name: "dealer",
        title: "a dealer",
        summary: "one more member, who sees shapes only",
        transfers: Transfers::Nothing,
        needs: Needs::Dealer,
        statement: "correlations from a dealer, who sees shapes and counts only, and must not collude with any party",
        open: |environment, patience| {
            let none = || {
                Error::misuse(
                    "source \"dealer\": this session has no dealer; name one in parties.toml, table [dealer]",
                )
            };
            let dealer = environment.mesh.dealer().ok_or_else(none)?;
            Ok(Box::new(Dealt::new(environment.channel(patience), dealer)?))
        },
    },
    SourceProvider {
        name: "file",
        title: "files",
        summary: "files that the parties made ahead",
        transfers: Transfers::Nothing,
        needs: Needs::File,
        statement: "correlations from files made ahead, each used once",
        open: |environment, patience| {
            let none = || {
                Error::misuse(
                    "source \"file\": no file is named; parties.toml says for each party correlations = \"...\"",
                )
            };
            let place = environment.file.ok_or_else(none)?;
            Ok(Box::new(Stored::new(environment.channel(patience), place)?))
        },
    },
];

impl SourceProvider {
    /// What the threat model says of it.
    pub(crate) fn trust(&self) -> Trust {
        Trust {
            source: Some(self.name),
            statement: self.statement,
        }
    }
}

impl Environment<'_> {
    /// The source of correlations, which waits without limit while it is not needed.
    pub fn source(&self, patience: Patience) -> Result<Box<dyn Source>> {
        let none = || Error::misuse("this protocol consumes no correlations");
        let source = self.source.ok_or_else(none)?;
        if self.rehearsed {
            return Ok(Box::new(Zeros {
                guards: source.needs == Needs::Dealer,
            }));
        }
        (source.open)(self, patience)
    }

    pub fn trust(&self) -> Trust {
        trust(self.source, self.rehearsed)
    }

    fn channel(&self, patience: Patience) -> Channel {
        let mut channel = self.mesh.channel(correlations::CHANNEL);
        channel.set_patience(patience);
        channel
    }

    fn additive(&self) -> Result<Additive> {
        let patience = Patience::default();
        // The set-up is waited for: who stalls in it is noticed.
        patience.set_needed(true);
        let source = self.source(patience.clone())?;
        patience.set_needed(false);
        let supply = Supply::start(source, patience, self.record)?;
        Additive::new(online(self.mesh)?, supply, self.trust())
    }
}

/// What the threat model says of a source, or of the zeros in its place.
pub(crate) fn trust(source: Option<&SourceProvider>, rehearsed: bool) -> Trust {
    source.map_or(Trust::NOBODY, |source| Trust {
        statement: if rehearsed {
            "zeros in the place of correlations, which hide nothing: for a program's demand, in one process"
        } else {
            source.statement
        },
        ..source.trust()
    })
}

/// The protocol's channel, on which public values are compared.
fn online(mesh: &Mesh) -> Result<Channel> {
    let mut channel = mesh.channel(CHANNEL);
    let comparison = PrivateComparison::new(mesh.party(), mesh.parties())?;
    channel.set_agreement(Box::new(comparison));
    Ok(channel)
}

/// Additive sharing with a dealer who makes nothing but what is asked for, when it is asked for;
/// `change` may watch the channel to the dealer, and mutate the stream that is shared with it.
///
/// # Errors
/// What the links meet.
///
/// # Panics
/// If the mesh has no dealer.
#[cfg(feature = "mutation")]
pub fn open_exactly(
    mesh: &Mesh,
    change: impl FnOnce(&mut Channel, &mut kernels::stream::Stream),
) -> Result<Additive> {
    let patience = Patience::default();
    let mut channel = mesh.channel(correlations::CHANNEL);
    channel.set_patience(patience.clone());
    let dealer = mesh.dealer().expect("a mesh with a dealer");
    let mut source = Dealt::new(channel, dealer)?;
    let (channel, stream) = source.opened();
    change(channel, stream);
    let mut supply = Supply::start(Box::new(source), patience, false)?;
    supply.make_exactly();
    let provider = SOURCES.iter().find(|source| source.needs == Needs::Dealer);
    let trust = provider.map_or(Trust::NOBODY, SourceProvider::trust);
    Additive::new(online(mesh)?, supply, trust)
}
