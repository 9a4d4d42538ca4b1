//! A whole program, run in a session on the files of its parties.

use crate::elf::program::Program;
use crate::fault::Fault;
use crate::host::arrays::{Array, check_length, share_arrays};
use crate::host::execution::{Execution, Finished, Left, Opened, Options, Waited};
use crate::memory::Memory;
use crate::secret::Word;
use crate::secret::evaluation::{Fate, Learned};
use crate::secret::watch::Watch;
use crate::system::files::File;
use crate::system::{System, start};
use mpc::{Error, Protocol, Result, SharedFlag};

/// A file that a program writes.
pub struct Output {
    /// By which the program opens it.
    pub name: String,
    /// Of an element.
    pub bytes: u64,
    /// What becomes of it when the program has ended.
    pub fate: Fate,
}

/// A run, the same in all parties but for the values that one of them has.
pub struct Run<'a> {
    /// What is run.
    pub program: &'a Program,
    /// What it is told; the first is its name.
    pub arguments: &'a [String],
    /// What it may read, by the names of files.
    pub inputs: &'a [&'a Array],
    /// What it is to write.
    pub outputs: &'a [Output],
    /// How it is run.
    pub options: Options<'a>,
}

/// What this party learns of a run.
pub struct Outcome {
    /// With which the program ended.
    pub status: u64,
    /// What it wrote to standard output and standard error.
    pub printed: Vec<u8>,
    /// Of the elements of each output, in order.
    pub outputs: Vec<Learned>,
    /// All that was opened: on the way, by places in the program, and then.
    pub opened: Vec<Opened>,
    /// How many were carried out.
    pub instructions: u64,
    /// For what messages were waited.
    pub waited: Vec<Waited>,
    /// Of each output that is kept, what it depends on where that was checked.
    pub flags: Vec<Vec<SharedFlag>>,
    /// What left its range of what this party was to learn, by lines of the program: there is no
    /// output then.
    pub failed: Vec<String>,
}

impl Run<'_> {
    /// Looks at all that can be wrong with a run before anything is sent.
    ///
    /// # Errors
    /// `Stopped`: a name that is there twice, a length or a party that does not exist, values of
    /// another number.
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

/// Runs a program.
///
/// # Errors
/// `Stopped` for a program that stops before its end, which says where and why, or that does not
/// write an output; what the links meet.
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
        let status = driven?.expect("it comes to no address before its end");
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
        waited: execution.waited(protocol),
        opened: finished.opened,
        flags: finished.flags,
        failed: finished.failed,
    })
}

/// The files that a program may open.
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

/// The elements of all outputs.
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
            return Err(execution.stopped(end, &Fault::Unwhole { name, size, bytes }));
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
