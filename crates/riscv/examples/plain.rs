//! Runs programs on public words: `plain FILE...`, a line for each with how it ended. For `tools/riscv/official.sh`.

use riscv::system::{Answer, System, start};
use riscv::{Machine, Plain, Program, Stop};

/// Instructions of a program at most.
const LIMIT: u64 = 1 << 30;

fn main() {
    for file in std::env::args().skip(1) {
        let ended = std::fs::read(&file).map_err(|error| error.to_string());
        match ended.and_then(|bytes| status(&file, &bytes)) {
            Ok((0, printed)) => println!("passed {file} {:?}", printed.trim_end()),
            Ok((status, _)) => println!("failed {file} status {status}"),
            Err(why) => println!("stopped {file} {}", why.replace('\n', " ")),
        }
    }
}

/// How a program ends, and what it has printed.
fn status(name: &str, bytes: &[u8]) -> Result<(u64, String), String> {
    let program = Program::parse(bytes).map_err(|fault| fault.to_string())?;
    let stopped = |machine: &Machine<Plain>, fault| program.stopped(machine.pc(), &fault);
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
