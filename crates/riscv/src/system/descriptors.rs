//! Operations on the files that a program has opened.

use super::files::Descriptor;
use super::numbers::error;
use super::{
    APPENDS, DESCRIPTORS, FROM_END, FROM_HERE, FROM_START, PATH, PRINTED, REGULAR, System,
    TERMINAL, TRUNCATES, VECTOR, WRITES,
};
use crate::fault::{Fault, Result};
use crate::memory::{MOST, Memory};

/// The result of a call, or its error number.
pub(super) type Outcome = std::result::Result<u64, u64>;

impl<Word: Clone> System<Word> {
    /// Returns the index of a file in the table.
    pub(super) fn place(&self, path: &str) -> Option<usize> {
        let name = path.trim_start_matches("./");
        self.files
            .iter()
            .position(|file| file.name == name || file.name == path)
    }

    fn descriptor(&mut self, number: u64) -> std::result::Result<&mut Descriptor, u64> {
        let place = usize::try_from(number).map_err(|_| error::NO_DESCRIPTOR)?;
        let descriptor = self.open.get_mut(place).and_then(Option::as_mut);
        descriptor.ok_or(error::NO_DESCRIPTOR)
    }

    pub(super) fn open(
        &mut self,
        memory: &mut Memory<Word>,
        address: u64,
        flags: u64,
    ) -> Result<Outcome> {
        let path = path(memory, address)?;
        let Some(file) = self.place(&path) else {
            if self.missed.len() < DESCRIPTORS {
                self.missed.push(path);
            }
            return Ok(Err(error::NO_FILE));
        };
        let writes = flags & WRITES != 0;
        if writes && !self.files[file].is_output() {
            if self.kept.len() < DESCRIPTORS {
                self.kept.push(path);
            }
            return Ok(Err(error::NOT_ALLOWED));
        }
        let free = self.open.iter().position(Option::is_none);
        if free.is_none() && self.open.len() == DESCRIPTORS {
            return Ok(Err(error::MANY_FILES));
        }
        if writes {
            self.files[file].was_written = true;
            if flags & TRUNCATES != 0 {
                self.files[file].resize(0)?;
            }
        }
        let place = free.unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[place] = Some(Descriptor::File {
            file,
            position: 0,
            writes,
            appends: flags & APPENDS != 0,
        });
        Ok(Ok(place as u64))
    }

    pub(super) fn close(&mut self, number: u64) -> Outcome {
        self.descriptor(number)?;
        self.open[number as usize] = None;
        Ok(0)
    }

    pub(super) fn seek(&mut self, number: u64, offset: u64, from: u64) -> Outcome {
        let Descriptor::File { file, position, .. } = self.descriptor(number)?.clone() else {
            return Err(error::NO_SEEK);
        };
        let before = match from {
            FROM_START => 0,
            FROM_HERE => position,
            FROM_END => self.files[file].size(),
            _ => return Err(error::INVALID),
        };
        let to = before
            .checked_add_signed(offset as i64)
            .filter(|to| *to <= MOST);
        let to = to.ok_or(error::INVALID)?;
        if let Descriptor::File { position, .. } = self.descriptor(number)? {
            *position = to;
        }
        Ok(to)
    }

    /// Returns the flags of an open file. Other commands have no effect and return 0.
    pub(super) fn control(&mut self, number: u64, command: u64) -> Outcome {
        const FLAGS: u64 = 3;
        let writes = match self.descriptor(number)? {
            Descriptor::Printed => true,
            Descriptor::File { writes, .. } => *writes,
        };
        Ok(if command == FLAGS {
            u64::from(writes)
        } else {
            0
        })
    }

    /// Copies bytes between a file and the program's memory. Returns how many.
    pub(super) fn move_bytes(
        &mut self,
        memory: &mut Memory<Word>,
        number: u64,
        address: u64,
        bytes: u64,
        out: bool,
    ) -> Result<Outcome> {
        let descriptor = match self.descriptor(number) {
            Ok(descriptor) => descriptor.clone(),
            Err(error) => return Ok(Err(error)),
        };
        let Descriptor::File {
            file,
            position,
            writes,
            appends,
        } = descriptor
        else {
            return if out {
                self.print(memory, address, bytes)
            } else {
                Ok(Err(error::NO_DESCRIPTOR))
            };
        };
        if out && !writes {
            return Ok(Err(error::NO_DESCRIPTOR));
        }
        let file = &mut self.files[file];
        let from = if out && appends {
            file.size()
        } else {
            position
        };
        let moved = if out {
            if from.saturating_add(bytes) > MOST {
                return Ok(Err(error::LARGE_FILE));
            }
            file.write(from, memory, address, bytes)?;
            bytes
        } else {
            file.read(from, memory, address, bytes)?
        };
        if let Some(Some(Descriptor::File { position, .. })) = self.open.get_mut(number as usize) {
            *position = from + moved;
        }
        Ok(Ok(moved))
    }

    fn print(&mut self, memory: &mut Memory<Word>, address: u64, bytes: u64) -> Result<Outcome> {
        if bytes == 0 {
            return Ok(Ok(0));
        }
        let printed = memory.read(address, bytes).map_err(|fault| match fault {
            Fault::SecretArgument => Fault::SecretPrinted,
            other => other,
        })?;
        if self.printed.len() + printed.len() > PRINTED {
            return Err(Fault::Printed(PRINTED));
        }
        self.printed.extend_from_slice(printed);
        Ok(Ok(bytes))
    }

    /// Reads into or writes from several buffers, each given by an address and a length.
    pub(super) fn move_vector(
        &mut self,
        memory: &mut Memory<Word>,
        [number, vector, count, ..]: [u64; 6],
        out: bool,
    ) -> Result<Outcome> {
        if count > VECTOR {
            return Ok(Err(error::INVALID));
        }
        let mut all = 0;
        for at in 0..count {
            let entry = memory.read(vector.wrapping_add(16 * at), 16)?;
            let [address, bytes] = [0, 8].map(|from| {
                let word = entry[from..from + 8].try_into().expect("eight bytes");
                u64::from_le_bytes(word)
            });
            match self.move_bytes(memory, number, address, bytes, out)? {
                Ok(moved) => {
                    all += moved;
                    if moved < bytes {
                        break;
                    }
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(all))
    }

    pub(super) fn stat(
        &mut self,
        memory: &mut Memory<Word>,
        number: u64,
        address: u64,
    ) -> Result<Outcome> {
        let (mode, size) = match self.descriptor(number) {
            Ok(Descriptor::Printed) => (TERMINAL, 0),
            Ok(&mut Descriptor::File { file, .. }) => (REGULAR, self.files[file].size()),
            Err(error) => return Ok(Err(error)),
        };
        write_stat(memory, address, mode, size)
    }

    /// Reports on a path, or on an open file if the path is empty.
    pub(super) fn stat_at(
        &mut self,
        memory: &mut Memory<Word>,
        number: u64,
        name: u64,
        address: u64,
    ) -> Result<Outcome> {
        let path = path(memory, name)?;
        if path.is_empty() {
            return self.stat(memory, number, address);
        }
        match self.place(&path) {
            Some(file) => write_stat(memory, address, REGULAR, self.files[file].size()),
            None => Ok(Err(error::NO_FILE)),
        }
    }
}

/// Writes Linux's generic `struct stat`.
fn write_stat<Word: Clone>(
    memory: &mut Memory<Word>,
    address: u64,
    mode: u32,
    size: u64,
) -> Result<Outcome> {
    let mut stat = [0; 128];
    stat[16..20].copy_from_slice(&mode.to_le_bytes());
    // The number of links.
    stat[20] = 1;
    stat[48..56].copy_from_slice(&size.to_le_bytes());
    stat[56..60].copy_from_slice(&4096_u32.to_le_bytes());
    stat[64..72].copy_from_slice(&size.div_ceil(512).to_le_bytes());
    memory.write(address, &stat)?;
    Ok(Ok(0))
}

/// Reads the zero-terminated text at an address.
pub(super) fn path<Word: Clone>(memory: &mut Memory<Word>, address: u64) -> Result<String> {
    let mut text = Vec::new();
    for at in 0..PATH {
        match memory.read(address.wrapping_add(at), 1)?[0] {
            0 => break,
            byte => text.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
