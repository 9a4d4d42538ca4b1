//! Lenient reading of a faulty configuration: enough to tell the other members of the fault.

use super::read_file;
use std::path::Path;
use toml::{Table, Value};

/// Most lines that may be left out because they cannot be parsed.
const MOST_UNREADABLE: usize = 16;

/// Members of a session, as far as their addresses and certificates can be read.
pub struct LenientConfig {
    member: usize,
    members: Vec<Member>,
}

#[derive(Default)]
struct Member {
    address: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl LenientConfig {
    /// Reads what is readable, for a party, or for the dealer if `party` is `None`. `is_dealt` says
    /// whether a source has a dealer. Returns `None` if nothing can be read.
    #[must_use]
    pub fn read(
        path: &Path,
        party: Option<usize>,
        is_dealt: impl Fn(Option<&str>) -> bool,
    ) -> Option<Self> {
        let table = readable(read_file(path).ok()?)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut members: Vec<_> = tables(&table, "party")
            .take(crate::MOST_PARTIES)
            .map(|entry| Member::new(entry, folder))
            .collect();
        let member = party.unwrap_or(members.len());
        if party.is_none() || is_dealt(text_of(&table, "source")) {
            let dealer = table.get("dealer").and_then(Value::as_table);
            members.extend(dealer.map(|entry| Member::new(entry, folder)));
        }
        (member < members.len()).then_some(Self { member, members })
    }

    /// Returns the number of the member that reads.
    pub(crate) fn member(&self) -> usize {
        self.member
    }

    /// Returns the member's own certificate and key.
    pub(crate) fn own(&self) -> Option<(String, String)> {
        let own = &self.members[self.member];
        own.certificate.clone().zip(own.key.clone())
    }

    /// Returns the address and certificate of each other member that has both.
    pub(crate) fn others(&self) -> impl Iterator<Item = (String, String)> {
        let others = self.members.iter().enumerate();
        others
            .filter(|(member, _)| *member != self.member)
            .filter_map(|(_, other)| other.address.clone().zip(other.certificate.clone()))
    }
}

impl Member {
    fn new(entry: &Table, folder: &Path) -> Self {
        let Some(certificate) = text_of(entry, "certificate").map(|name| folder.join(name)) else {
            return Self::default();
        };
        let key = text_of(entry, "key").map_or_else(
            || certificate.with_extension("key"),
            |name| folder.join(name),
        );
        let address =
            text_of(entry, "address").filter(|address| super::check_address(address).is_ok());
        Self {
            address: address.map(str::to_owned),
            certificate: read_file(&certificate).ok(),
            key: read_file(&key).ok(),
        }
    }
}

fn text_of<'a>(table: &'a Table, name: &str) -> Option<&'a str> {
    table.get(name)?.as_str()
}

fn tables<'a>(table: &'a Table, name: &str) -> impl Iterator<Item = &'a Table> {
    let array = table.get(name).and_then(Value::as_array);
    array.into_iter().flatten().filter_map(Value::as_table)
}

/// Parses the document without the lines that are not TOML.
fn readable(mut text: String) -> Option<Table> {
    for _ in 0..MOST_UNREADABLE {
        let at = match text.parse() {
            Ok(table) => return Some(table),
            Err(error) => toml::de::Error::span(&error)?.start,
        };
        let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
        let length = text[start..].find('\n').unwrap_or(text.len() - start);
        // An empty line cannot be the faulty one.
        text = (length > 0).then(|| text[..start].to_owned() + &text[start + length..])?;
    }
    None
}
