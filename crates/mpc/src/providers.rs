//! Tables of protocols and sources of correlations. Each entry has a name, what it protects or
//! needs, and a function that opens it. No other code matches on the names.

use crate::additive::{self, Additive};
use crate::agreement::PrivateComparison;
use crate::correlations::file::{Place, Stored};
use crate::correlations::supply::Supply;
use crate::correlations::transfer::Transfer;
use crate::correlations::zeros::Zeros;
use crate::correlations::{self, Comparisons, Source, dealer::Dealt};
use crate::plain::{self, Plain};
use crate::replicated::{self, Replicated, sealing};
use crate::submission::Unseal;
use crate::{Error, Protocol, Result, ThreatModel, Trust};
use net::{Channel, Mesh, Patience};

/// The channel that the protocol uses.
const CHANNEL: u16 = 0;

/// A protocol of the table.
pub struct ProtocolProvider {
    /// Its name.
    pub name: &'static str,
    /// The parties and who may collude, in a few words.
    pub summary: &'static str,
    /// The default number of parties.
    pub usual_parties: usize,
    /// Whether the protocol consumes correlations, and so has a source.
    pub consumes: bool,
    /// Whether the protocol keeps anything secret. One that does not runs in one process only.
    pub secret: bool,
    /// Components that a party has of a ring sharing.
    pub parts: usize,
    /// How clients outside of a session join a result that no party knows, if the protocol serves
    /// any. Then it implements [`crate::Protocol::serving`].
    pub unseal: Option<Unseal>,
    /// Whether it serves federations. Then it implements [`crate::Protocol::federated`], including
    /// noise that no party chooses.
    pub serves: bool,
    pub(crate) threat_model: fn(usize, Trust) -> Result<ThreatModel>,
    pub(crate) open: fn(&Environment) -> Result<Box<dyn Protocol>>,
}

/// A source of correlations in the table.
pub struct SourceProvider {
    /// Its name.
    pub name: &'static str,
    /// How correlations are made, as a title.
    pub title: &'static str,
    /// How correlations are made, in a few words.
    pub summary: &'static str,
    /// What the source needs in addition to the parties.
    pub needs: Needs,
    /// The correlations that the parties make by oblivious transfer.
    pub transfers: Transfers,
    /// How correlations are made, and who must be trusted with what for it.
    pub statement: &'static str,
    open: fn(&Environment, Patience) -> Result<Box<dyn Source>>,
}

/// What a source needs in addition to the parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing else.
    Nothing,
    /// A dealer among the members of the mesh.
    Dealer,
    /// A file that each party made ahead.
    File,
}

impl Needs {
    /// Returns the need as one word; empty for nothing.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Dealer => "dealer",
            Self::File => "file",
        }
    }
}

/// Correlations that a source makes by oblivious transfer. For products of matrices these take most
/// of the traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfers {
    /// No correlations.
    Nothing,
    /// All except products of matrices that have a better method.
    AllButMatrices,
    /// All correlations.
    All,
}

impl Transfers {
    /// Returns the correlations in words; empty for nothing.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::AllButMatrices => "all but matrices",
            Self::All => "all",
        }
    }
}

/// The arguments that a protocol is opened with.
pub(crate) struct Environment<'a> {
    pub mesh: &'a Mesh,
    /// The source, for a protocol that consumes correlations.
    pub source: Option<&'static SourceProvider>,
    /// This party's file.
    pub file: Option<&'a Place>,
    /// Whether to record the requests to the source.
    pub record: bool,
    /// Whether zeros replace the correlations that the source would make.
    pub rehearsed: bool,
}

const REPLICATED: &str = "replicated";
const MALICIOUS: &str = "replicated-malicious";

/// All protocols. The first is the default.
pub static PROTOCOLS: [ProtocolProvider; 4] = [
    ProtocolProvider {
        name: REPLICATED,
        summary: "three parties, of whom no two collude",
        usual_parties: 3,
        consumes: false,
        secret: true,
        parts: 2,
        unseal: Some(sealing::joined),
        serves: true,
        threat_model: |parties, _| replicated::threat_model(REPLICATED, parties, true),
        open: |environment| Ok(Box::new(Replicated::new(online(environment.mesh)?)?)),
    },
    ProtocolProvider {
        name: MALICIOUS,
        summary: "three parties, of whom one may cheat",
        usual_parties: 3,
        consumes: false,
        secret: true,
        parts: 2,
        unseal: Some(sealing::compared),
        serves: true,
        threat_model: |parties, _| replicated::threat_model(MALICIOUS, parties, false),
        open: |environment| {
            let channel = online(environment.mesh)?;
            Ok(Box::new(Replicated::malicious(channel)?))
        },
    },
    ProtocolProvider {
        name: "additive",
        summary: "any number of parties, of whom all but one may collude",
        usual_parties: 2,
        consumes: true,
        secret: true,
        parts: 1,
        unseal: Some(additive::joined),
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
        parts: 1,
        unseal: None,
        serves: false,
        threat_model: |parties, _| Ok(plain::threat_model(parties)),
        open: |environment| Ok(Box::new(Plain::new(online(environment.mesh)?))),
    },
];

/// All sources of correlations. The first is the default.
pub static SOURCES: [SourceProvider; 4] = [
    SourceProvider {
        name: "ot",
        title: "oblivious transfer",
        summary: "oblivious transfer between the parties",
        transfers: Transfers::All,
        needs: Needs::Nothing,
        statement: "correlations by oblivious transfer between the parties: no third party is \
                    needed",
        open: |environment, patience| Ok(Box::new(environment.transfer(&patience)?)),
    },
    SourceProvider {
        name: "he",
        title: "homomorphic encryption and oblivious transfer",
        summary: "the same, and homomorphic encryption for products",
        transfers: Transfers::AllButMatrices,
        needs: Needs::Nothing,
        statement: "correlations by oblivious transfer and homomorphic encryption (ring-LWE) \
                    between the parties: \
                    no third party is needed",
        open: |environment, patience| {
            let transfer = environment.transfer(&patience)?;
            Ok(Box::new(transfer.with_encryption()?))
        },
    },
    SourceProvider {
        name: "dealer",
        title: "a dealer",
        summary: "one more member, who sees shapes only",
        transfers: Transfers::Nothing,
        needs: Needs::Dealer,
        statement: "correlations from a dealer, who sees shapes and counts only, and must not \
                    collude with any party",
        open: |environment, patience| {
            let none = || {
                Error::misuse(
                    "source \"dealer\": this session has no dealer; name one in parties.toml, \
                     table [dealer]",
                )
            };
            let dealer = environment.mesh.dealer().ok_or_else(none)?;
            let channel = environment.channel(correlations::CHANNEL, patience);
            Ok(Box::new(Dealt::new(channel, dealer)?))
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
                    "source \"file\": no file is named; parties.toml says for each party \
                     correlations = \"...\"",
                )
            };
            let place = environment.file.ok_or_else(none)?;
            let channel = environment.channel(correlations::CHANNEL, patience);
            Ok(Box::new(Stored::new(channel, place)?))
        },
    },
];

impl SourceProvider {
    /// Returns the entry of the threat model for this source.
    pub(crate) fn trust(&self) -> Trust {
        Trust {
            source: Some(self.name),
            statement: self.statement,
        }
    }
}

impl Environment<'_> {
    /// Opens the source of correlations. It waits without limit while it is not needed.
    pub fn source(&self, patience: Patience) -> Result<Box<dyn Source>> {
        let none = || Error::misuse("this protocol consumes no correlations");
        let source = self.source.ok_or_else(none)?;
        if self.rehearsed {
            let comparisons = match source.needs {
                Needs::Dealer => Comparisons::Guarded,
                Needs::Nothing => Transfer::comparisons_among(self.mesh.parties()),
                Needs::File => Comparisons::Masked,
            };
            return Ok(Box::new(Zeros { comparisons }));
        }
        (source.open)(self, patience)
    }

    pub fn trust(&self) -> Trust {
        trust(self.source, self.rehearsed)
    }

    fn transfer(&self, patience: &Patience) -> Result<Transfer> {
        let ids = [correlations::CHANNEL, correlations::REFILLS];
        let [channel, refills] = ids.map(|id| self.channel(id, patience.clone()));
        Transfer::new(channel, refills)
    }

    fn channel(&self, id: u16, patience: Patience) -> Channel {
        let mut channel = self.mesh.channel(id);
        channel.set_patience(patience);
        channel
    }

    pub fn additive(&self) -> Result<Additive> {
        let patience = Patience::default();
        // The party waits for the setup, so a peer that stalls in it is noticed.
        patience.set_needed(true);
        let source = self.source(patience.clone())?;
        patience.set_needed(false);
        let supply = Supply::start(source, patience, self.record)?;
        Additive::new(online(self.mesh)?, supply, self.trust())
    }
}

/// Returns the entry of the threat model for a source, or for the zeros that replace it.
pub(crate) fn trust(source: Option<&SourceProvider>, rehearsed: bool) -> Trust {
    source.map_or(Trust::NOBODY, |source| Trust {
        statement: if rehearsed {
            "zeros instead of correlations, which hide nothing: only to find a program's demand, \
             in one process"
        } else {
            source.statement
        },
        ..source.trust()
    })
}

/// Returns the protocol's channel, on which public values are compared.
fn online(mesh: &Mesh) -> Result<Channel> {
    let mut channel = mesh.channel(CHANNEL);
    let comparison = PrivateComparison::new(mesh.party(), mesh.parties())?;
    channel.set_agreement(Box::new(comparison));
    Ok(channel)
}

/// Opens additive sharing with a dealer that makes only what is requested, at the time of the
/// request. `change` may watch the channel to the dealer, and mutate the stream that is shared with
/// it.
///
/// # Errors
/// Network errors.
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
