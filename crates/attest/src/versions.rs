//! Versions of AMD's firmware, of which SEV-SNP is made.

use serde::Deserialize;

/// Generations of processors, each with a root key and numbers of versions of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generation {
    /// EPYC 7003.
    Milan,
    /// EPYC 9004 and 8004.
    Genoa,
    /// EPYC 9005.
    Turin,
}

/// Versions of the parts of the firmware of one machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// Controller that starts the platform; only Turin has one.
    #[serde(default)]
    pub fmc: u8,
    /// Boot loader of the security processor.
    pub bootloader: u8,
    /// Operating system of the security processor.
    pub tee: u8,
    /// Firmware of SEV-SNP.
    pub snp: u8,
    /// Microcode of the cores.
    pub microcode: u8,
}

/// Least versions that are accepted, by generation. One without an entry is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeastVersions {
    milan: Option<Versions>,
    genoa: Option<Versions>,
    turin: Option<Versions>,
}

impl Versions {
    /// Reads the eight bytes of a report. Those without a meaning are left out.
    #[must_use]
    pub fn of(generation: Generation, bytes: [u8; 8]) -> Self {
        match generation {
            Generation::Milan | Generation::Genoa => Self {
                fmc: 0,
                bootloader: bytes[0],
                tee: bytes[1],
                snp: bytes[6],
                microcode: bytes[7],
            },
            Generation::Turin => Self {
                fmc: bytes[0],
                bootloader: bytes[1],
                tee: bytes[2],
                snp: bytes[3],
                microcode: bytes[7],
            },
        }
    }

    /// Returns whether every part is at least as new as the other's.
    #[must_use]
    pub fn is_at_least(&self, least: &Self) -> bool {
        self.fmc >= least.fmc
            && self.bootloader >= least.bootloader
            && self.tee >= least.tee
            && self.snp >= least.snp
            && self.microcode >= least.microcode
    }
}

impl LeastVersions {
    /// Returns what is wrong with what was written, if something is.
    #[must_use]
    pub fn defect(&self) -> Option<&'static str> {
        if [self.milan, self.genoa, self.turin] == [None; 3] {
            return Some("names no generation: add milan, genoa or turin");
        }
        let mut earlier = [self.milan, self.genoa].into_iter().flatten();
        earlier
            .any(|versions| versions.fmc > 0)
            .then_some("has fmc, which Turin alone has: remove it from milan and genoa")
    }

    /// Returns the least versions of a generation, if it is accepted at all.
    #[must_use]
    pub fn of(&self, generation: Generation) -> Option<&Versions> {
        match generation {
            Generation::Milan => self.milan.as_ref(),
            Generation::Genoa => self.genoa.as_ref(),
            Generation::Turin => self.turin.as_ref(),
        }
    }
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Milan => "Milan",
            Self::Genoa => "Genoa",
            Self::Turin => "Turin",
        })
    }
}

impl std::fmt::Display for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.fmc > 0 {
            write!(f, "fmc {}, ", self.fmc)?;
        }
        let Self {
            bootloader,
            tee,
            snp,
            microcode,
            ..
        } = self;
        write!(
            f,
            "bootloader {bootloader}, tee {tee}, snp {snp}, microcode {microcode}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_counts() {
        let least = Versions::of(Generation::Turin, [1, 2, 3, 4, 0, 0, 0, 5]);
        assert!(least.is_at_least(&least));
        for at in [0, 1, 2, 3, 7] {
            let mut bytes = [1, 2, 3, 4, 0, 0, 0, 5];
            bytes[at] -= 1;
            let older = Versions::of(Generation::Turin, bytes);
            assert!(!older.is_at_least(&least), "byte {at}");
            assert!(least.is_at_least(&older), "byte {at}");
        }
    }
}
