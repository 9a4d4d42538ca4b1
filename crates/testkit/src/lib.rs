//! Support for tests only: parties in threads, recording of what they receive, and links that
//! tamper.

mod inputs;
mod ports;
mod shares;
mod submissions;
mod transcript;

pub use inputs::{Random, edge_words};
pub use ports::free_address;
pub use shares::Shared;
pub use submissions::components;
pub use transcript::{Leak, REPETITIONS, Recorder, Transcript};

use cuda::Places;
use kernels::device::Device;
use mpc::{Cost, Protocol, Settings};
use net::Mesh;
use net::certificates::generate;
use session::attestation::{Attestation, program};
use session::{Session, Transport, devices};
use std::env;
use std::sync::Arc;
use std::time::Duration;

/// A timeout for the slowest test on the slowest machine. Only a failing test waits this long.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What the name of a setting begins with whose members attest and sign their messages.
const ATTESTED: &str = "attested_";

/// The environment variable that names the device of all parties in tests: "cpu" if it is not set.
pub const DEVICE: &str = "TACIT_TEST_DEVICE";

/// Opens the device that a party of a test computes on. No two parties share one.
///
/// # Panics
/// If [`DEVICE`] names none that this machine has.
#[must_use]
pub fn device() -> Arc<dyn Device> {
    device_named(&env::var(DEVICE).unwrap_or_else(|_| "cpu".to_owned()))
}

/// Opens a device by name.
///
/// # Panics
/// If this machine has no such device.
#[must_use]
pub fn device_named(name: &str) -> Arc<dyn Device> {
    devices::open(name).unwrap_or_else(|error| panic!("device {name}: {error}"))
}

/// Opens a card that computes everything, with the libraries in the folders that the environment
/// variable `TACIT_CUDA_LIBRARIES` lists. Returns why if there is none that can be used.
///
/// # Panics
/// If there is none, and `TACIT_REQUIRE_GPU` is 1.
pub fn card() -> Result<Arc<dyn Device>, String> {
    let libraries = env::var_os("TACIT_CUDA_LIBRARIES").unwrap_or_default();
    devices::look_in(env::split_paths(&libraries).collect());
    let places = Places {
        crossover: Some(0),
        ..devices::places()
    };
    match cuda::open(&places) {
        Ok(card) => Ok(Arc::from(card)),
        Err(error) if env::var_os("TACIT_REQUIRE_GPU").is_some_and(|value| value == "1") => {
            panic!("TACIT_REQUIRE_GPU is 1, and no card can be opened: {error}")
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Deals correlations until the parties have finished.
///
/// # Errors
/// As [`session::deal`].
pub fn deal(mesh: &Mesh) -> mpc::Result<()> {
    session::deal(mesh, device())
}

/// Returns the protocol with its source, and the number of parties, for a name such as "plain",
/// "replicated", "replicated_malicious" or "additive_3_dealer". After "attested_", [`run`] lets the
/// members attest.
///
/// # Panics
/// For an unknown name.
#[must_use]
pub fn setting(name: &str) -> (Settings, usize) {
    let name = name.strip_prefix(ATTESTED).unwrap_or(name);
    let name = name.replace("replicated_malicious", "replicated-malicious");
    let mut words = name.split('_');
    let protocol = words.next().expect("a protocol").to_owned();
    let parties = words.next().map_or_else(
        || if protocol == "plain" { 2 } else { 3 },
        |parties| parties.parse().expect("a number of parties"),
    );
    let source = words.next().map(str::to_owned);
    let settings = Settings {
        protocol,
        source,
        ..Settings::default()
    };
    (settings, parties)
}

/// Returns the number of parties of a [`setting`].
#[must_use]
pub fn usual_parties(name: &str) -> usize {
    setting(name).1
}

/// Runs `program` in every party of a [`setting`], one thread each over in-memory links. Returns
/// the results of all parties.
///
/// # Panics
/// If a party panics or fails.
pub fn run<T: Send>(
    name: &str,
    parties: usize,
    program: impl Fn(&mut dyn Protocol) -> mpc::Result<T> + Sync,
) -> Vec<T> {
    let (settings, _) = setting(name);
    let has_dealer = settings.has_dealer().expect("a setting that exists");
    let attesting = name
        .starts_with(ATTESTED)
        .then(|| Attesting::among(parties + usize::from(has_dealer)));
    let attest = |mesh: &Mesh| attesting.as_ref().map_or(Ok(()), |all| all.attest(mesh));
    let dealing = |mesh: &Mesh| {
        attest(mesh)?;
        deal(mesh)
    };
    run_opened(
        parties,
        has_dealer.then_some(&dealing as Dealing),
        |mesh| {
            attest(mesh)?;
            Session::open(mesh.clone(), &settings, device(), Transport::Memory)
        },
        |session| session.work(&program),
    )
}

/// Members that show each other simulated evidence.
struct Attesting {
    certificates: Vec<String>,
}

impl Attesting {
    fn among(members: usize) -> Self {
        let certificate = |member| generate(member, 1).expect("a certificate").certificate_pem;
        Self {
            certificates: (0..members).map(certificate).collect(),
        }
    }

    fn attest(&self, mesh: &Mesh) -> mpc::Result<()> {
        let kind = "simulated";
        let tested = program(b"a test");
        let own = match mesh.dealer() == Some(mesh.party()) {
            true => Attestation::of_trial_dealer(kind, tested),
            false => Attestation::of_trial(kind, tested, tested),
        };
        mesh.attest(&own?, &self.certificates)?;
        assert_eq!(
            mesh.attestation().map(|attestation| attestation.verified),
            Some(self.certificates.len() - 1)
        );
        Ok(())
    }
}

/// Runs a program, and returns its result and what it cost this party.
///
/// # Errors
/// Those of the program.
pub fn measured<T>(
    protocol: &mut dyn Protocol,
    program: impl FnOnce(&mut dyn Protocol) -> mpc::Result<T>,
) -> mpc::Result<(T, Cost)> {
    let before = protocol.channel().meter().totals();
    let result = program(protocol)?;
    let after = protocol.channel().meter().totals();
    let cost = Cost {
        rounds: after.rounds - before.rounds,
        bits: 8 * (after.payload_bytes - before.payload_bytes),
    };
    Ok((result, cost))
}

/// The work of a dealer, which runs in a separate thread.
pub type Dealing<'a> = &'a (dyn Fn(&Mesh) -> mpc::Result<()> + Sync);

/// Runs a program like [`run`], with a protocol that the test opens itself, and a dealer if given.
///
/// # Panics
/// If a party or the dealer panics or fails.
pub fn run_opened<P, T: Send>(
    parties: usize,
    dealer: Option<Dealing>,
    open: impl Fn(&Mesh) -> mpc::Result<P> + Sync,
    program: impl Fn(&mut P) -> mpc::Result<T> + Sync,
) -> Vec<T> {
    let (open, program) = (&open, &program);
    let mut meshes = if dealer.is_some() {
        net::in_process::mesh_with_dealer(parties, TIMEOUT)
    } else {
        net::in_process::mesh(parties, TIMEOUT)
    };
    std::thread::scope(|scope| {
        let dealing = meshes
            .drain(parties..)
            .next()
            .zip(dealer)
            .map(|(mesh, deal)| scope.spawn(move || deal(&mesh)));
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| {
                scope.spawn(move || {
                    let result = program(&mut open(&mesh)?)?;
                    mesh.close()?;
                    Ok(result)
                })
            })
            .collect();
        let results: Vec<mpc::Result<T>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a party panicked"))
            .collect();
        if let Some(dealing) = dealing {
            let dealt = dealing.join().expect("the dealer panicked");
            dealt.unwrap_or_else(|error| panic!("the dealer failed: {error}"));
        }
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|error| panic!("a party failed: {error}")))
            .collect()
    })
}
