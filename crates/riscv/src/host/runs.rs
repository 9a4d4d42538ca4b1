//! A run of a whole program in a session, on the parties' files.

use crate::elf::program::Program;
use crate::fault::Fault;
use crate::host::arrays::{Array, check_length, share_arrays};
use crate::host::execution::{Execution, Finished, Left, Opened, Options, Scanned, Waited};
use crate::memory::Memory;
use crate::secret::Word;
use crate::secret::evaluation::{Fate, Learned};
use crate::secret::watch::Watch;
use crate::system::files::File;
use crate::system::{System, start};
use mpc::{Error, Protocol, Result, SharedFlag};

/// A file that a program writes as an output.
pub struct Output {
    /// The name by which the program opens the file.
    pub name: String,
    /// The number of bytes of an element.
    pub bytes: u64,
    /// Whether the file's content is opened or kept as shares when the program has ended.
    pub fate: Fate,
}

/// A run of a program, the same in all parties except for the values that one of them has.
pub struct Run<'a> {
    /// The program to run.
    pub program: &'a Program,
    /// The program's arguments (`argv`). The first is its name.
    pub arguments: &'a [String],
    /// The input files, by name.
    pub inputs: &'a [&'a Array],
    /// The output files.
    pub outputs: &'a [Output],
    /// How the program is run.
    pub options: Options<'a>,
}

/// The results of a run that this party learns.
pub struct Outcome {
    /// The program's exit status.
    pub status: u64,
    /// The bytes that the program wrote to standard output and standard error.
    pub printed: Vec<u8>,
    /// The elements of each output, in order.
    pub outputs: Vec<Learned>,
    /// All openings: those during execution, by place in the program, and then those of the
    /// outputs.
    pub opened: Vec<Opened>,
    /// The number of executed instructions.
    pub instructions: u64,
    /// The accesses at secret addresses of few values, by place in the program.
    pub scanned: Vec<Scanned>,
    /// The time spent waiting for messages, by cause.
    pub waited: Vec<Waited>,
    /// The flags of range checks that each kept output depends on, in checked mode.
    pub flags: Vec<Vec<SharedFlag>>,
    /// The failed range checks behind outputs that this party was to learn, by program line. If
    /// there are any, there is no output.
    pub failed: Vec<String>,
    /// The results whose ranges are so wide that no digit of them needs to be right; each with the
    /// greatest number in its range.
    pub coarse: Vec<(String, f64)>,
}

impl Run<'_> {
    /// Checks a run for errors before anything is sent.
    ///
    /// # Errors
    /// `Stopped`: a name that occurs twice, a length or a party that does not exist, or a number of
    /// values that differs from the array's length.
    pub fn check(&self, parties: usize, components: usize) -> Result<()> {
        for array in self.inputs {
            array.check(parties, components)?;
        }
        for output in self.outputs {
            check_length(output.bytes, &output.name)?;
        }
        let inputs = self.inputs.iter().map(|array| &array.name);
        let mut names: Vec<&String> = inputs
            .chain(self.outputs.iter().map(|output| &output.name))
            .collect();
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(Error::stopped(format!(
                "two files have the name {}: rename one",
                twice[0]
            ))),
            None => Ok(()),
        }
    }
}

/// Runs a program on the parties' files.
///
/// # Errors
/// `Stopped` if the program stops before its end, with the place and the cause, or if it does not
/// write an output. Errors of the network links are passed on.
pub fn run(protocol: &mut dyn Protocol, run: &Run) -> Result<Outcome> {
    let stopped = |fault: Fault| Error::stopped(fault.to_string());
    let _watch = Watch::begin(run.options.checked);
    let machine = run.options.machine(run.program, &[]);
    let mut machine = machine.map_err(stopped)?;
    start::begin(&mut machine, run.program, run.arguments).map_err(stopped)?;
    let files = files(protocol, run)?;
    let system = System::new(&mut machine.memory, run.program, files).map_err(stopped)?;
    let given = run.inputs.iter().map(|array| array.name.clone()).collect();
    let given = run.options.checked.then_some(given);
    let mut execution = Execution::new(run.program, machine, system).checked(given);
    let driven = execution.drive(protocol, None);
    let (status, finished) = if execution.failed().is_empty() {
        let status = driven?.expect("without an address to stop at, it runs to its end");
        let left = left(&mut execution, run, status)?;
        (status, execution.finish(protocol, &left)?)
    } else {
        (0, Finished::failed(&execution))
    };
    Ok(Outcome {
        status,
        printed: execution.system.printed().to_vec(),
        outputs: finished.learned,
        instructions: execution.machine.carried_out(),
        scanned: execution.scanned(),
        waited: execution.waited(protocol),
        opened: finished.opened,
        flags: finished.flags,
        failed: finished.failed,
        coarse: finished.coarse,
    })
}

/// Builds the files that the program may open.
fn files(protocol: &mut dyn Protocol, run: &Run) -> Result<Vec<File<Word>>> {
    let mut files = Vec::new();
    protocol.channel().take_waited();
    let shared = share_arrays(protocol, run.inputs)?;
    for (at, (array, shared)) in run.inputs.iter().zip(shared).enumerate() {
        let mut content = Memory::new();
        array.lay(&mut content, 0, shared, at)?;
        files.push(File::input(&array.name, content, array.size()));
    }
    for output in run.outputs {
        let file = File::output(&output.name);
        files.push(file.map_err(|fault| Error::stopped(fault.to_string()))?);
    }
    Ok(files)
}

/// Collects the elements of all outputs.
fn left(execution: &mut Execution, run: &Run, status: u64) -> Result<Vec<Left>> {
    let mut left = Vec::new();
    let end = execution.machine.pc().wrapping_sub(4);
    for output in run.outputs {
        let system = &mut execution.system;
        let file = system.file(&output.name).expect("it was made before");
        let (size, bytes) = (file.size(), output.bytes);
        let name = &output.name;
        if !file.was_written {
            let name = name.clone();
            return Err(execution.stopped(end, &Fault::NotWritten { name, status }));
        }
        if size % bytes != 0 {
            let name = name.clone();
            return Err(execution.stopped(end, &Fault::NotMultiple { name, size, bytes }));
        }
        let elements = file.elements(&mut execution.machine.words, bytes);
        left.push(Left {
            what: name.clone(),
            fate: output.fate,
            words: elements.map_err(|fault| Error::stopped(fault.to_string()))?,
        });
    }
    Ok(left)
}
