//! Ground for the tests inside a lab: a fabric, places on it, nodes with folders of their own.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fabric::{Fabric, Policy, PortId, Rule};
use lab::protocol::{NODE_USER, NodeSetUp};
use lab::{Attachment, BootPlan, Node, attachment, probe};

/// Long enough for an answer that is to come; silence takes it whole.
const PATIENCE: Duration = Duration::from_millis(400);

/// A lab without a database.
pub struct Ground {
    /// A folder on the machine's disk.
    pub folder: PathBuf,
    /// Whether user numbers above 0 are mapped.
    pub users_mapped: bool,
    /// The network.
    pub fabric: Fabric,
}

/// A place on the network that is nothing but an interface.
pub struct Place {
    /// Its namespace and address.
    pub attachment: Attachment,
    /// Its port.
    pub port: PortId,
}

/// A place's address by its number.
pub fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, number)
}

impl Ground {
    /// Joins a place to the network.
    pub fn place(&self, name: &str, number: u8) -> Place {
        let attachment = Attachment::make(address(number)).expect("an attachment");
        let tun = attachment.tun.try_clone().expect("a second descriptor");
        let port = self.attach(name, address(number), tun);
        Place { attachment, port }
    }

    /// Joins an interface to the network.
    pub fn attach(&self, name: &str, address: Ipv4Addr, tun: OwnedFd) -> PortId {
        let path = name.split('/').map(str::to_owned).collect();
        self.fabric.attach(path, vec![IpAddr::V4(address)], tun).expect("a port")
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
            sockets: folder("sockets"),
            logs: folder("logs"),
            programs: None,
            names: BTreeMap::from([(name.to_owned(), address(number).to_string())]),
            users_mapped: self.users_mapped,
        };
        let plan = BootPlan { name: name.to_owned(), address: address(number), set_up };
        let (node, tun) = Node::boot(&plan).expect("a node");
        let port = self.attach(&format!("here/{name}"), address(number), tun);
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
pub fn round_trip(from: &Place, to: Ipv4Addr) -> Option<Duration> {
    at(from, || probe::echo(to, Duration::from_millis(50), PATIENCE).expect("an echo request"))
}

/// Sends `bytes` from one place to another over TCP; returns what arrived.
pub fn transfer(from: &Place, to: &Place, bytes: &[u8]) -> Vec<u8> {
    let listener = at(to, || TcpListener::bind((to.attachment.address, 0)).expect("a listener"));
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
