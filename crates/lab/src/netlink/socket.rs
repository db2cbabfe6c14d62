//! The socket that takes requests, and what the kernel answers.
//!
//! A socket speaks of the network namespace that its thread was in when it was opened, whoever uses it later. An answer bears the
//! number of its request: what is left of requests that broke off is nobody's answer.
//! Sources: netlink(7), rtnetlink(7); Linux `net/core/link_watch.c`, `Documentation/networking/operstates.rst`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use netlink_packet_core::{ErrorBuffer, NLMSG_ERROR, NetlinkBuffer, NlasIterator};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::Request;

/// Requests sent at once: their answers wait in the socket.
const REQUESTS_AT_ONCE: usize = 32;
/// The longest answer, as libmnl has it (`MNL_SOCKET_BUFFER_SIZE`).
const ANSWER_BYTES: usize = 8192;
/// Bytes of `struct ifinfomsg`, behind which the attributes of an interface are.
const INTERFACE_BYTES: usize = 16;
/// The state of an interface, and the one in which it takes packets.
const IFLA_OPERSTATE: u16 = 16;
const IF_OPER_UP: u8 = 6;

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
                match acknowledged(&line.answer(last.wrapping_sub(before))?) {
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
        if answer.message_type() == NLMSG_ERROR {
            acknowledged(&answer)?;
        }
        // The rest of what is told is not looked at: it differs from one kernel to the next.
        let attributes = NlasIterator::new(answer.payload().get(INTERFACE_BYTES..).unwrap_or_default());
        let mut readable = attributes.map_while(Result::ok);
        Ok(readable.any(|found| found.kind() == IFLA_OPERSTATE && found.value() == [IF_OPER_UP]))
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
            bytes.extend(request.numbered(self.number));
        }
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
        Ok(self.number)
    }

    /// The answer to a request. The kernel has carried it out by the time that it has taken it: what is not there will not come.
    fn answer(&mut self, number: u32) -> io::Result<NetlinkBuffer<&[u8]>> {
        let length = loop {
            let length = recv(self.socket.as_raw_fd(), &mut self.answer[..], MsgFlags::MSG_DONTWAIT)?;
            let answer = NetlinkBuffer::new_checked(&self.answer[..length]).map_err(io::Error::other)?;
            if answer.sequence_number() == number {
                break length;
            }
        };
        Ok(NetlinkBuffer::new(&self.answer[..length]))
    }
}

/// What an answer says.
fn acknowledged(answer: &NetlinkBuffer<&[u8]>) -> io::Result<()> {
    if answer.message_type() != NLMSG_ERROR {
        return Err(io::Error::other("an answer that makes no sense"));
    }
    let error = ErrorBuffer::new_checked(answer.payload()).map_err(io::Error::other)?;
    error.code().map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code.get().wrapping_neg())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_success_an_error_or_nonsense() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = vec![36, 0, 0, 0];
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(code.to_ne_bytes());
            bytes.resize(36, 0);
            bytes
        };
        let told = |bytes: &[u8]| acknowledged(&NetlinkBuffer::new_checked(bytes).expect("a whole answer"));
        assert!(told(&answer(NLMSG_ERROR, 0)).is_ok());
        let refused = told(&answer(NLMSG_ERROR, -libc::EPERM)).expect_err("refused");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        assert!(told(&answer(3, 0)).is_err());
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
}
