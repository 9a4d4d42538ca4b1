//! Runs programs on public words, and prints for each one line with how it ended: `plain [--bare]
//! [--signature] FILE...`. Used by `tools/riscv/official.sh`.
//!
//! With `--bare` there is no operating system: the programs run in machine mode, and end by the
//! word `tohost`. With `--signature`, the signature memory of each is written to `FILE.signature`.

use riscv::host::bare_metal::Bare;
use riscv::system::{Answer, System, start};
use riscv::{Fault, Machine, Plain, Program, Stop};

/// The maximum number of instructions of a program.
const LIMIT: u64 = 1 << 30;

fn main() {
    let (options, files): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|said| said.starts_with("--"));
    let says = |option: &str| options.iter().any(|said| said == option);
    let (bare, signature) = (says("--bare"), says("--signature"));
    if options.len() > usize::from(bare) + usize::from(signature) || signature && !bare {
        eprintln!("plain [--bare [--signature]] FILE...");
        std::process::exit(2);
    }
    for file in files {
        let bytes = std::fs::read(&file).map_err(|error| error.to_string());
        let ended = bytes.and_then(|bytes| {
            if bare {
                without_system(&file, &bytes, signature).map(|status| (status, String::new()))
            } else {
                status(&file, &bytes)
            }
        });
        match ended {
            Ok((0, printed)) => println!("passed {file} {:?}", printed.trim_end()),
            Ok((status, _)) => println!("failed {file} status {status}"),
            Err(why) => println!("stopped {file} {}", why.replace('\n', " ")),
        }
    }
}

/// Returns the status of a program that runs without an operating system.
fn without_system(file: &str, bytes: &[u8], signature: bool) -> Result<u64, String> {
    let said = |fault: Fault| fault.to_string();
    let mut bare = Bare::parse(bytes, LIMIT).map_err(said)?;
    let status = bare.run();
    let status = status.map_err(|fault| format!("{fault}, at {:#x}", bare.pc()))?;
    if signature {
        let left = bare.signature().map_err(said)?;
        std::fs::write(format!("{file}.signature"), left).map_err(|error| error.to_string())?;
    }
    Ok(status)
}

/// Returns the status of a program, and what it printed.
fn status(name: &str, bytes: &[u8]) -> Result<(u64, String), String> {
    let program = Program::parse(bytes).map_err(|fault| fault.to_string())?;
    let stopped = |machine: &Machine<Plain>, fault| program.stopped(machine.pc(), "", &fault);
    let mut machine = Machine::new(Plain, &program, LIMIT).map_err(|fault| fault.to_string())?;
    start::begin(&mut machine, &program, &[name.to_owned()]).map_err(|fault| fault.to_string())?;
    let system = System::new(&mut machine.memory, &program, Vec::new());
    let mut system = system.map_err(|fault| fault.to_string())?;
    loop {
        if let Err(fault) = machine.run(None).map(|stop| assert_eq!(stop, Stop::Call)) {
            return Err(stopped(&machine, fault));
        }
        match system.answer(&mut machine) {
            Ok(Answer::Goes) => {}
            Ok(Answer::Ended(status)) => {
                let printed = String::from_utf8_lossy(system.printed()).into_owned();
                return Ok((status, printed));
            }
            Ok(Answer::Opens(_)) => return Err("nothing is secret".into()),
            Err(fault) => return Err(stopped(&machine, fault)),
        }
    }
}
