//! One story for each fate a packet can meet in the network, and how often chance strikes.

use std::net::IpAddr;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::chance::{Distribution, Jitter, Probability};
use crate::network::Network;
use crate::packet::tests::{make_segmented, tcp, udp};
use crate::packet::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, VIRTIO_HEADER_BYTES, Version, layout};
use crate::policy::{Block, Policy, QueueLimit, Rule, SharedLink, Span};
use crate::queue::Travelling;
use crate::router::PortId;
use crate::segment::tests::checksums_are_right;

struct Story {
    network: Network,
    random: ChaCha8Rng,
    one: PortId,
    two: PortId,
}

impl Story {
    /// Ports 1 in a/1 and 2 in b/1, with addresses of both versions, under one rule from everywhere to everywhere.
    fn with(rule: Rule) -> Story {
        let mut network = Network::default();
        let mut attach = |place: &str, last: u8| {
            let v6 = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)]);
            network.attach(crate::policy::tests::path(place), vec![IpAddr::from([10, 0, 0, last]), v6])
        };
        let (one, two) = (attach("a/1", 1), attach("b/1", 2));
        network.set_policy(Policy { rules: vec![rule], links: Vec::new() });
        Story { network, random: ChaCha8Rng::seed_from_u64(7), one, two }
    }

    /// Sends from 1; whether it arrived at once.
    fn send(&mut self, mut frame: Vec<u8>, now_ns: u64) -> bool {
        let length = frame.len();
        let sending = self.network.take(self.one, &mut frame, length, now_ns, &mut self.random);
        sending.is_some_and(|sending| sending.to == self.two)
    }

    fn rest(&mut self) -> Vec<Travelling> {
        std::iter::from_fn(|| self.network.arrived(u64::MAX)).collect()
    }
}

fn probability(value: f64) -> Option<Probability> {
    Probability::new(value)
}

/// The share of lost packets, each frame carrying so many.
fn loss_measured(asked: f64, packets_a_frame: usize) -> f64 {
    let mut story = Story::with(Rule { loss: probability(asked), ..Rule::default() });
    let packets = 100_000;
    let mut arrived = 0;
    for _ in 0..packets / packets_a_frame {
        let payload = vec![0; 100 * packets_a_frame];
        story.send(make_segmented(tcp(Version::V4, 1, 2, &payload), 100), 0);
        arrived += story.rest().len();
    }
    assert_eq!(story.network.counters.lost_packets + arrived as u64, packets as u64);
    1.0 - arrived as f64 / packets as f64
}

#[test]
fn loss_is_as_asked_whether_packets_come_one_by_one_or_in_segmented_frames() {
    for asked in [0.01, 0.1f64] {
        // Four standard deviations of the binomial distribution.
        let bound = 4.0 * (asked * (1.0 - asked) / 100_000.0).sqrt();
        for packets_a_frame in [1, 40] {
            let measured = loss_measured(asked, packets_a_frame);
            assert!((measured - asked).abs() < bound, "{packets_a_frame} a frame: {measured} for {asked}");
        }
        // What would be measured if frames were lost whole is what this test must notice.
        let as_frames = loss_measured(1.0 - (1.0 - asked).powi(2), 40);
        assert!((as_frames - asked).abs() > bound, "{as_frames} taken for {asked}");
    }
}

#[test]
fn a_frame_without_a_fate_of_its_packets_stays_whole() {
    let mut story = Story::with(Rule { delay: Some(Duration::from_millis(1)), ..Rule::default() });
    let frame = make_segmented(tcp(Version::V4, 1, 2, &[0; 60_000]), 1448);
    story.send(frame.clone(), 5);
    let arrived = story.rest();
    assert_eq!(arrived.len(), 1);
    assert_eq!((arrived[0].arrives_ns, &arrived[0].frame), (1_000_005, &frame));
}

#[test]
fn a_frame_that_would_be_felt_as_a_burst_is_split() {
    let rule = |rate| Rule { rate_bits_per_s: Some(rate), ..Rule::default() };
    for (rate, frames) in [(10_000_000_000, 1), (10_000_000, 42)] {
        let mut story = Story::with(rule(rate));
        story.send(make_segmented(tcp(Version::V4, 1, 2, &[0; 60_000]), 1448), 0);
        let arrived = story.rest();
        assert_eq!(arrived.len(), frames, "{rate} bit/s");
        let last = arrived.last().expect("one at least");
        assert_eq!(last.arrives_ns, (60_000 + 42 * 40) * 8 * 1_000_000_000 / rate);
    }
}

#[test]
fn of_many_small_packets_in_one_frame_a_queue_of_packets_takes_as_many_as_it_has_room_for() {
    let (rate, queue) = (Some(10_000_000_000), Some(QueueLimit::Packets(40)));
    let mut story = Story::with(Rule { rate_bits_per_s: rate, queue_limit: queue, ..Rule::default() });
    story.send(udp(Version::V4, 1, 2, b"on the wire"), 0);
    story.send(make_segmented(tcp(Version::V4, 1, 2, &[0; 10_000]), 100), 0);
    assert_eq!((story.rest().len(), story.network.counters.queue_full_packets), (41, 60));
}

#[test]
fn a_duplicated_packet_arrives_twice_and_a_corrupted_one_is_noticed() {
    let mut story = Story::with(Rule {
        duplicate: Some(Probability::ALWAYS),
        corrupt: probability(0.5),
        ..Rule::default()
    });
    for _ in 0..1000 {
        story.send(udp(Version::V6, 1, 2, b"hello"), 0);
    }
    let arrived = story.rest();
    assert_eq!(arrived.len(), 2000);
    let wrong = arrived.iter().filter(|travelling| !checksums_are_right(&travelling.frame)).count();
    assert_eq!(wrong as u64, story.network.counters.corrupted_packets);
    assert!((900..1100).contains(&wrong), "{wrong}");
}

#[test]
fn an_overtaking_packet_takes_no_delay() {
    let delay = Some(Duration::from_millis(1));
    let mut story = Story::with(Rule { delay, reorder: probability(0.25), ..Rule::default() });
    for _ in 0..4000 {
        story.send(udp(Version::V4, 1, 2, b"hello"), 0);
    }
    let arrivals: Vec<u64> = story.rest().iter().map(|travelling| travelling.arrives_ns).collect();
    let overtook = arrivals.iter().filter(|arrives_ns| **arrives_ns == 0).count();
    assert!((880..1120).contains(&overtook), "{overtook}");
    assert!(arrivals.iter().all(|arrives_ns| [0, 1_000_000].contains(arrives_ns)));
}

#[test]
fn every_packet_of_a_segmented_frame_draws_its_own_jitter() {
    let jitter = Jitter { spread: Duration::from_millis(1), distribution: Distribution::Uniform };
    let mut story =
        Story::with(Rule { delay: Some(Duration::from_millis(5)), jitter: Some(jitter), ..Rule::default() });
    story.send(make_segmented(tcp(Version::V4, 1, 2, &[0; 14_480]), 1448), 0);
    let mut arrivals: Vec<u64> = story.rest().iter().map(|travelling| travelling.arrives_ns).collect();
    assert!(arrivals.iter().all(|arrives_ns| (4_000_000..=6_000_000).contains(arrives_ns)));
    arrivals.dedup();
    assert_eq!(arrivals.len(), 10);
}

#[test]
fn a_black_hole_is_silent_and_a_reset_is_heard_by_the_sender() {
    let mut story = Story::with(Rule { block: Some(Block::BlackHole), ..Rule::default() });
    assert!(!story.send(tcp(Version::V4, 1, 2, b"hello"), 0));
    assert!(story.rest().is_empty());
    let mut story = Story::with(Rule { block: Some(Block::Reset), ..Rule::default() });
    story.send(make_segmented(tcp(Version::V6, 1, 2, &[0; 14_480]), 1448), 3);
    let answers = story.rest();
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].sending.to, answers[0].arrives_ns), (story.one, 3));
    assert!(checksums_are_right(&answers[0].frame));
    assert_eq!(story.network.counters.blocked_packets, 10);
}

#[test]
fn a_packet_too_big_for_its_path_is_answered_and_a_smaller_one_passes() {
    let mut story = Story::with(Rule { mtu_bytes: Some(1400), ..Rule::default() });
    for (version, protocol) in [(Version::V4, PROTOCOL_ICMP), (Version::V6, PROTOCOL_ICMPV6)] {
        story.send(make_segmented(tcp(version, 1, 2, &[0; 14_480]), 1448), 0);
        let answers = story.rest();
        assert_eq!(answers.len(), 10, "one for each packet");
        let packet = &answers[0].frame[VIRTIO_HEADER_BYTES..];
        assert_eq!(layout(packet).expect("a layout").protocol, protocol);
        assert_eq!(answers[0].sending.to, story.one);
        assert!(story.send(make_segmented(tcp(version, 1, 2, &[0; 13_000]), 1300), 0), "fits as it is");
    }
}

#[test]
fn a_packet_that_may_be_fragmented_arrives_in_pieces() {
    let mut story = Story::with(Rule { mtu_bytes: Some(600), ..Rule::default() });
    let mut frame = udp(Version::V4, 1, 2, &[0; 1000]);
    frame[VIRTIO_HEADER_BYTES + 6] = 0;
    story.send(frame, 0);
    let lengths: Vec<usize> =
        story.rest().iter().map(|piece| piece.frame.len() - VIRTIO_HEADER_BYTES).collect();
    assert_eq!(lengths, [596, 452]);
}

#[test]
fn links_in_a_row_each_take_their_time_and_do_not_hold_up_those_who_cross_only_one() {
    let mut story = Story::with(Rule::default());
    let other = story.network.attach(vec!["a".into(), "2".into()], vec![IpAddr::from([10, 0, 0, 3])]);
    let link = |name: &str, span, rate| SharedLink {
        name: name.to_owned(),
        span,
        rate_bits_per_s: Some(rate),
        queue_limit: Some(QueueLimit::Packets(10)),
        is_network_card: false,
    };
    let uplink = link("uplink", Span::OutOf(vec!["a".into(), "1".into()]), 8_000);
    let edge = link("edge", Span::OutOf(vec!["a".into()]), 8_000_000);
    story.network.set_policy(Policy { rules: Vec::new(), links: vec![edge, uplink] });
    // 100 bytes: 100 ms on the uplink, 0.1 ms on the edge.
    story.send(udp(Version::V4, 1, 2, &[0; 72]), 0);
    let mut frame = udp(Version::V4, 3, 2, &[0; 72]);
    let length = frame.len();
    let _ = story.network.take(other, &mut frame, length, 1_000_000, &mut story.random);
    let arrivals: Vec<(PortId, u64)> =
        story.rest().iter().map(|travelling| (travelling.sending.from, travelling.arrives_ns)).collect();
    assert_eq!(arrivals, [(other, 1_100_000), (story.one, 100_100_000)]);
    let counters = story.network.link_counters(u64::MAX);
    assert_eq!((counters["edge"].taken_packets, counters["uplink"].taken_bytes), (2, 100));
}

/// A link of 100 bytes in 100 ms.
fn slow(name: &str, span: Span) -> SharedLink {
    SharedLink {
        name: name.to_owned(),
        span,
        rate_bits_per_s: Some(8_000),
        queue_limit: None,
        is_network_card: false,
    }
}

#[test]
fn what_a_host_has_not_sent_when_it_loses_its_power_goes_with_it_and_what_is_on_its_way_arrives() {
    for (is_network_card, arrive) in [(true, 1), (false, 3)] {
        let far = Rule { delay: Some(Duration::from_secs(1)), ..Rule::default() };
        let mut story = Story::with(Rule::default());
        // The port is a node's on a host.
        let link = SharedLink { is_network_card, ..slow("link", Span::OutOf(vec!["a".into()])) };
        story.network.set_policy(Policy { rules: vec![far], links: vec![link] });
        for _ in 0..3 {
            story.send(udp(Version::V4, 1, 2, &[0; 72]), 0);
        }
        story.network.detach(story.one, 150_000_000);
        assert_eq!(story.rest().len(), arrive);
        assert_eq!(story.network.counters.begun_packets(), 3);
    }
}

#[test]
fn what_waits_before_a_link_when_its_way_is_cut_goes_no_further() {
    let mut story = Story::with(Rule::default());
    let links =
        vec![slow("uplink", Span::OutOf(vec!["a".into()])), slow("downlink", Span::Into(vec!["b".into()]))];
    story.network.set_policy(Policy { rules: Vec::new(), links });
    for _ in 0..3 {
        story.send(udp(Version::V4, 1, 2, &[0; 72]), 0);
    }
    let first = story.network.arrived(200_000_000).expect("the first");
    story.network.recycle(first.frame);
    story.network.impose(vec![Rule { block: Some(Block::BlackHole), ..Rule::default() }], 200_000_000);
    assert_eq!((story.rest().len(), story.network.counters.blocked_packets), (0, 2));
}

#[test]
fn what_waits_before_a_link_that_is_lifted_goes_on_at_once_over_the_links_that_are_left() {
    let mut story = Story::with(Rule::default());
    let links = vec![SharedLink {
        rate_bits_per_s: Some(8_000_000),
        ..slow("downlink", Span::Into(vec!["b".into()]))
    }];
    story.network.set_policy(Policy { rules: Vec::new(), links });
    let ids = story.network.impose(vec![Rule { rate_bits_per_s: Some(8_000), ..Rule::default() }], 0);
    for _ in 0..4 {
        story.send(udp(Version::V4, 1, 2, &[0; 72]), 0);
    }
    story.network.lift(&ids, 250_000_000);
    let arrivals: Vec<u64> = story.rest().iter().map(|travelling| travelling.arrives_ns).collect();
    // Two had left it before; the others come to the downlink together.
    assert_eq!(arrivals, [100_100_000, 200_100_000, 250_100_000, 250_200_000]);
    assert_eq!(story.network.link_counters(u64::MAX)["downlink"].taken_packets, 4);
}

#[test]
fn the_same_seed_gives_the_same_fates() {
    let fates = || {
        let mut story =
            Story::with(Rule { loss: probability(0.3), duplicate: probability(0.3), ..Rule::default() });
        for _ in 0..200 {
            story.send(udp(Version::V4, 1, 2, b"hello"), 0);
        }
        story.network.counters
    };
    assert_eq!(fates(), fates());
}

#[test]
fn what_becomes_of_the_packets_of_a_pair_is_counted_from_when_it_is_asked_until_it_is_ended() {
    let mut story = Story::with(Rule { block: Some(Block::BlackHole), ..Rule::default() });
    let there = (vec!["a".to_owned()], vec!["b".to_owned()]);
    let back = (there.1.clone(), there.0.clone());
    story.send(udp(Version::V4, 1, 2, b"hello"), 0);
    let numbers = story.network.count(vec![there.clone(), back]);
    story.send(make_segmented(tcp(Version::V4, 1, 2, &[0; 14_480]), 1448), 0);
    let counted = story.network.counted(&numbers);
    assert_eq!((counted[0].packets, counted[0].blocked_packets), (10, 10));
    assert_eq!((counted[0].passed_packets(), counted[1].packets), (0, 0));
    let leaky = Rule { loss: probability(0.5), ..Rule::default() };
    story.network.set_policy(Policy { rules: vec![leaky], links: Vec::new() });
    for _ in 0..1000 {
        story.send(udp(Version::V4, 1, 2, b"hello"), 0);
    }
    let counted = story.network.counted(&numbers)[0];
    assert_eq!(counted.packets, 1010);
    assert_eq!(counted.passed_packets() as usize, story.rest().len());
    story.network.end_counts(&numbers);
    assert_eq!(story.network.counted(&numbers)[0].packets, 0);
}

#[test]
fn of_a_pair_chance_is_counted_against_the_packets_that_it_could_meet() {
    let mut story =
        Story::with(Rule { mtu_bytes: Some(600), duplicate: Some(Probability::ALWAYS), ..Rule::default() });
    let numbers = story.network.count(vec![(vec!["a".to_owned()], vec!["b".to_owned()])]);
    // Too big and whole; two fragments; small.
    story.send(tcp(Version::V4, 1, 2, &[0; 1000]), 0);
    let mut may_be_split = udp(Version::V4, 1, 2, &[0; 1000]);
    may_be_split[VIRTIO_HEADER_BYTES + 6] = 0;
    story.send(may_be_split, 0);
    story.send(udp(Version::V4, 1, 2, b"hello"), 0);
    let counted = story.network.counted(&numbers)[0];
    assert_eq!((counted.packets, counted.too_big_packets, counted.fragment_packets), (3, 1, 1));
    assert_eq!((counted.chanced_packets(), counted.passed_packets(), counted.duplicated_packets), (3, 3, 3));
    let to = story.two;
    let copies = story.rest().iter().filter(|travelling| travelling.sending.to == to).count();
    assert_eq!(copies, 6);
}
