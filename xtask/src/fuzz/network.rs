//! Any sequence of frames, rules and moments through the network: nothing may panic, every packet must be accounted
//! for, and none may come back to where it was sent. Knows nothing of TUN interfaces or threads.
use std::net::IpAddr;
use std::time::Duration;

use fabric::network::Network;
use fabric::packet::{FRAME_BYTES_MAX, VIRTIO_HEADER_BYTES};
use fabric::{Block, Distribution, Jitter, Policy, PortId, Probability, QueueLimit, Rule};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::bytes::Bytes;

fn chance(bytes: &mut Bytes<'_>) -> Option<Probability> {
    Probability::new(f64::from(bytes.byte()) / 255.0)
}

fn rule(bytes: &mut Bytes<'_>) -> Rule {
    let mut rule = Rule::default();
    let asked = bytes.byte();
    if asked & 1 != 0 {
        (rule.loss, rule.duplicate) = (chance(bytes), chance(bytes));
    }
    if asked & 2 != 0 {
        (rule.reorder, rule.corrupt) = (chance(bytes), chance(bytes));
    }
    if asked & 4 != 0 {
        let shapes =
            [Distribution::Uniform, Distribution::Normal, Distribution::Exponential, Distribution::Pareto];
        let distribution = shapes[usize::from(bytes.byte()) % shapes.len()];
        rule.delay = Some(Duration::from_nanos(bytes.number()));
        rule.jitter = Some(Jitter { spread: Duration::from_nanos(bytes.number()), distribution });
    }
    if asked & 8 != 0 {
        rule.rate_bits_per_s = Some(bytes.number());
    }
    if asked & 16 != 0 {
        rule.queue_limit = Some(match bytes.byte() & 1 {
            0 => QueueLimit::Packets(bytes.number()),
            _ => QueueLimit::Bytes(bytes.number()),
        });
    }
    if asked & 32 != 0 {
        rule.mtu_bytes = Some(u32::from(bytes.byte()) * 8);
    }
    if asked & 64 != 0 {
        rule.block = Some([Block::Open, Block::BlackHole, Block::Reset][usize::from(bytes.byte()) % 3]);
    }
    rule
}

/// A frame of the fuzzer's bytes; as a rule with addresses that lead somewhere.
fn frame(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let length = usize::from(bytes.byte()) * 4 + usize::from(bytes.byte());
    let mut frame: Vec<u8> = (0..length).map(|_| bytes.byte()).collect();
    let packet = frame.get_mut(VIRTIO_HEADER_BYTES..).unwrap_or_default();
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]),
        Some(6) if packet.len() >= 40 => {
            packet[8..40].fill(0);
            (packet[8], packet[23], packet[24], packet[39]) = (0xfd, 1, 0xfd, 2);
        }
        _ => {}
    }
    frame
}

fn send(network: &mut Network, from: PortId, frame: Vec<u8>, now_ns: u64, random: &mut ChaCha8Rng) {
    let length = frame.len();
    let mut buffer = frame;
    buffer.resize(FRAME_BYTES_MAX, 0);
    if let Some(sending) = network.take(from, &mut buffer, length, now_ns, random) {
        assert_ne!(sending.to, from);
        network.counters.delivered_packets += sending.wire.packets;
    }
}

pub(super) fn one(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let mut network = Network::default();
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(bytes.byte()));
    let ports: Vec<PortId> = (1..3u8)
        .map(|last| {
            let v6 = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)]);
            network.attach(vec![last.to_string()], vec![IpAddr::from([10, 0, 0, last]), v6])
        })
        .collect();
    let mut now_ns = 0u64;
    let mut imposed = Vec::new();
    while !bytes.is_empty() {
        match bytes.byte() % 8 {
            0 => network.set_policy(Policy { rules: vec![rule(&mut bytes)], links: Vec::new() }),
            1 => imposed.extend(network.impose(vec![rule(&mut bytes)], now_ns)),
            2 => network.lift(&std::mem::take(&mut imposed), now_ns),
            3 => now_ns = now_ns.saturating_add(bytes.number()),
            4 => {
                while let Some(arrived) = network.arrived(now_ns) {
                    assert!(arrived.arrives_ns <= now_ns);
                    network.counters.delivered_packets += arrived.sending.wire.packets;
                }
            }
            _ => send(&mut network, ports[0], frame(&mut bytes), now_ns, &mut random),
        }
    }
    while let Some(arrived) = network.arrived(u64::MAX) {
        network.counters.delivered_packets += arrived.sending.wire.packets;
    }
    assert_eq!(network.counters.begun_packets(), network.counters.ended_packets());
}
