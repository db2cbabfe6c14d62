//! Every network condition and every two of them, on the network's own core in virtual time: what is imposed is shown, and what
//! is not imposed is never shown, whatever stands beside it.

use std::cell::RefCell;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use fabric::network::Network;
use fabric::packet::VIRTIO_HEADER_BYTES;
use fabric::{PairCounters, Path, PortId, Rule};
use history::Verdict;
use lab::patrol::{Arrival, PAYLOAD_BYTES, Probe};
use lab::stream::{Datagram, Plan};
use paper::RequestedNetwork;
use paper::network::conditions_rule;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use scenario::{Conditions, Distribution, Jitter, Queue};

use crate::datagrams::judge::{Foreseen, SHARE_MIN, Wanted, judge_cut};
use crate::datagrams::properties;
use crate::looks;
use crate::looks::sharing::{Other, Sent};
use crate::observations::Observations;

mod series;

const NAMES: [&str; 9] =
    ["delay", "jitter", "loss", "duplicate", "reorder", "corrupt", "rate", "queue", "mtu"];
const HEADER_BYTES: usize = 28;

/// A condition by its name, laid over others.
fn with(mut conditions: Conditions, name: &str) -> Conditions {
    let ms = Duration::from_millis;
    match name {
        "delay" => conditions.delay = Some(ms(50)),
        "jitter" => conditions.jitter = Some(Jitter { spread: ms(8), distribution: Distribution::Uniform }),
        "loss" => conditions.loss = Some(0.1),
        "duplicate" => conditions.duplicate = Some(0.1),
        "reorder" => conditions.reorder = Some(0.2),
        "corrupt" => conditions.corrupt = Some(0.1),
        "rate" => conditions.rate_bits_per_s = Some(20_000_000),
        "queue" => conditions.queue = Some(Queue::Packets(50)),
        _ => conditions.mtu_bytes = Some(1_400),
    }
    conditions
}

fn all(names: &[&str]) -> Conditions {
    names.iter().fold(Conditions::default(), |conditions, name| with(conditions, name))
}

fn place(name: &str) -> Path {
    vec![name.to_owned()]
}

/// The site's own link: a delay that can be overtaken, and a rate that a queue can stand before.
fn link() -> Rule {
    let conditions = Conditions {
        delay: Some(Duration::from_millis(20)),
        rate_bits_per_s: Some(40_000_000),
        ..Conditions::default()
    };
    conditions_rule(&place("a"), &place("b"), &conditions)
}

fn rule(conditions: &Conditions) -> Rule {
    conditions_rule(&place("a"), &place("b"), conditions)
}

fn site() -> fabric::Policy {
    fabric::Policy { rules: vec![link()], links: Vec::new() }
}

/// A network that does this, and a machine that makes datagrams late.
struct World {
    network: Network,
    random: ChaCha8Rng,
    from: PortId,
    to: PortId,
    now_ns: u64,
    busy: f64,
    /// Somebody else in the same places, who sends a packet of so many bytes every so many nanoseconds.
    others: Option<(PortId, usize, u64)>,
    others_next_ns: u64,
    /// When packets of others arrived, and their bytes.
    others_arrived: Vec<(u64, u64)>,
}

/// One copy: the number of its datagram, when it came, and whether it was flipped.
type Copy = (usize, u64, bool);

impl World {
    fn new(imposed: &Conditions, seed: u64, busy: f64) -> World {
        World::of(site(), &[rule(imposed)], seed, busy)
    }

    fn of(policy: fabric::Policy, imposed: &[Rule], seed: u64, busy: f64) -> World {
        let mut network = Network::default();
        let from = network.attach(place("a"), vec![IpAddr::from([10, 0, 0, 1])]);
        let to = network.attach(place("b"), vec![IpAddr::from([10, 0, 0, 2])]);
        network.set_policy(policy);
        let _ = network.impose(imposed.to_vec(), 0);
        let random = ChaCha8Rng::seed_from_u64(seed);
        let (others, others_next_ns, others_arrived) = (None, 0, Vec::new());
        World { network, random, from, to, now_ns: 0, busy, others, others_next_ns, others_arrived }
    }

    /// From now on somebody else in the same places sends so much in packets of so many bytes.
    fn with_others(mut self, bits_per_s: f64, bytes: usize) -> World {
        let within = |place: &str| vec![place.to_owned(), "others".to_owned()];
        let from = self.network.attach(within("a"), vec![IpAddr::from([10, 0, 0, 3])]);
        let _ = self.network.attach(within("b"), vec![IpAddr::from([10, 0, 0, 4])]);
        let interval_ns = ((bytes + HEADER_BYTES) as f64 * 8e9 / bits_per_s) as u64;
        self.others = Some((from, bytes, interval_ns));
        self
    }

    /// Lets others send until a moment.
    fn others_send(&mut self, until_ns: u64, copies: &mut Vec<Copy>) {
        let Some((from, bytes, interval_ns)) = self.others else { return };
        while self.others_next_ns <= until_ns {
            let now_ns = self.others_next_ns;
            self.collect(now_ns, copies);
            let mut frame = datagram(0, bytes);
            frame[VIRTIO_HEADER_BYTES + 15] = 3;
            frame[VIRTIO_HEADER_BYTES + 19] = 4;
            let length = frame.len();
            if self.network.take(from, &mut frame, length, now_ns, &mut self.random).is_some() {
                self.others_arrived.push((now_ns, (length - VIRTIO_HEADER_BYTES) as u64));
            }
            self.others_next_ns += interval_ns;
        }
    }

    fn lateness_ns(&mut self) -> u64 {
        let late = if self.random.next_u64() % 1000 < (self.busy * 1000.0) as u64 { 8_000_000 } else { 1 };
        40_000 + self.random.next_u64() % 30_000 + self.random.next_u64() % late
    }

    /// Sends so many, at an interval, and waits until nothing is on its way.
    fn send(&mut self, count: usize, interval_ns: u64, bytes: usize) -> (Vec<u64>, Vec<Copy>) {
        let (mut sent, mut copies) = (Vec::new(), Vec::new());
        // Others have sent for a while already.
        self.others_next_ns = self.now_ns;
        self.others_arrived.clear();
        self.now_ns += 100_000_000;
        for number in 0..count {
            self.now_ns += interval_ns.max(1_000);
            self.others_send(self.now_ns, &mut copies);
            self.collect(self.now_ns, &mut copies);
            sent.push(self.now_ns);
            let mut frame = datagram(number, bytes);
            let (length, now_ns) = (frame.len(), self.now_ns);
            if let Some(sending) = self.network.take(self.from, &mut frame, length, now_ns, &mut self.random)
                && sending.to == self.to
            {
                copies.extend(read(&frame[..length], now_ns));
            }
        }
        self.others_send(self.now_ns + 200_000_000, &mut copies);
        self.collect(u64::MAX, &mut copies);
        self.now_ns += 20_000_000_000;
        for copy in &mut copies {
            copy.1 += self.lateness_ns();
        }
        (sent, copies)
    }

    fn collect(&mut self, until_ns: u64, copies: &mut Vec<Copy>) {
        while let Some(travelling) = self.network.arrived(until_ns) {
            if travelling.sending.to == self.to {
                copies.extend(read(&travelling.frame, travelling.arrives_ns));
            } else {
                let bytes = (travelling.frame.len() - VIRTIO_HEADER_BYTES) as u64;
                self.others_arrived.push((travelling.arrives_ns, bytes));
            }
        }
    }

    fn probes(&mut self, count: usize) -> Vec<Probe> {
        let begun = Instant::now();
        let at = |ns: u64| begun + Duration::from_nanos(ns);
        let (sent, copies) = self.send(count, 2_000_000, PAYLOAD_BYTES);
        let mut probes: Vec<Probe> =
            sent.into_iter().map(|ns| Probe { sent: at(ns), arrivals: Vec::new() }).collect();
        for (number, ns, is_corrupted) in copies {
            probes[number].arrivals.push(Arrival { at: at(ns), is_corrupted });
        }
        probes
    }

    /// Whoever reads a stream has its checksums looked at.
    fn stream(&mut self, plan: Plan) -> Sent {
        let begun = Instant::now();
        let at = |ns: u64| begun + Duration::from_nanos(ns);
        let interval_ns = u64::try_from(plan.interval.as_nanos()).expect("short");
        let (sent, copies) = self.send(plan.count as usize, interval_ns, plan.bytes);
        let mut datagrams: Vec<Datagram> =
            sent.into_iter().map(|ns| Datagram { sent: at(ns), arrivals: Vec::new() }).collect();
        for (number, ns, _) in copies.into_iter().filter(|(_, _, is_corrupted)| !is_corrupted) {
            datagrams[number].arrivals.push(at(ns));
        }
        let arrived = std::mem::take(&mut self.others_arrived);
        let other = |(ns, bytes): (u64, u64)| Other { at: at(ns + self.lateness_ns()), packets: 1, bytes };
        Sent { datagrams, others: Some(arrived.into_iter().map(other).collect()) }
    }
}

/// A UDP datagram over IPv4 that must not be fragmented; its content is its number, three times, and zeros.
fn datagram(number: usize, bytes: usize) -> Vec<u8> {
    let length = |with: usize| u16::try_from(bytes + with).expect("fits").to_be_bytes();
    let mut frame = vec![0; VIRTIO_HEADER_BYTES];
    frame.extend([
        0x45,
        0,
        length(28)[0],
        length(28)[1],
        0,
        0,
        0x40,
        0,
        64,
        17,
        0,
        0,
        10,
        0,
        0,
        1,
        10,
        0,
        0,
        2,
    ]);
    frame.extend([0x10, 0, 0x20, 0, length(8)[0], length(8)[1], 0, 0]);
    let number = u32::try_from(number).expect("few").to_be_bytes();
    let payload = number.iter().cycle().take(12).copied().chain(std::iter::repeat(0)).take(bytes);
    frame.extend(payload);
    frame
}

fn read(frame: &[u8], at_ns: u64) -> Option<Copy> {
    let payload = frame.get(VIRTIO_HEADER_BYTES + HEADER_BYTES..)?;
    let word =
        |index: usize| Some(u32::from_be_bytes(payload.get(index * 4..index * 4 + 4)?.try_into().ok()?));
    let (one, two, three) = (word(0)?, word(1)?, word(2)?);
    let number = if one == two || one == three { one } else { two };
    let is_whole = one == two && two == three && payload[12..].iter().all(|byte| *byte == 0);
    Some((number as usize, at_ns, !is_whole))
}

/// What a receipt says of a fault that asks for `wanted`, when the network does `imposed`.
fn receipt(wanted: &Conditions, imposed: &Conditions, seed: u64) -> (Verdict, Observations) {
    receipt_in(&site(), (wanted, World::new(imposed, seed, 0.1)), false)
}

/// The same on a site; or, when it has healed, what it says of the network as it was before.
fn receipt_in(
    site: &fabric::Policy,
    (wanted, world): (&Conditions, World),
    is_healing: bool,
) -> (Verdict, Observations) {
    let world = RefCell::new(world);
    let (with, before) =
        (RequestedNetwork::new(site.clone(), [rule(wanted)]), RequestedNetwork::new(site.clone(), []));
    let (now, otherwise) = if is_healing { (before, with) } else { (with, before) };
    let foreseen = |asked: &RequestedNetwork| {
        let (from, to) = (place("a"), place("b"));
        Foreseen::of(&asked.treatment(&from, &to), asked.sending(&from, &to, PAYLOAD_BYTES + HEADER_BYTES))
    };
    let properties = properties(wanted);
    let mut seen = Observations::new();
    if !properties.is_empty() {
        let (expected, otherwise) = (foreseen(&now), foreseen(&otherwise));
        let shown = Wanted { properties, expected, otherwise: Some(otherwise) };
        let needed = shown.expected.needed(&shown.properties).max(otherwise.needed(&shown.properties));
        let probes = world.borrow_mut().probes(needed);
        seen.extend(shown.judge(&probes, None, (SHARE_MIN, "there")));
    }
    let ways = (&place("a")[..], &place("b")[..]);
    let delays = foreseen(&now).delays;
    for look in looks::between(ways, (0, 1), wanted, (&now, &otherwise), delays, is_healing) {
        seen.extend(look.judge(HEADER_BYTES, "there", &|plan| Ok(world.borrow_mut().stream(plan))));
    }
    (seen.iter().fold(Verdict::Pass, |verdict, (part, _)| verdict.and(*part)), seen)
}

#[test]
fn every_condition_and_every_two_are_shown_and_none_that_is_not_imposed_passes() {
    let mut honest = 0;
    for (number, one) in NAMES.iter().enumerate() {
        for other in &NAMES[number..] {
            for seed in 0..3 {
                let wanted = all(&[one, other]);
                let (verdict, seen) = receipt(&wanted, &wanted, seed);
                assert_eq!(verdict, Verdict::Pass, "{one} and {other}, seed {seed}: {seen:#?}");
                honest += 1;
                for lie in if one == other { vec![one] } else { vec![one, other] } {
                    let kept: Vec<&str> = [*one, *other].into_iter().filter(|name| name != lie).collect();
                    let (verdict, seen) = receipt(&wanted, &all(&kept), seed);
                    assert_ne!(
                        verdict,
                        Verdict::Pass,
                        "{one} and {other} without {lie}, seed {seed}: {seen:#?}"
                    );
                }
            }
        }
    }
    assert_eq!(honest, 45 * 3);
}

#[test]
fn a_share_of_which_the_fabric_counted_none_is_found_out_whatever_the_datagrams_show() {
    let none = PairCounters { packets: 10_000, ..PairCounters::default() };
    let counted = [
        ("loss", PairCounters { lost_packets: 1_000, ..none }),
        ("duplicate", PairCounters { duplicated_packets: 1_000, ..none }),
        ("reorder", PairCounters { overtaking_packets: 2_000, ..none }),
        ("corrupt", PairCounters { corrupted_packets: 1_000, ..none }),
    ];
    let (from, to) = (place("a"), place("b"));
    let foreseen = |asked: &RequestedNetwork| {
        Foreseen::of(&asked.treatment(&from, &to), asked.sending(&from, &to, PAYLOAD_BYTES + HEADER_BYTES))
    };
    for (name, as_asked) in counted {
        let asked = all(&[name]);
        let expected = foreseen(&RequestedNetwork::new(site(), [rule(&asked)]));
        let otherwise = foreseen(&RequestedNetwork::new(site(), []));
        let wanted = Wanted { properties: properties(&asked), expected, otherwise: Some(otherwise) };
        let needed = expected.needed(&wanted.properties);
        let honest = World::new(&asked, 1, 0.1).probes(needed);
        let judged = |pair: PairCounters| {
            let seen = wanted.judge(&honest, Some(pair), (SHARE_MIN, "there"));
            let told: Vec<String> = seen.iter().map(|(_, told)| told.clone()).collect();
            (seen.iter().fold(Verdict::Pass, |verdict, (part, _)| verdict.and(*part)), told.join("; "))
        };
        let (verdict, told) = judged(none);
        assert!(verdict == Verdict::Fail && told.contains("the fabric counted: 0 of"), "{name}: {told}");
        let (verdict, told) = judged(as_asked);
        assert!(verdict == Verdict::Pass && told.contains("the fabric counted: "), "{name}: {told}");
    }
}

#[test]
fn a_share_is_not_shown_by_fewer_than_five_hundred_datagrams() {
    let asked = Conditions { loss: Some(0.5), ..Conditions::default() };
    let (from, to) = (place("a"), place("b"));
    let foreseen = |asked: &RequestedNetwork| {
        Foreseen::of(&asked.treatment(&from, &to), asked.sending(&from, &to, PAYLOAD_BYTES + HEADER_BYTES))
    };
    let expected = foreseen(&RequestedNetwork::new(site(), [rule(&asked)]));
    let otherwise = foreseen(&RequestedNetwork::new(site(), []));
    let wanted = Wanted { properties: properties(&asked), expected, otherwise: Some(otherwise) };
    for (sent, verdict) in [(SHARE_MIN - 1, Verdict::Unknown), (SHARE_MIN, Verdict::Pass)] {
        let probes = World::new(&asked, 1, 0.1).probes(sent);
        let seen = wanted.judge(&probes, None, (SHARE_MIN, "there"));
        assert_eq!(seen[0].0, verdict, "{sent}: {seen:?}");
    }
}

#[test]
fn nine_tenths_of_a_delay_pass_beside_nothing() {
    for other in NAMES {
        for seed in 0..3 {
            let wanted = all(&["delay", other]);
            let short = Conditions { delay: Some(Duration::from_millis(45)), ..wanted.clone() };
            let (verdict, seen) = receipt(&wanted, &short, seed);
            assert_ne!(verdict, Verdict::Pass, "beside {other}: {seen:#?}");
        }
    }
}

#[test]
fn a_fault_that_changes_nothing_is_not_shown() {
    let same = Conditions { delay: Some(Duration::from_millis(20)), ..Conditions::default() };
    let (verdict, seen) = receipt(&same, &same, 1);
    assert_eq!(verdict, Verdict::Unknown, "{seen:#?}");
}

#[test]
fn a_cut_that_lets_one_packet_of_fifty_through_is_found_out_and_a_whole_one_is_shown() {
    use fabric::Block::{BlackHole, Reset};
    for seed in 0..20 {
        let leaky = Conditions { loss: Some(0.98), ..Conditions::default() };
        let cut = Conditions { loss: Some(1.0), ..Conditions::default() };
        let verdict = |imposed: &Conditions, refusals, answer| {
            let probes = World::new(imposed, seed, 0.1).probes(500);
            let seen = judge_cut(&probes, refusals, None, answer, (500, "there"));
            seen.iter().fold(Verdict::Pass, |verdict, (part, _)| verdict.and(*part))
        };
        assert_eq!(verdict(&leaky, 0, BlackHole), Verdict::Fail);
        assert_eq!(verdict(&cut, 0, BlackHole), Verdict::Pass);
        assert_eq!(verdict(&cut, 500, Reset), Verdict::Pass);
        // Silence where a reset was asked for, and the other way round.
        assert_eq!(verdict(&cut, 0, Reset), Verdict::Fail);
        assert_eq!(verdict(&cut, 500, BlackHole), Verdict::Fail);
    }
    // What a cut that flaps shows by its few datagrams stands in the sentence.
    let in_turns = World::new(&Conditions { loss: Some(1.0), ..Conditions::default() }, 1, 0.0).probes(200);
    let (verdict, told) = judge_cut(&in_turns, 0, None, BlackHole, (200, "there")).remove(0);
    assert!(
        verdict == Verdict::Pass && told.contains("0 of 200 datagrams there arrived (0.0 to 11.1 %)"),
        "{told}"
    );
    let few = World::new(&all(&[]), 1, 0.0).probes(0);
    assert_eq!(judge_cut(&few, 0, None, BlackHole, (500, "there"))[0].0, Verdict::Unknown);
    let counted = PairCounters { packets: 100, blocked_packets: 99, ..PairCounters::default() };
    let seen = judge_cut(&few, 0, Some(counted), BlackHole, (0, "there"));
    let leak = "1 of 100 packets there were let through, although the fault blocks this direction";
    assert!(seen[1].0 == Verdict::Fail && seen[1].1.contains(leak), "{seen:?}");
}
