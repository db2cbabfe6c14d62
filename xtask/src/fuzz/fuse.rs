//! Any sequence of requests to a volume, as the kernel's FUSE client writes them: each must be answered once, nothing may panic, and
//! after a power-off the volume must still stand. Knows nothing of mounts.
//!
//! Heads, lengths and the order of fields are the kernel's (`linux/fuse.h`); what stands in the fields is chance, and so are names,
//! which no kernel has looked at here.
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::SystemTime;

use disk::{Flush, FolderStore, Limits, ROOT, Volume};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socketpair, sockopt,
};
use nix::sys::time::TimeVal;

use super::bytes::Bytes;

/// Requests of one input at most.
const REQUESTS_MAX: usize = 48;
/// The longest content of a write or a value, bytes.
const CONTENT_MAX: u64 = 300;
/// The longest read that a kernel asks for, bytes.
const READ_MAX: u64 = 1 << 20;
/// Bytes before each answer: its length, the error and the number of the request.
const ANSWER_HEAD: usize = 16;
/// No answer may take longer.
const PATIENCE_S: i64 = 5;

/// The first request, and the last one.
const INIT: u32 = 26;
const DESTROY: u32 = 38;

/// A request: its number, the bytes of its fields, and how many names follow.
struct Kind {
    opcode: u32,
    fields: usize,
    names: usize,
    content: Content,
}

/// What follows fields and names, or bounds them.
enum Content {
    None,
    /// As many bytes as the field at this place says.
    Sized(usize),
    /// None; the field at this place says how many bytes are wanted.
    Wanted(usize),
}

const fn kind(opcode: u32, fields: usize, names: usize) -> Kind {
    Kind { opcode, fields, names, content: Content::None }
}

/// Those that have an answer: look-up, attributes, links, nodes, removal, renaming, opening, reading, writing, syncs, extended
/// attributes, listing, access, creation, space, seeking.
const KINDS: [Kind; 29] = [
    kind(1, 0, 1),
    kind(3, 16, 0),
    kind(4, 88, 0),
    kind(5, 0, 0),
    kind(6, 0, 2),
    kind(8, 16, 1),
    kind(9, 8, 1),
    kind(10, 0, 1),
    kind(11, 0, 1),
    kind(12, 8, 2),
    kind(13, 8, 1),
    kind(14, 8, 0),
    Kind { content: Content::Wanted(16), ..kind(15, 40, 0) },
    Kind { content: Content::Sized(16), ..kind(16, 40, 0) },
    kind(17, 0, 0),
    kind(18, 24, 0),
    kind(20, 16, 0),
    Kind { content: Content::Sized(0), ..kind(21, 8, 1) },
    Kind { content: Content::Wanted(0), ..kind(22, 8, 1) },
    Kind { content: Content::Wanted(0), ..kind(23, 8, 0) },
    kind(24, 0, 1),
    kind(25, 24, 0),
    kind(27, 8, 0),
    Kind { content: Content::Wanted(16), ..kind(28, 40, 0) },
    kind(29, 24, 0),
    kind(34, 8, 0),
    kind(35, 16, 1),
    kind(43, 32, 0),
    kind(45, 16, 2),
];

/// Makes a file, writes to it, syncs it, renames it, and opens and lists the root.
pub(super) const SEED: &[u8] = b"\x1a\0\0\0\0\0\x01a\
    \x0d\x01\0\x02\0\0\0\0\0\0\0\0\0\x08abcdefgh\
    \x10\x01\0\x02\0\0\
    \x09\0\0\x01\x01a\x01b\
    \x16\0\0\0\
    \x17\0\0\x01\0\0\0\0\0\0\0\0\x02\x04";

/// A small number, one of blocks, or any that is not negative: a kernel passes no negative offset on.
fn amount(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.byte() % 4 {
        0 | 1 => u64::from(bytes.byte() % 16),
        2 => u64::from(bytes.byte()) * 2048,
        _ => bytes.number() & i64::MAX.unsigned_abs(),
    }
}

/// A name as a kernel would pass it on, or one that it would not.
fn name(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let length = usize::from(bytes.byte() % 12);
    let mut name: Vec<u8> = (0..length).map(|_| bytes.byte().max(1)).collect();
    name.push(0);
    name
}

fn request(kind: &Kind, unique: u64, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let node = 1 + u64::from(bytes.byte() % 8);
    let mut body: Vec<u8> = (0..kind.fields / 8).flat_map(|_| amount(bytes).to_le_bytes()).collect();
    let length = match kind.content {
        Content::None => 0,
        Content::Sized(_) => amount(bytes) % CONTENT_MAX,
        Content::Wanted(_) => amount(bytes) % READ_MAX,
    };
    if let Content::Sized(place) | Content::Wanted(place) = kind.content {
        body[place..place + 4].copy_from_slice(&(length as u32).to_le_bytes());
    }
    (0..kind.names).for_each(|_| body.extend(name(bytes)));
    if matches!(kind.content, Content::Sized(_)) {
        body.extend((0..length).map(|_| bytes.byte()));
    }
    with_head(kind.opcode, unique, node, &body)
}

fn with_head(opcode: u32, unique: u64, node: u64, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(40 + body.len());
    message.extend((40 + body.len() as u32).to_le_bytes());
    message.extend(opcode.to_le_bytes());
    message.extend(unique.to_le_bytes());
    message.extend(node.to_le_bytes());
    // User, group, process, and no extensions.
    message.extend([0; 16]);
    message.extend(body);
    message
}

/// The kernel's end of the device.
struct Kernel(OwnedFd);

impl Kernel {
    /// Asks, and answers the error; panics where the answer is none to this request.
    fn ask(&self, unique: u64, message: &[u8]) -> i32 {
        send(self.0.as_raw_fd(), message, MsgFlags::empty()).expect("somebody serves");
        let mut answer = vec![0; ANSWER_HEAD + READ_MAX as usize];
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::empty()).expect("an answer in time");
        assert!(length >= ANSWER_HEAD, "an answer of {length} bytes");
        let word =
            |at: usize| u32::from_le_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
        assert_eq!(word(0) as usize, length, "the length of an answer");
        assert_eq!(u64::from(word(8)) | u64::from(word(12)) << 32, unique, "the number of the request");
        let error = word(4).cast_signed();
        assert!((-4095..=0).contains(&error), "error {error}");
        error
    }
}

pub(super) fn one(input: &[u8]) {
    errors_of(input);
}

/// What each request is refused with; 0 where it is not.
fn errors_of(input: &[u8]) -> Vec<i32> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FolderStore::new(folder.path(), Flush::Pretended);
    let volume = Arc::new(Volume::new(
        store,
        Limits { blocks_max: 64, operations_max: 16 },
        0,
        0,
        SystemTime::UNIX_EPOCH,
    ));
    let (kernel, device) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .expect("a pair of sockets");
    for end in [&kernel, &device] {
        setsockopt(end, sockopt::SndBuf, &(4 * READ_MAX as usize)).expect("room for an answer");
    }
    setsockopt(&kernel, sockopt::ReceiveTimeout, &TimeVal::new(PATIENCE_S, 0)).expect("a time limit");
    let served = volume.clone();
    let serving = std::thread::spawn(move || disk::serve_unmounted(served, device));
    let kernel = Kernel(kernel);
    let mut bytes = Bytes::new(input);
    let mut greeting = [7u32, 31, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    greeting.resize(64, 0);
    kernel.ask(1, &with_head(INIT, 1, 0, &greeting));
    let mut errors = Vec::new();
    for unique in (2..).take(REQUESTS_MAX) {
        if bytes.is_empty() {
            break;
        }
        let kind = &KINDS[usize::from(bytes.byte()) % KINDS.len()];
        errors.push(kernel.ask(unique, &request(kind, unique, &mut bytes)));
    }
    kernel.ask(1_000, &with_head(DESTROY, 1_000, 0, &[]));
    let ended = serving.join().expect("the session ends");
    assert!(ended.is_ok(), "{ended:?}");
    volume.power_off(None).expect("what was not synced is taken back");
    assert!(volume.status(ROOT).is_ok(), "the root is there");
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_make_sense_are_carried_out_and_others_are_refused() {
        assert_eq!(errors_of(SEED), [0; 6]);
        // A look-up of a name that nobody made, and the attributes of an inode that is not there.
        assert_eq!(errors_of(b"\0\0\x01z\x01\x06"), [-libc::ENOENT, -libc::ESTALE]);
    }
}
