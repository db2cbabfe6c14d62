//! A component of a mirrored volume on a host: its content, and the thread that does what the one that serves says.
//!
//! Owns its listener and its connection. Which component serves is for `mirrored`.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use disk::mirror::{Answer, Dirt, ExtentLog, Incoming, read_frame};
use disk::{Files, FolderStore, Limits, Lost, OnDisk, elsewhere};
use history::HostId;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::threads::Threads;
use crate::host_place::{self, HostPlace};
use crate::rollback::{PowerOffs, Rollback};

/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;
/// An answer is given after so many messages at the latest.
const MESSAGES_PER_ANSWER: u32 = 32;
/// And so many times while a sign is waited for, however many messages that are.
const SIGNS_PER_TIMEOUT: u32 = 4;
/// Messages that are received before they are carried out, at most; the sender's buffer is the narrower bound.
const MESSAGES_HELD: usize = 4_096;
/// How often a listener looks whether it is to end.
const LOOK_MS: u16 = 100;

/// What components of one volume have in common.
#[derive(Debug, Clone, Copy)]
pub struct ComponentSettings {
    /// The user that owns the volume.
    pub user: u32,
    /// Whether syncs are passed on to the machine's disk.
    pub flush: bool,
    /// Whether the log of extents has a device of its own.
    pub metadata_on_own_device: bool,
    /// How long a sign is waited for.
    pub timeout: Duration,
    /// Whether messages are answered when they are received, before they are carried out.
    pub answers_receipt: bool,
    /// What power-offs do to it.
    pub power_offs: PowerOffs,
}

/// One copy of a mirrored volume, on a host's disk.
#[derive(Debug)]
pub struct Component {
    pub host: HostId,
    /// What that has for it.
    pub place: Arc<HostPlace>,
    /// Where it listens.
    pub port: u16,
    /// Its content.
    pub volume: Arc<disk::Volume<OnDisk<FolderStore>>>,
    /// Its log of extents.
    pub extents: Arc<ExtentLog>,
    settings: ComponentSettings,
    rollback: Rollback,
    last_loss: Mutex<Option<Result<Lost, String>>>,
    threads: Arc<Threads>,
    server: Mutex<Option<Server>>,
}

/// Its threads while its host has power.
#[derive(Debug)]
struct Server {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Nothing is done any more.
    is_off: AtomicBool,
    /// Number of the last message carried out on the present connection.
    applied: AtomicU64,
    /// The connection of the one that serves, and what is wrong with it.
    connection: Mutex<Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    stream: Option<TcpStream>,
    thread: Option<JoinHandle<()>>,
    trouble: Option<String>,
}

impl Component {
    /// An empty component in an empty folder, on a host with power.
    ///
    /// # Errors
    /// When the folder cannot be written or the host not listened on.
    pub fn make(
        folder: &Path,
        (host, place, port): (HostId, Arc<HostPlace>, u16),
        settings: ComponentSettings,
        threads: Arc<Threads>,
    ) -> io::Result<Component> {
        let content = folder.join("content");
        std::fs::create_dir_all(&content)?;
        let store = OnDisk::in_folder(&content, place.disk.clone(), settings.flush);
        let volume =
            disk::Volume::new(store, Limits::default(), settings.user, settings.user, SystemTime::now());
        let flushes = settings.flush && !settings.metadata_on_own_device;
        let extents =
            Arc::new(ExtentLog::create(&folder.join("extents"), flushes.then(|| place.disk.clone()))?);
        let component = Component {
            host,
            place,
            port,
            volume: Arc::new(volume),
            extents,
            settings,
            rollback: Rollback::new(settings.power_offs),
            last_loss: Mutex::default(),
            threads,
            server: Mutex::default(),
        };
        component.power_on()?;
        Ok(component)
    }

    fn server(&self) -> std::sync::MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is reached.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.place.address, self.port)
    }

    /// Whether its host has power.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.server().is_some()
    }

    /// Its host has power: it can be reached.
    ///
    /// # Errors
    /// When the host cannot be listened on.
    pub fn power_on(&self) -> io::Result<()> {
        let mut server = self.server();
        if server.is_some() {
            return Ok(());
        }
        let listener = self.place.listen(self.port)?;
        listener.set_nonblocking(true)?;
        let shared: Arc<Shared> = Arc::default();
        let serve = Serve {
            shared: shared.clone(),
            volume: self.volume.clone(),
            extents: self.extents.clone(),
            settings: self.settings,
            threads: self.threads.clone(),
        };
        let thread = self.threads.start("component", move || serve.listen(&listener))?;
        *server = Some(Server { shared, thread });
        Ok(())
    }

    /// Its host loses power: nothing is done any more from here on, and what was not durable is gone. Nothing is lost twice.
    ///
    /// # Errors
    /// When the folder's file system refuses; then its content is in doubt.
    pub fn power_off(&self, dirt: &mut Dirt) -> io::Result<Lost> {
        if self.stop() { self.lose(dirt) } else { Ok(Lost::default()) }
    }

    /// What was not durable is gone; where writes are torn, sectors of the last one survive as its own chance says. What is
    /// other than before, torn or not, is marked in `dirt`.
    ///
    /// # Errors
    /// As [`Component::power_off`].
    pub fn lose(&self, dirt: &mut Dirt) -> io::Result<Lost> {
        let lost = self.rollback.of(&self.volume, dirt);
        let told = lost.as_ref().copied().map_err(ToString::to_string);
        *self.last_loss.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        lost.map_err(io::Error::from)
    }

    /// The node has lost its power, the component has not: what reached it is there whole, but for what the node had not
    /// synced.
    ///
    /// # Errors
    /// As [`Component::power_off`].
    pub fn lose_with_its_node(&self, dirt: &mut Dirt) -> io::Result<Lost> {
        self.volume.drive_keeps_its_power();
        self.rollback.of_whole_writes(&self.volume, dirt).map_err(io::Error::from)
    }

    /// How often the oldest that was not durable became so, because more was not than is remembered.
    pub(crate) fn written_back(&self) -> u64 {
        self.volume.written_back()
    }

    /// Whoever it serves is about to lose its power, and its host is not.
    pub fn drive_keeps_its_power(&self) {
        self.volume.drive_keeps_its_power();
    }

    /// What its last power-off took.
    #[must_use]
    pub fn last_loss(&self) -> Option<Result<Lost, String>> {
        self.last_loss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it was on.
    fn stop(&self) -> bool {
        let Some(Server { shared, thread }) = self.server().take() else { return false };
        shared.is_off.store(true, Ordering::Release);
        // A disk that does not answer keeps nobody on whose power is off.
        self.volume.interrupt(true);
        shared.end_connection(Shutdown::Both, None);
        // A panic there has ended it as well.
        let _ = thread.join();
        self.volume.interrupt(false);
        true
    }

    /// Carries out what has arrived, and hears the present connection no longer: the one at its other end serves no more. What
    /// its disk has not taken within the timeout is given up.
    #[must_use]
    pub fn drain(&self) -> Drained {
        let nothing = Drained { last: 0, is_whole: true };
        self.server().as_ref().map_or(nothing, |server| {
            let patience = Some((self.settings.timeout, &*self.volume));
            let is_whole = server.shared.end_connection(Shutdown::Read, patience);
            Drained { last: server.shared.applied.load(Ordering::Acquire), is_whole }
        })
    }

    /// Why it last broke a connection by itself.
    #[must_use]
    pub fn take_trouble(&self) -> Option<String> {
        self.server().as_ref().and_then(|server| server.shared.connection().trouble.take())
    }
}

/// What a component has carried out of what arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// The number of the last message; zero when there was none, or its host has no power.
    pub last: u64,
    /// Whether nothing was given up.
    pub is_whole: bool,
}

impl Drop for Component {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn connection(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the present connection and waits for its thread; with a patience, for so long, and then the volume keeps it no
    /// longer. False where it had to be let go of.
    fn end_connection(
        &self,
        how: Shutdown,
        patience: Option<(Duration, &disk::Volume<OnDisk<FolderStore>>)>,
    ) -> bool {
        let (stream, thread) = {
            let mut connection = self.connection();
            (connection.stream.take(), connection.thread.take())
        };
        if let Some(stream) = stream {
            // One that is broken already needs no end.
            let _ = stream.shutdown(how);
        }
        let Some(thread) = thread else { return true };
        let Some((patience, volume)) = patience else {
            // It may wait for its disk.
            let _ = elsewhere(|| thread.join());
            return true;
        };
        let deadline = Instant::now() + patience;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let is_whole = thread.is_finished();
        volume.interrupt(!is_whole);
        let _ = thread.join();
        volume.interrupt(false);
        is_whole
    }
}

/// What its threads need.
#[derive(Clone)]
struct Serve {
    shared: Arc<Shared>,
    volume: Arc<disk::Volume<OnDisk<FolderStore>>>,
    extents: Arc<ExtentLog>,
    settings: ComponentSettings,
    threads: Arc<Threads>,
}

impl Serve {
    fn listen(&self, listener: &TcpListener) {
        use std::os::fd::AsFd;
        while !self.shared.is_off.load(Ordering::Acquire) {
            let mut waiting = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            if !matches!(poll(&mut waiting, PollTimeout::from(LOOK_MS)), Ok(1..)) {
                continue;
            }
            let _work = self.threads.work();
            // Whoever gave up meanwhile connects again.
            if let Ok(stream) = host_place::accept(listener) {
                // A new connection means that the one that serves has given up the old one.
                self.shared.end_connection(Shutdown::Both, None);
                self.shared.applied.store(0, Ordering::Release);
                self.begin(stream);
            }
        }
    }

    fn begin(&self, stream: TcpStream) {
        let copies = stream
            .set_nonblocking(false)
            .and_then(|()| host_place::prepare(&stream, self.settings.timeout))
            .and_then(|()| stream.try_clone());
        let Ok(copy) = copies else { return };
        let mut connection = self.shared.connection();
        if self.shared.is_off.load(Ordering::Acquire) {
            return;
        }
        let serve = self.clone();
        let thread = self.threads.start("component", move || serve.hear(&stream));
        if let Ok(thread) = thread {
            *connection = Connection { stream: Some(copy), thread: Some(thread), trouble: None };
        }
    }

    fn hear(&self, stream: &TcpStream) {
        if let Err(why) = self.obey(stream) {
            self.shared.connection().trouble = Some(why);
        }
        let _ = stream.shutdown(Shutdown::Both);
    }

    fn carry_out(&self, message: &Incoming<'_>) -> Result<(), String> {
        let _work = self.threads.work();
        message.carry_out(&self.volume, Some(&self.extents)).map_err(|error| error.to_string())
    }

    /// Carries messages out until the connection ends.
    fn obey(&self, stream: &TcpStream) -> Result<(), String> {
        if self.settings.answers_receipt {
            return self.receive_and_obey(stream);
        }
        let mut reader = BufReader::with_capacity(READ_BYTES, stream);
        let mut buffer = Vec::new();
        let mut answer = Answer::default();
        let mut unanswered = 0;
        let mut said_at = Instant::now();
        // On a slow disk as many messages may take longer than a sign is waited for.
        let silence_max = self.settings.timeout / SIGNS_PER_TIMEOUT;
        // A connection that breaks is no trouble of the component's.
        while read_frame(&mut reader, &mut buffer).unwrap_or(false) {
            if self.shared.is_off.load(Ordering::Acquire) {
                return Ok(());
            }
            let message = Incoming::read(&buffer).map_err(|error| error.to_string())?;
            answer.received = message.sequence();
            let is_awaited = message.is_awaited();
            self.carry_out(&message)?;
            answer.applied = message.sequence();
            self.shared.applied.store(answer.applied, Ordering::Release);
            unanswered += 1;
            let is_due = unanswered >= MESSAGES_PER_ANSWER || said_at.elapsed() >= silence_max;
            if is_awaited || is_due || reader.buffer().is_empty() {
                say(stream, answer);
                (unanswered, said_at) = (0, Instant::now());
            }
            self.threads.cpu().count();
        }
        Ok(())
    }
}

impl Serve {
    /// The same where receipts are answered: what has arrived is received, however long what came before it takes.
    fn receive_and_obey(&self, stream: &TcpStream) -> Result<(), String> {
        let (queue, queued) = sync_channel(MESSAGES_HELD);
        let answer = Mutex::new(Answer::default());
        let answered = |change: &dyn Fn(&mut Answer), is_said: bool| {
            let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut answer);
            if is_said {
                say(stream, *answer);
            }
        };
        let receive = || {
            let _living = self.threads.under_way().living();
            let mut reader = BufReader::with_capacity(READ_BYTES, stream);
            let mut buffer = Vec::new();
            while read_frame(&mut reader, &mut buffer).unwrap_or(false) {
                if let Ok(message) = Incoming::read(&buffer) {
                    let sequence = message.sequence();
                    answered(&|answer| answer.received = sequence, message.is_awaited());
                }
                if queue.send(std::mem::take(&mut buffer)).is_err() {
                    break;
                }
                self.threads.cpu().count();
            }
            drop(queue);
        };
        std::thread::scope(|scope| {
            let receiver = std::thread::Builder::new().name("component".to_owned());
            receiver.spawn_scoped(scope, receive).map_err(|error| error.to_string())?;
            let obeyed = self.obey_received(queued, &|sequence| {
                answered(&|answer| answer.applied = sequence, true);
            });
            // Nobody takes what is still received.
            let _ = stream.shutdown(Shutdown::Both);
            obeyed
        })
    }

    fn obey_received(&self, queued: Receiver<Vec<u8>>, applied: &dyn Fn(u64)) -> Result<(), String> {
        for buffer in queued {
            if self.shared.is_off.load(Ordering::Acquire) {
                return Ok(());
            }
            let message = Incoming::read(&buffer).map_err(|error| error.to_string())?;
            self.carry_out(&message)?;
            self.shared.applied.store(message.sequence(), Ordering::Release);
            applied(message.sequence());
            self.threads.cpu().count();
        }
        Ok(())
    }
}

/// An answer that cannot be said is missed by the one that waits for it.
fn say(mut stream: &TcpStream, answer: Answer) {
    let _ = stream.write_all(&answer.to_bytes());
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use disk::{Attributes, Flush, NewInode, ROOT, Scope};

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;
    const SECTORS: usize = 64;
    const SETTINGS: ComponentSettings = ComponentSettings {
        user: 0,
        flush: false,
        metadata_on_own_device: false,
        timeout: Duration::from_secs(5),
        answers_receipt: false,
        power_offs: PowerOffs { torn_by: None, keep_unsynced: false },
    };

    /// What is there after a power-off of a file that had been synced and was then written over, sector by sector.
    fn after_power_off(torn_by: Option<u64>) -> Option<(Lost, Vec<u8>, bool)> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = host_place::here("a")?;
        let settings =
            ComponentSettings { power_offs: PowerOffs { torn_by, keep_unsynced: false }, ..SETTINGS };
        // Whichever port is free: nobody connects.
        let component = Component::make(folder.path(), (HostId::FIRST, place, 0), settings, Arc::default())
            .expect("made");
        let volume = &component.volume;
        let attributes = Attributes::new(0o600, 0, 0, NOW);
        let file = volume.make(ROOT, OsStr::new("f"), &NewInode::File, attributes).expect("made").inode;
        let bytes = SECTORS * disk::SECTOR_BYTES as usize;
        volume.write(file, 0, &vec![1; bytes], None, false, NOW).expect("written");
        volume.sync(file, Scope::All).expect("synced");
        volume.write(file, 0, &vec![2; bytes], None, false, NOW).expect("written");
        let mut dirt = Dirt::new();
        let lost = component.power_off(&mut dirt).expect("off");
        let mut content = vec![0; bytes];
        volume.read(file, 0, &mut content).expect("read");
        let sectors = content.chunks(disk::SECTOR_BYTES as usize).map(|sector| sector[0]).collect();
        Some((lost, sectors, dirt.is_empty()))
    }

    #[test]
    fn a_thread_of_a_component_that_is_stuck_is_work_that_does_not_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(place) = host_place::here("stuck") else {
            return eprintln!(
                "skipped: a_thread_of_a_component_that_is_stuck: no network namespace may be entered"
            );
        };
        let threads = Arc::<Threads>::default();
        let port = own_port(1);
        let component =
            Component::make(folder.path(), (HostId::FIRST, place, port), SETTINGS, threads.clone())
                .expect("made");
        let shared = component.server().as_ref().expect("on").shared.clone();
        assert_eq!(
            threads.under_way().longest(),
            Duration::ZERO,
            "one that has nothing to do works on nothing"
        );
        let deadlock = shared.connection();
        let _stream = TcpStream::connect(component.address()).expect("connected");
        // Longer than what any work takes.
        while threads.under_way().longest() < Duration::from_millis(100) {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(deadlock);
        while threads.under_way().longest() > Duration::ZERO {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Between those of volumes and those that the kernel gives to whoever connects.
    fn own_port(test: u32) -> u16 {
        25_000 + ((std::process::id() * 2 + test) % 7_000) as u16
    }

    #[test]
    fn a_component_on_a_slow_disk_gives_signs_while_it_works_through_what_has_arrived() {
        const FRAMES: usize = 24;
        let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let Some(place) = host_place::here("slow") else {
            return eprintln!("skipped: a_component_on_a_slow_disk: no network namespace may be entered");
        };
        let timeout = Duration::from_millis(200);
        let settings = ComponentSettings { timeout, ..SETTINGS };
        let port = own_port(0);
        let component = Component::make(
            folders[0].path(),
            (HostId::FIRST, place.clone(), port),
            settings,
            Arc::default(),
        )
        .expect("made");
        let store =
            OnDisk::new(FolderStore::new(folders[1].path(), Flush::Pretended), disk::Disk::alone("d"));
        let serving = Arc::new(disk::Volume::new(store, Limits::default(), 0, 0, NOW));
        let acknowledge = disk::mirror::Acknowledge::Async;
        let policy = disk::mirror::Policy { acknowledge, buffer_bytes: 1 << 20, timeout };
        let mirror = disk::mirror::Mirror::new(serving, policy, vec![Dirt::new()], 0, None);
        let connection = mirror.connect(0, &Dirt::new()).expect("it serves");
        let first = Answer { received: 1, applied: 1 };
        let mut bytes = Vec::new();
        let mut take = || match mirror.next(0, connection, Duration::ZERO) {
            disk::mirror::Next::Send(frame) => bytes.extend_from_slice(&frame),
            other => panic!("{other:?}"),
        };
        take();
        mirror.answered(0, connection, first);
        for number in 0..FRAMES {
            let name = format!("f{number}");
            let attributes = Attributes::new(0o600, 0, 0, NOW);
            disk::Files::make(&mirror, ROOT, OsStr::new(&name), &NewInode::File, attributes).expect("made");
            take();
        }
        let _slow = place.disk.impose(disk::Defect::Slow(Duration::from_millis(20)));
        let mut stream = TcpStream::connect(component.address()).expect("connected");
        stream.write_all(&bytes).expect("sent");
        let mut signs = 0;
        let mut answer = [0; Answer::BYTES];
        while std::io::Read::read_exact(&mut stream, &mut answer).is_ok() {
            signs += 1;
            if Answer::from_bytes(answer).applied > FRAMES as u64 {
                break;
            }
        }
        assert!(signs >= 5, "{signs} signs of {FRAMES} messages");
    }

    #[test]
    fn a_component_that_loses_power_tears_its_last_write_by_its_own_chance_and_says_what_differs() {
        let Some((whole, sectors, is_clean)) = after_power_off(None) else {
            return eprintln!(
                "skipped: a_component_that_loses_power_tears: no network namespace may be entered"
            );
        };
        assert_eq!((whole.sectors_survived, sectors, is_clean), (0, vec![1; SECTORS], false));
        let torn = |seed| after_power_off(Some(seed)).expect("as before");
        let (lost, sectors, is_clean) = torn(7);
        let survived = sectors.iter().filter(|sector| **sector == 2).count();
        assert!((10..55).contains(&survived), "{survived}");
        assert_eq!((lost.sectors_survived, is_clean), (survived as u64, false));
        assert_eq!(torn(7).1, sectors);
        assert_ne!(torn(8).1, sectors);
    }
}
