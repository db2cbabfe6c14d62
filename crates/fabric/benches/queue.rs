//! What a packet on its way costs: a push and a pop of the delay queue at several fillings, and a walk of a small frame
//! through the whole network without its wires. `cargo bench -p fabric` prints it; nothing is asserted.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use fabric::network::Network;
use fabric::packet::VIRTIO_HEADER_BYTES;
use fabric::{Policy, Rule};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const ROUNDS: u64 = 1_000_000;

/// A network with 200 ports, under one rule.
fn network(rule: Rule) -> (Network, Vec<fabric::PortId>) {
    let mut network = Network::default();
    let ports = (0..200u8)
        .map(|last| network.attach(vec!["r".into(), last.to_string()], vec![IpAddr::from([10, 0, 0, last])]))
        .collect();
    network.set_policy(Policy { rules: vec![rule], links: Vec::new() });
    (network, ports)
}

fn frame(from: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![0; VIRTIO_HEADER_BYTES + 60];
    let packet = &mut frame[VIRTIO_HEADER_BYTES..];
    packet[0] = 0x45;
    packet[9] = 6;
    packet[12..20].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    frame
}

/// Nanoseconds a packet through the network, with so many others on their way.
fn through(rule: Rule, travelling: u64, interval_ns: u64) -> f64 {
    let (mut network, ports) = network(rule);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut now_ns = 0;
    let mut buffer = vec![0; fabric::packet::FRAME_BYTES_MAX];
    let mut began = Instant::now();
    for round in 0..ROUNDS + travelling {
        if round == travelling {
            began = Instant::now();
        }
        let (from, to) = ((round % 200) as u8, ((round * 7 + 1) % 200) as u8);
        let frame = frame(from, to);
        buffer[..frame.len()].copy_from_slice(&frame);
        now_ns += interval_ns;
        let _ = network.take(ports[usize::from(from)], &mut buffer, frame.len(), now_ns, &mut random);
        while let Some(arrived) = network.arrived(now_ns) {
            network.recycle(arrived.frame);
        }
    }
    began.elapsed().as_nanos() as f64 / ROUNDS as f64
}

fn main() {
    println!("a small frame through the network, nanoseconds:");
    println!("  at once                      {:7.0}", through(Rule::default(), 0, 100));
    for travelling in [100, 10_000, 1_000_000] {
        let delay = Some(Duration::from_nanos(travelling * 100));
        let ns = through(Rule { delay, ..Rule::default() }, travelling, 100);
        println!("  delayed, {travelling:9} others    {ns:7.0}");
    }
    let rate_bits_per_s = Some(10_000_000_000);
    let ns = through(Rule { rate_bits_per_s, ..Rule::default() }, 0, 100);
    println!("  over a link                  {ns:7.0}");
    let loss = fabric::Probability::new(0.01);
    println!("  with loss                    {:7.0}", through(Rule { loss, ..Rule::default() }, 0, 100));
}
