//! Sockets that never make the thread wait: what the kernel said of each, and reading and writing by it.
//!
//! Owns the registration with the kernel, edge by edge: a socket is asked for bytes only after the kernel said that there
//! are some, and for room only after it had none.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};

use super::{core, sleep};

/// How long to wait for a place in the queue of a Unix socket, for which there is no event.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(2);

const ALWAYS: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// All sockets of a loop, by the number that the kernel knows them by.
pub(super) struct Sockets {
    epoll: Rc<OwnedFd>,
    places: RefCell<Vec<Option<Rc<State>>>>,
    free: RefCell<Vec<usize>>,
}

/// What is known of a socket.
#[derive(Default)]
struct State {
    readable: Cell<bool>,
    writable: Cell<bool>,
    /// The other side sends nothing more, or the line is broken: there is no further event to wait for.
    ending: Cell<bool>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

impl Sockets {
    pub(super) fn new(epoll: Rc<OwnedFd>) -> Self {
        Self { epoll, places: RefCell::default(), free: RefCell::default() }
    }

    /// Takes in what the kernel said of a socket.
    pub(super) fn happened(&self, place: u64, flags: EventFlags) {
        let state =
            usize::try_from(place).ok().and_then(|place| self.places.borrow().get(place).cloned().flatten());
        let Some(state) = state else { return };
        let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if broken || flags.contains(EventFlags::RDHUP) {
            state.ending.set(true);
        }
        if flags.contains(EventFlags::IN) || state.ending.get() {
            state.readable.set(true);
            wake(&state.reader);
        }
        // A side that sends no more may still take something, and has room or has none.
        if flags.contains(EventFlags::OUT) || broken {
            state.writable.set(true);
            wake(&state.writer);
        }
    }

    fn register(&self, descriptor: BorrowedFd<'_>, wanted: EventFlags) -> io::Result<(usize, Rc<State>)> {
        let state = Rc::new(State::default());
        let mut places = self.places.borrow_mut();
        let place = self.free.borrow_mut().pop().unwrap_or(places.len());
        if place == places.len() {
            places.push(None);
        }
        if let Err(errno) = epoll::add(&self.epoll, descriptor, EventData::new_u64(place as u64), wanted) {
            self.free.borrow_mut().push(place);
            return Err(errno.into());
        }
        if let Some(known) = places.get_mut(place) {
            *known = Some(Rc::clone(&state));
        }
        Ok((place, state))
    }

    fn forget(&self, place: usize) {
        if let Some(known) = self.places.borrow_mut().get_mut(place) {
            *known = None;
        }
        self.free.borrow_mut().push(place);
    }
}

fn wake(who: &RefCell<Option<Waker>>) {
    // It stays noted: to note it anew for every answer would cost more than a needless poll now and then.
    if let Some(waker) = &*who.borrow() {
        waker.wake_by_ref();
    }
}

fn note(who: &RefCell<Option<Waker>>, context: &Context<'_>) {
    let mut known = who.borrow_mut();
    match &mut *known {
        Some(known) => known.clone_from(context.waker()),
        none => *none = Some(context.waker().clone()),
    }
}

fn unconnected(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}

/// A connected stream, over TCP or a Unix socket.
pub struct Socket {
    /// Closed before its place is given away: the kernel forgets a descriptor when it is closed.
    descriptor: Option<OwnedFd>,
    state: Rc<State>,
    place: usize,
    core: Rc<super::Core>,
    /// Whether the kernel is to say when there is room.
    awaits_room: Cell<bool>,
}

impl Socket {
    /// Connects over TCP. Waits as long as the kernel does.
    ///
    /// # Errors
    /// When the address cannot be reached.
    ///
    /// # Panics
    /// Outside [`super::block_on`].
    pub async fn connect_tcp(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let descriptor = unconnected(family)?;
        match connect(&descriptor, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let socket = Self::over(descriptor)?;
        poll_fn(|context| socket.poll_room(context)).await?;
        socket_error(socket.as_fd())??;
        Ok(socket)
    }

    /// Connects to the Unix socket at `path`.
    ///
    /// # Errors
    /// When nobody listens there.
    ///
    /// # Panics
    /// Outside [`super::block_on`].
    pub async fn connect_unix(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let descriptor = unconnected(AddressFamily::UNIX)?;
        loop {
            match connect(&descriptor, &address) {
                Ok(()) => return Self::over(descriptor),
                Err(Errno::AGAIN | Errno::INTR) => sleep(FULL_QUEUE_PAUSE).await,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Takes over a stream socket that does not block and is connected or about to be: the kernel would call another
    /// one broken.
    pub(crate) fn over(descriptor: OwnedFd) -> io::Result<Self> {
        let core = core();
        let (place, state) = core.sockets.register(descriptor.as_fd(), ALWAYS)?;
        Ok(Self { descriptor: Some(descriptor), state, place, core, awaits_room: Cell::new(false) })
    }

    /// Reads what is there; 0 at the stream's end.
    ///
    /// # Errors
    /// When the line is broken.
    pub fn poll_read(&self, context: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if !self.state.readable.get() {
                note(&self.state.reader, context);
                return Poll::Pending;
            }
            match recv(self.as_fd(), &mut *space, RecvFlags::DONTWAIT) {
                Ok((count, _)) => {
                    // Less than there was room for: nothing is left, and the kernel tells of more.
                    if count < space.len() && !self.state.ending.get() {
                        self.state.readable.set(false);
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::AGAIN) => self.state.readable.set(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// When the line is broken.
    pub fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            if self.awaits_room.get() {
                ready!(self.poll_room(context))?;
            }
            match self.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.poll_room(context))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// Writes what there is room for right now.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where there is none; when the line is broken.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.as_fd(), bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When the line is broken.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = poll_fn(|context| self.poll_write(context, bytes)).await?;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Fills `space`.
    ///
    /// # Errors
    /// When the line is broken, or the stream ends before.
    pub async fn read_exact(&self, space: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while let Some(rest) = space.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let count = poll_fn(|context| self.poll_read(context, rest)).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += count;
        }
        Ok(())
    }

    /// Waits until the kernel says that there is room. It is asked to only here: a Unix socket would tell of room
    /// whenever the other side has read anything.
    fn poll_room(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let know = |wanted| {
            let data = EventData::new_u64(self.place as u64);
            epoll::modify(&self.core.epoll, self.as_fd(), data, wanted)
        };
        if !self.awaits_room.replace(true) {
            self.state.writable.set(false);
            know(ALWAYS | EventFlags::OUT)?;
        }
        if !self.state.writable.get() {
            note(&self.state.writer, context);
            return Poll::Pending;
        }
        self.awaits_room.set(false);
        know(ALWAYS)?;
        Poll::Ready(Ok(()))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Some(descriptor) => descriptor.as_fd(),
            None => unreachable!("only drop takes it"),
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.descriptor = None;
        self.core.sockets.forget(self.place);
    }
}
