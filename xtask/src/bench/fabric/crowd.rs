//! Many hosts at once: everybody to everybody, and a thousand made and gone. Lives inside the lab of the bench.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fabric::{Fabric, Options, Rule};
use lab::attachment::on_own_thread;
use nix::sched::{CloneFlags, unshare};

use super::measures::{Reading, reading};
use super::test_places::{Place, fabric_over};

/// Hosts that all speak to all.
const HOSTS: u16 = 200;
/// Packets from each to each.
const PACKETS_A_PAIR: u16 = 5;
/// Hosts that are made to be gone.
const MANY_HOSTS: u16 = 1000;
/// Long enough for a packet on its way, and for the kernel to take namespaces apart.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many network namespaces this lab and those within may have, and who may say so.
const NAMESPACES_MAX: &str = "/proc/sys/user/max_net_namespaces";

/// Every host to every other: the packets that did not arrive.
///
/// # Errors
/// When the lab cannot, or the fabric's own account does not add up.
pub fn all_to_all() -> anyhow::Result<Vec<Reading>> {
    let places = (1..=HOSTS).map(Place::make).collect::<anyhow::Result<Vec<_>>>()?;
    let fabric = fabric_over(&places.iter().collect::<Vec<_>>(), Options::default(), Rule::default())?;
    let sockets = places.iter().map(socket_in).collect::<anyhow::Result<Vec<_>>>()?;
    let addresses: Vec<SocketAddr> = sockets.iter().map(UdpSocket::local_addr).collect::<Result<_, _>>()?;
    let mut arrived = 0;
    for round in 1..usize::from(HOSTS) {
        for (index, socket) in sockets.iter().enumerate() {
            for _ in 0..PACKETS_A_PAIR {
                socket.send_to(&[0; 64], addresses[(index + round) % sockets.len()])?;
            }
        }
        arrived += collect(&sockets, usize::from(HOSTS * PACKETS_A_PAIR))?;
    }
    let sent = usize::from(HOSTS) * usize::from(HOSTS - 1) * usize::from(PACKETS_A_PAIR);
    let counters = fabric.counters()?;
    ensure!(counters.delivered_packets >= arrived as u64, "more arrived than was delivered: {counters:?}");
    Ok(vec![
        reading("fabric", "all-to-all packets", sent as f64),
        reading("fabric", "all-to-all lost packets", (sent - arrived) as f64),
    ])
}

/// A socket stays in the namespace it was made in.
fn socket_in(place: &Place) -> anyhow::Result<UdpSocket> {
    let socket = place.inside(|| Ok(UdpSocket::bind((place.address, 0))?))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Reads until so many datagrams have come to all sockets together, or none has come for a while.
fn collect(sockets: &[UdpSocket], wanted: usize) -> anyhow::Result<usize> {
    const SILENCE: Duration = Duration::from_millis(500);
    let mut arrived = 0;
    let mut last = Instant::now();
    let mut buffer = [0; 128];
    while arrived < wanted && last.elapsed() < SILENCE {
        let before = arrived;
        for socket in sockets {
            loop {
                match socket.recv(&mut buffer) {
                    Ok(_) => arrived += 1,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if arrived > before {
            last = Instant::now();
        } else {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    Ok(arrived)
}

/// A thousand hosts, made one after another and joined to the fabric; and let go.
///
/// Gone is what the kernel no longer counts: with the limit of network namespaces set to one more than the `standing`
/// ones, another can be had again.
///
/// # Errors
/// When the lab cannot, or the kernel does not let go of them.
pub fn thousand_hosts(standing: usize) -> anyhow::Result<Vec<Reading>> {
    // What earlier measurements left dying must not be mistaken for ours.
    wait_until_only(standing)?;
    let fabric = Fabric::start()?;
    let began = Instant::now();
    let mut places = Vec::with_capacity(usize::from(MANY_HOSTS));
    for number in 1..=MANY_HOSTS {
        let place = Place::make(number)?;
        place.join(&fabric)?;
        places.push(place);
    }
    let up = began.elapsed();
    let began = Instant::now();
    drop(places);
    drop(fabric);
    let let_go = began.elapsed();
    wait_until_only(standing)?;
    Ok(vec![
        reading("fabric", "thousand hosts up s", up.as_secs_f64()),
        reading("fabric", "thousand hosts let go s", let_go.as_secs_f64()),
        reading("fabric", "thousand hosts gone s", began.elapsed().as_secs_f64()),
    ])
}

fn wait_until_only(standing: usize) -> anyhow::Result<()> {
    let limit_before = fs::read_to_string(NAMESPACES_MAX).context(NAMESPACES_MAX)?;
    fs::write(NAMESPACES_MAX, (standing + 1).to_string()).context(NAMESPACES_MAX)?;
    let began = Instant::now();
    while !may_have_another()? {
        ensure!(
            began.elapsed() < PATIENCE,
            "after {PATIENCE:?} there are still more than {standing} namespaces"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::write(NAMESPACES_MAX, limit_before.trim()).context(NAMESPACES_MAX)
}

fn may_have_another() -> anyhow::Result<bool> {
    match on_own_thread(|| unshare(CloneFlags::CLONE_NEWNET))? {
        Ok(()) => Ok(true),
        Err(nix::Error::ENOSPC) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
