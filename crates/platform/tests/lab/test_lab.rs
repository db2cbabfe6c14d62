//! Ground for the tests inside a lab: a fabric, places on it, nodes with folders of their own.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fabric::{Block, Bypass, Fabric, Policy, PortId, Rule, RuleGuard};
use lab::protocol::{NODE_USER, NodeSetUp, ShownPrograms, WholeMachine};
use lab::{
    Addresses, Attachment, BootPlan, Family, KernelEnd, Node, NodeClock, RoutingNamespace, attachment, probe,
};

/// Long enough for an answer that is to come; silence takes it whole.
const PATIENCE: Duration = Duration::from_millis(400);

/// A lab without a database.
pub struct TestLab {
    /// A folder on the machine's disk.
    pub folder: PathBuf,
    /// Whether user numbers above 0 are mapped.
    pub users_mapped: bool,
    pub fabric: Fabric,
}

/// A place on the network that is nothing but an interface.
pub struct Place {
    /// Its namespace and address.
    pub attachment: Attachment,
    pub port: PortId,
}

/// A place's end of the kernel's own path, as the fabric's way past itself.
#[derive(Debug)]
pub struct PastTheFabric(pub KernelEnd);

impl Bypass for PastTheFabric {
    fn open(&mut self, to: &[IpAddr]) -> io::Result<()> {
        self.0.open(to)
    }

    fn close(&mut self, to: &[IpAddr]) -> io::Result<()> {
        self.0.close(to)
    }

    fn shut(&mut self) -> io::Result<()> {
        self.0.shut()
    }
}

/// A place's IPv4 address by its number.
pub fn address(number: u8) -> IpAddr {
    addresses(number).in_family(Family::V4)
}

/// Both addresses of a place by its number.
pub fn addresses(number: u8) -> Addresses {
    Addresses::of(Ipv4Addr::new(10, 1, 0, number))
}

/// The families that can be tested here; says so where one cannot.
pub fn families(test: &str) -> Vec<Family> {
    if lab::has_ipv6() {
        return vec![Family::V4, Family::V6];
    }
    eprintln!("skipped: {test}: over IPv6: the kernel knows none");
    vec![Family::V4]
}

impl TestLab {
    /// Joins a place to the network.
    pub fn place(&self, name: &str, number: u8) -> Place {
        let attachment = Attachment::make(addresses(number)).expect("an attachment");
        let tun = attachment.tun.try_clone().expect("a second descriptor");
        let port = self.attach(name, number, tun);
        Place { attachment, port }
    }

    /// Joins a place to the network and to the kernel's own path.
    pub fn place_past(&self, routing: &RoutingNamespace, name: &str, number: u8) -> (Place, KernelEnd) {
        let attachment = Attachment::make(addresses(number)).expect("an attachment");
        let end = routing.join(&attachment.namespace, addresses(number)).expect("the kernel's own path");
        let port = self.attach_past(name, &attachment, &end);
        (Place { attachment, port }, end)
    }

    /// Joins a place that is joined to the kernel's own path to the network.
    pub fn attach_past(&self, name: &str, attachment: &Attachment, end: &KernelEnd) -> PortId {
        let tun = attachment.tun.try_clone().expect("a second descriptor");
        let path = name.split('/').map(str::to_owned).collect();
        let addresses = attachment.addresses.all(Family::V4);
        let way_past = Box::new(PastTheFabric(end.clone()));
        self.fabric.attach_with_bypass(path, addresses, tun, way_past).expect("a port")
    }

    /// Joins an interface to the network.
    pub fn attach(&self, name: &str, number: u8, tun: OwnedFd) -> PortId {
        let path = name.split('/').map(str::to_owned).collect();
        self.fabric.attach(path, addresses(number).all(Family::V4), tun).expect("a port")
    }

    /// Lets nothing through from one place to another until the guard is dropped.
    pub fn cut(&self, from: &str, to: &str) -> RuleGuard {
        let rule = Rule {
            from: vec![from.to_owned()],
            to: vec![to.to_owned()],
            block: Some(Block::BlackHole),
            ..Rule::default()
        };
        self.fabric.impose(rule).expect("a rule")
    }

    /// Lets packets from one place to another take this long, each way as given.
    pub fn delay(&self, delays: &[(&str, &str, Duration)]) {
        let rule = |(from, to, delay): &(&str, &str, Duration)| Rule {
            from: vec![(*from).to_owned()],
            to: vec![(*to).to_owned()],
            delay: Some(*delay),
            ..Rule::default()
        };
        let rules = delays.iter().map(rule).collect();
        self.fabric.set_policy(Policy { rules, ..Policy::default() }).expect("a policy");
    }

    /// Boots a node named `name`, which keeps its volume from boot to boot.
    pub fn boot(&self, name: &str, number: u8) -> (Node, PortId) {
        self.boot_by(name, number, None)
    }

    /// The same with a clock of its own, where one is given.
    pub fn boot_by(&self, name: &str, number: u8, clock: Option<Arc<NodeClock>>) -> (Node, PortId) {
        self.boot_of((name, number), clock, Vec::new(), None)
    }

    /// The same with programs that it is shown.
    pub fn boot_on(&self, name: &str, number: u8, programs: ShownPrograms) -> (Node, PortId) {
        self.boot_of((name, number), None, vec![programs], None)
    }

    /// The same as a whole machine, whose processes are root.
    pub fn boot_whole(&self, name: &str, number: u8, machine: WholeMachine) -> (Node, PortId) {
        self.boot_of((name, number), None, Vec::new(), Some(machine))
    }

    fn boot_of(
        &self,
        (name, number): (&str, u8),
        clock: Option<Arc<NodeClock>>,
        programs: Vec<ShownPrograms>,
        whole_machine: Option<WholeMachine>,
    ) -> (Node, PortId) {
        let folder = |kind: &str| {
            let path = self.folder.join(kind).join(name);
            std::fs::create_dir_all(&path).expect("a folder");
            if self.users_mapped {
                std::os::unix::fs::chown(&path, Some(NODE_USER), Some(NODE_USER)).expect("chown");
            }
            path
        };
        let set_up = NodeSetUp {
            name: name.to_owned(),
            volume: folder("volumes"),
            making: None,
            sockets: folder("sockets"),
            logs: folder("logs"),
            programs,
            clock: clock.as_ref().map(|clock| clock.folder().to_owned()),
            groups: Vec::new(),
            follows_links: true,
            names: BTreeMap::from([(name.to_owned(), addresses(number).all(Family::V4))]),
            users_mapped: self.users_mapped,
            whole_machine,
        };
        let plan = BootPlan { name: name.to_owned(), addresses: addresses(number), set_up, clock };
        let (node, tun) = Node::boot(&plan).expect("a node");
        let port = self.attach(&format!("here/{name}"), number, tun);
        (node, port)
    }
}

/// Runs a shell script in a node and returns what it printed.
pub fn shell(node: &Node, script: &str) -> String {
    let arguments = ["-c".to_owned(), script.to_owned()];
    let finished = node.run(Path::new("/bin/sh"), &arguments, &environment()).expect("a shell");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stdout
}

/// Starts a shell script in a node and leaves it running.
pub fn leave_running(node: &Node, script: &str) {
    let arguments = ["-c".to_owned(), script.to_owned()];
    node.spawn(Path::new("/bin/sh"), &arguments, &environment(), "script.log").expect("a shell");
}

fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())])
}

/// Does `work` on a thread inside a place.
pub fn at<T: Send>(place: &Place, work: impl FnOnce() -> T + Send) -> T {
    attachment::on_own_thread(|| {
        attachment::enter(&place.attachment.namespace).expect("enter the place");
        work()
    })
    .expect("a thread")
}

/// The round trip from a place to an address; none for silence.
pub fn round_trip(from: &Place, to: IpAddr) -> Option<Duration> {
    at(from, || probe::echo(to, Duration::from_millis(50), PATIENCE).expect("an echo request"))
}

/// Whether one of a few datagrams from one place arrives at another.
pub fn datagram_arrives(from: &Place, to: &Place, family: Family) -> bool {
    let here = from.attachment.addresses.in_family(family);
    let socket = at(to, || {
        UdpSocket::bind((to.attachment.addresses.in_family(family), 0)).expect("a socket to receive at")
    });
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let target = socket.local_addr().expect("its address");
    at(from, || {
        let sender = UdpSocket::bind((here, 0)).expect("a socket to send from");
        for _ in 0..3 {
            sender.send_to(b"knock", target).expect("sent");
        }
    });
    matches!(socket.recv_from(&mut [0; 16]), Ok((5, sender)) if sender.ip() == here)
}

/// Whether a TCP connection from one place to another comes about.
pub fn connects(from: &Place, to: &Place, family: Family) -> bool {
    let listener = listen(to, family);
    let target = listener.local_addr().expect("its address");
    at(from, || TcpStream::connect_timeout(&target, PATIENCE).is_ok())
}

fn listen(place: &Place, family: Family) -> TcpListener {
    let address = place.attachment.addresses.in_family(family);
    at(place, || TcpListener::bind((address, 0)).expect("a listener"))
}

/// Sends `bytes` from one place to another over TCP; returns what arrived.
pub fn transfer(from: &Place, to: &Place, family: Family, bytes: &[u8]) -> Vec<u8> {
    let listener = listen(to, family);
    let target = listener.local_addr().expect("its address");
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut received = Vec::new();
            listener.accept().expect("a connection").0.read_to_end(&mut received).expect("bytes");
            received
        });
        at(from, || TcpStream::connect(target).expect("a connection").write_all(bytes).expect("all sent"));
        receiver.join().expect("the receiver")
    })
}
