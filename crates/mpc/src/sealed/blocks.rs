//! Blocks at the start of a file, and the keys.

use super::{Header, LONGEST_NOTE, damaged, error_at};
use crate::Result;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce, Tag};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a block. Disks and file systems write that many as one, so that tearing one block
/// spares the others.
pub const BLOCK: usize = 4096;
/// Bytes of a hash or MAC.
const HASH: usize = 32;
/// Bytes of a block before its MAC.
pub const CONTENT: usize = BLOCK - HASH;
/// Offset of the first run.
pub const DATA: u64 = 4 * BLOCK as u64;

/// Block of the header.
pub const HEAD: u64 = 0;
/// Blocks of the counter, which are not adjacent.
pub const COUNTERS: [u64; 2] = [1, 3];
/// Block that contains the position of the index.
pub const FINISH: u64 = 2;

/// First bytes of every file.
pub const MAGIC: &[u8; 16] = b"tacit-sealed\r\n\x1a\n";
const VERSION: u32 = 2;
/// Bytes that the checksum covers.
const CHECKED: usize = CONTENT - HASH;

const ROOT: &str = "tacit correlations file, version 2";

/// Block without its MAC.
pub type Content = [u8; CONTENT];

/// Keys of one file. They are wiped when dropped.
pub struct Keys {
    seal: ChaCha20Poly1305,
    blocks: Zeroizing<[u8; HASH]>,
    head: [u8; HASH],
}

/// Identity of a chunk, bound into its seal.
#[derive(Clone, Copy)]
pub struct Place {
    /// Run of the chunk.
    pub run: u32,
    /// Record within the run.
    pub record: u64,
    /// Chunk within the run.
    pub chunk: u64,
    /// Whether the chunk is the last of its record.
    pub last: bool,
}

impl Place {
    fn nonce(&self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&self.run.to_le_bytes());
        nonce[4..].copy_from_slice(&self.chunk.to_le_bytes());
        nonce.into()
    }

    fn associated(&self, head: &[u8; HASH]) -> [u8; HASH + 13] {
        let mut data = [0; HASH + 13];
        data[..HASH].copy_from_slice(head);
        data[HASH..HASH + 4].copy_from_slice(&self.run.to_le_bytes());
        data[HASH + 4..HASH + 12].copy_from_slice(&self.record.to_le_bytes());
        data[HASH + 12] = u8::from(self.last);
        data
    }
}

impl Keys {
    /// Derives the keys of the file whose block 0 is `head`. Also returns that block's MAC.
    fn derive(secret: &[u8], head: &Content, header: &Header) -> (Self, blake3::Hash) {
        let mut hasher = blake3::Hasher::new_derive_key(ROOT);
        hasher.update(secret).update(&header.id);
        let root = Zeroizing::new(*hasher.finalize().as_bytes());
        hasher.zeroize();
        let seal = keyed_hash(&root, b"seal", head);
        let keys = Self {
            seal: ChaCha20Poly1305::new((&*seal).into()),
            blocks: keyed_hash(&root, b"blocks", head),
            head: *blake3::hash(head).as_bytes(),
        };
        let mac = blake3::Hash::from_bytes(*keyed_hash(&root, b"head", head));
        (keys, mac)
    }

    fn mac(&self, label: &[u8], content: &Content) -> blake3::Hash {
        blake3::Hash::from_bytes(*keyed_hash(&self.blocks, label, content))
    }

    /// Appends the MAC to a block's content.
    pub fn authenticate(&self, label: &[u8], content: &Content) -> [u8; BLOCK] {
        join(content, &self.mac(label, content))
    }

    /// Returns the content of a block, if its MAC is right.
    pub fn verify(&self, label: &[u8], block: &[u8; BLOCK]) -> Option<Content> {
        let (content, mac) = split(block);
        // Hashes are compared in constant time.
        (self.mac(label, &content) == mac).then_some(content)
    }

    /// Seals a chunk in place, appending the tag.
    pub fn seal(&self, place: Place, chunk: &mut Vec<u8>) {
        let data = place.associated(&self.head);
        let tag = self
            .seal
            .encrypt_inout_detached(&place.nonce(), &data, chunk.as_mut_slice().into())
            .expect("a chunk is far below the cipher's limit");
        chunk.extend_from_slice(&tag);
    }

    /// Opens a chunk in place. If that fails, its bytes are meaningless.
    pub fn open<'a>(&self, place: Place, chunk: &'a mut [u8]) -> Option<&'a [u8]> {
        let (text, tag) = chunk.split_last_chunk_mut::<{ super::TAG }>()?;
        let data = place.associated(&self.head);
        let tag = Tag::from(*tag);
        self.seal
            .decrypt_inout_detached(&place.nonce(), &data, (&mut *text).into(), &tag)
            .ok()?;
        Some(text)
    }
}

fn keyed_hash(key: &[u8; HASH], label: &[u8], content: &Content) -> Zeroizing<[u8; HASH]> {
    let mut hasher = blake3::Hasher::new_keyed(key);
    // The content has a fixed length and comes first, so that content and label are unambiguous.
    hasher.update(content).update(label);
    let hash = Zeroizing::new(*hasher.finalize().as_bytes());
    hasher.zeroize();
    hash
}

fn join(content: &Content, mac: &blake3::Hash) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..CONTENT].copy_from_slice(content);
    block[CONTENT..].copy_from_slice(mac.as_bytes());
    block
}

fn split(block: &[u8; BLOCK]) -> (Content, blake3::Hash) {
    let (mut content, mut mac) = ([0; CONTENT], [0; HASH]);
    content.copy_from_slice(&block[..CONTENT]);
    mac.copy_from_slice(&block[CONTENT..]);
    (content, blake3::Hash::from_bytes(mac))
}

/// Integers and bytes of a block, one after the other.
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// Returns the next bytes. The caller's fields must fit into a block.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.0.split_first_chunk().expect("fields fit into a block");
        self.0 = rest;
        *bytes
    }

    /// Returns the next four bytes as an integer.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    /// Returns the next eight bytes as an integer.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}

/// Returns a block that begins with these fields and is otherwise zero.
pub fn content(fields: &[&[u8]]) -> Content {
    let mut content = [0; CONTENT];
    let mut rest = content.as_mut_slice();
    for field in fields {
        let (place, behind) = rest.split_at_mut(field.len());
        place.copy_from_slice(field);
        rest = behind;
    }
    content
}

/// Returns block 0 of a new file, and the keys.
pub fn encode_head(secret: &[u8], header: &Header, salt: &[u8; 16]) -> ([u8; BLOCK], Keys) {
    let note = header.note.as_bytes();
    let mut head = content(&[
        MAGIC,
        &VERSION.to_le_bytes(),
        &header.id,
        &header.party.to_le_bytes(),
        &header.parties.to_le_bytes(),
        &header.runs.to_le_bytes(),
        &header.content.to_le_bytes(),
        &header.ahead.to_le_bytes(),
        salt,
        &(note.len() as u32).to_le_bytes(),
        note,
    ]);
    let checksum = blake3::hash(&head[..CHECKED]);
    head[CHECKED..].copy_from_slice(checksum.as_bytes());
    let (keys, mac) = Keys::derive(secret, &head, header);
    (join(&head, &mac), keys)
}

/// Decodes header and keys from block 0, whose magic was already checked.
pub fn decode_head(secret: &[u8], block: &[u8; BLOCK], path: &Path) -> Result<(Header, Keys)> {
    let (head, expected) = split(block);
    let mut fields = Fields(&head[MAGIC.len()..]);
    let version = fields.u32();
    if version != VERSION {
        return Err(error_at(
            path,
            &format!(
                "a correlation file of version {version}, but this release reads version \
                 {VERSION}; use the release that made it, or make new correlations"
            ),
        ));
    }
    if blake3::hash(&head[..CHECKED]) != head[CHECKED..] {
        return Err(damaged(path, "in its header"));
    }
    let header = decode_header(&mut fields).ok_or_else(|| damaged(path, "in its header"))?;
    let (keys, mac) = Keys::derive(secret, &head, &header);
    if mac != expected {
        let (party, parties) = (header.party, header.parties);
        return Err(error_at(
            path,
            &format!(
                "sealed with another key; it says that it was made for party {party} of {parties}: \
                 open it with the private key that the party had then, or make new correlations"
            ),
        ));
    }
    Ok((header, keys))
}

fn decode_header(fields: &mut Fields<'_>) -> Option<Header> {
    let id = fields.bytes();
    let (party, parties, runs) = (fields.u32(), fields.u32(), fields.u32());
    let (content, ahead) = (fields.u32(), fields.u64());
    let _salt: [u8; 16] = fields.bytes();
    let length = fields.u32() as usize;
    let note: [u8; LONGEST_NOTE] = fields.bytes();
    let note = std::str::from_utf8(note.get(..length)?).ok()?.to_owned();
    let header = Header {
        id,
        party,
        parties,
        runs,
        content,
        ahead,
        note,
    };
    header.invalid_reason().is_none().then_some(header)
}

/// Reads a block.
pub fn read_block(file: &mut (impl Read + Seek), number: u64) -> io::Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    file.seek(SeekFrom::Start(number * BLOCK as u64))?;
    file.read_exact(&mut block)?;
    Ok(block)
}

/// Writes a block, not yet durably.
pub fn write_block(
    file: &mut (impl Write + Seek),
    number: u64,
    block: &[u8; BLOCK],
) -> io::Result<()> {
    file.seek(SeekFrom::Start(number * BLOCK as u64))?;
    file.write_all(block)
}
