//! The socket that takes requests, and what the kernel answers.
//!
//! A socket speaks of the network namespace that its thread was in when it was opened, whoever uses it later. An answer bears the
//! number of its request: what is left of requests that broke off is nobody's answer.
//! Sources: netlink(7), rtnetlink(7); Linux `net/core/link_watch.c`, `Documentation/networking/operstates.rst`.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::{HEADER_BYTES, IF_OPER_UP, IFLA_OPERSTATE, INTERFACE_BYTES, NLA_F_NESTED, NLMSG_ERROR, Request};

/// Requests sent at once: their answers wait in the socket.
const REQUESTS_AT_ONCE: usize = 32;
/// Bytes of an answer that are read: its head, its code, and some of the request that it repeats; of what is told of an
/// interface the first attributes.
const ANSWER_BYTES: usize = 1024;
/// Where the number is in the head of a request and of its answer.
const NUMBER_AT: Range<usize> = 8..12;

/// A socket for requests about one network namespace, which lives for as long as this does.
#[derive(Debug)]
pub(crate) struct Requests {
    /// For one at a time.
    line: Mutex<Line>,
}

#[derive(Debug)]
struct Line {
    socket: OwnedFd,
    /// Of the last request.
    number: u32,
    answer: Box<[u8; ANSWER_BYTES]>,
}

impl Requests {
    /// About the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Requests> {
        let (family, kind) = (AddressFamily::Netlink, SockType::Raw);
        let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
        Ok(Requests { line: Mutex::new(Line { socket, number: 0, answer: Box::new([0; ANSWER_BYTES]) }) })
    }

    /// Has a request carried out.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(crate) fn ask(&self, request: Request) -> io::Result<()> {
        self.ask_all(vec![request], |_| false)
    }

    /// Has requests carried out, one after the other, each whatever became of those before. An error that is none, by
    /// `is_none`, counts as success.
    ///
    /// # Errors
    /// The first that the kernel answers.
    pub(crate) fn ask_all(
        &self,
        requests: Vec<Request>,
        is_none: impl Fn(&io::Error) -> bool,
    ) -> io::Result<()> {
        let mut line = self.line();
        let mut all_done = Ok(());
        for together in requests.chunks(REQUESTS_AT_ONCE) {
            let last = line.send(together)?;
            for before in (0..together.len() as u32).rev() {
                match acknowledged(line.answer(last.wrapping_sub(before))?) {
                    Err(error) if !is_none(&error) => all_done = all_done.and(Err(error)),
                    _ => {}
                }
            }
        }
        all_done
    }

    /// Whether an interface takes packets. The kernel gives it its queue on a thread of its own, some time after both ends are
    /// up, and drops what comes before. From Linux 6.8 on to be asked makes it do so.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(crate) fn is_in_force(&self, interface: u32) -> io::Result<bool> {
        let mut line = self.line();
        // Behind the answer comes an acknowledgement, which waits until the next answer is read, and is not taken for it.
        let number = line.send(&[Request::look_at(interface)])?;
        let answer = line.answer(number)?;
        if kind_of(answer) == Some(NLMSG_ERROR) {
            acknowledged(answer)?;
        }
        let attributes = answer.get(HEADER_BYTES + INTERFACE_BYTES..).unwrap_or_default();
        Ok(attribute(attributes, IFLA_OPERSTATE).is_some_and(|state| state == [IF_OPER_UP]))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Sends requests together, numbered one by one; the number of the last.
    fn send(&mut self, requests: &[Request]) -> io::Result<u32> {
        let mut bytes = Vec::new();
        for request in requests {
            self.number = self.number.wrapping_add(1);
            bytes.extend(numbered(request, self.number));
        }
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
        Ok(self.number)
    }

    /// The answer to a request. The kernel has carried it out by the time that it has taken it: what is not there will not come.
    fn answer(&mut self, number: u32) -> io::Result<&[u8]> {
        let length = loop {
            let length = recv(self.socket.as_raw_fd(), &mut self.answer[..], MsgFlags::MSG_DONTWAIT)?;
            if number_of(&self.answer[..length]) == Some(number) {
                break length;
            }
        };
        Ok(&self.answer[..length])
    }
}

fn numbered(request: &Request, number: u32) -> Vec<u8> {
    let Request(bytes) = request;
    let mut bytes = bytes.clone();
    bytes[NUMBER_AT].copy_from_slice(&number.to_ne_bytes());
    bytes
}

fn number_of(answer: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(answer.get(NUMBER_AT)?.try_into().ok()?))
}

fn kind_of(answer: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?))
}

/// What an answer says.
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4);
    match (kind_of(answer), code) {
        (Some(NLMSG_ERROR), Some(code)) => match i32::from_ne_bytes([code[0], code[1], code[2], code[3]]) {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
        },
        _ => Err(io::Error::other("an answer that makes no sense")),
    }
}

/// The value of the first attribute of a kind. One that is cut off is not there, nor is what would come behind it.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(bytes.get(0..2)?.try_into().ok()?));
        let found = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..length)?;
        if found & !NLA_F_NESTED == kind {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{IFLA_IFNAME, put};
    use super::*;

    #[test]
    fn an_answer_is_success_an_error_or_nonsense() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = vec![36, 0, 0, 0];
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(code.to_ne_bytes());
            bytes
        };
        assert!(acknowledged(&answer(NLMSG_ERROR, 0)).is_ok());
        let refused = acknowledged(&answer(NLMSG_ERROR, -libc::EPERM)).expect_err("refused");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        assert!(acknowledged(&answer(3, 0)).is_err() && acknowledged(&[0; 5]).is_err());
    }

    #[test]
    fn a_request_bears_its_number_and_is_as_it_was_else() {
        let request = Request::set_up(3, true);
        let bytes = numbered(&request, 7);
        assert_eq!(number_of(&bytes), Some(7));
        assert_eq!(numbered(&request, 0), request.0);
        assert_eq!((&bytes[..8], &bytes[12..]), (&request.0[..8], &request.0[12..]));
    }

    #[test]
    fn what_is_left_of_a_request_is_not_the_answer_to_the_next() {
        let requests = Requests::open().expect("a socket");
        let loopback = nix::net::if_::if_nametoindex("lo").expect("a loopback interface");
        for _ in 0..2 {
            // The success that is acknowledged behind the first answer waits while the second request is answered.
            requests.is_in_force(loopback).expect("an answer");
            let error = requests.is_in_force(i32::MAX as u32).expect_err("no such interface");
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        }
    }

    #[test]
    fn an_attribute_is_found_behind_others_and_one_that_is_cut_off_is_not() {
        let mut bytes = Vec::new();
        put(&mut bytes, IFLA_IFNAME, b"k1\0");
        put(&mut bytes, IFLA_OPERSTATE, &[IF_OPER_UP]);
        assert_eq!(attribute(&bytes, IFLA_OPERSTATE), Some(&[IF_OPER_UP][..]));
        assert_eq!(attribute(&bytes[..bytes.len() - 4], IFLA_OPERSTATE), None);
        assert_eq!(attribute(&[0; 8], IFLA_OPERSTATE), None);
    }
}
