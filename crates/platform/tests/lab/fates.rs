//! What the fabric does to packets, seen from inside: as many are lost as was asked, as late as was asked, and a path that
//! carries only small packets is found out. Nothing here depends on how fast the machine is.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use fabric::{Distribution, Fabric, Jitter, Probability, Rule};
use nix::sys::socket::{setsockopt, sockopt};

use crate::contract::{keep_whole, let_fragment};
use crate::joined::{By, End, joined, outward};
use crate::test_lab::TestLab;

/// Packets looked at for each probability.
const PACKETS: u64 = 100_000;
/// Standard deviations that chance may be off: once in three million.
const DEVIATIONS: f64 = 5.0;
/// Long enough for any machine; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether so many of so many can be by chance.
fn is_likely(happened: u64, of: u64, probability: f64) -> bool {
    let deviation = (of as f64 * probability * (1.0 - probability)).sqrt();
    (happened as f64 - of as f64 * probability).abs() <= DEVIATIONS * deviation
}

fn sockets(client: &End, server: &End) -> (UdpSocket, UdpSocket) {
    let bind = |end: &End| {
        let socket = end.inside(|| UdpSocket::bind((end.addresses[0], 0)).expect("a socket"));
        socket.set_nonblocking(true).expect("non-blocking");
        socket
    };
    let (sender, receiver) = (bind(client), bind(server));
    sender.connect(receiver.local_addr().expect("its address")).expect("a target");
    (sender, receiver)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// Sends so many packets of 1000 bytes, so many with each system call, each with the number of its call. How many of
/// each call arrived; and the fabric's own count of those lost and of the frames they came in.
fn survivors(test_lab: &TestLab, packets_a_call: u64, loss: f64) -> (Vec<u64>, u64, u64) {
    const PACKET_BYTES: u64 = 1000;
    let [client, server] = joined(test_lab, By::Fabric);
    let (sender, receiver) = sockets(&client, &server);
    setsockopt(&sender, sockopt::UdpGsoSegment, &(PACKET_BYTES as i32)).expect("segmentation by the kernel");
    let _loss = test_lab
        .fabric
        .impose(outward(Rule { loss: Probability::new(loss), ..Rule::default() }))
        .expect("imposed");
    let before = test_lab.fabric.counters().expect("counters");
    let calls = PACKETS / packets_a_call;
    let mut arrived = vec![0; calls as usize];
    let mut buffer = [0; 2000];
    for call in 0..calls {
        let one = [&call.to_ne_bytes()[..], &[0; PACKET_BYTES as usize - 8]].concat();
        sender.send(&one.repeat(packets_a_call as usize)).expect("sent");
        // So few at a time that no buffer overflows: what is missing afterwards is the fabric's doing.
        let wanted = before.ended_packets() + (call + 1) * packets_a_call;
        if ((call + 1) * packets_a_call).is_multiple_of(60) || call + 1 == calls {
            let ended = || test_lab.fabric.counters().expect("counters").ended_packets() >= wanted;
            wait_until("some packets are neither delivered nor lost", ended);
            while let Ok(length) = receiver.recv(&mut buffer) {
                assert_eq!(length as u64, PACKET_BYTES, "a packet of another size");
                let call = u64::from_ne_bytes(buffer[..8].try_into().expect("eight bytes"));
                arrived[call as usize] += 1;
            }
        }
    }
    let after = test_lab.fabric.counters().expect("counters");
    (arrived, after.lost_packets - before.lost_packets, after.frames - before.frames)
}

pub fn single_packets_are_lost_as_asked(test_lab: &TestLab) {
    for loss in [0.01, 0.1] {
        let (arrived, lost, _) = survivors(test_lab, 1, loss);
        let missing = PACKETS - arrived.iter().sum::<u64>();
        assert!(is_likely(missing, PACKETS, loss), "{missing} of {PACKETS} at {loss}");
        assert_eq!(missing, lost, "lost that nobody asked to be lost");
    }
}

/// Sixty packets come in one frame. Lost by frame instead of by packet, as many would be lost, but all of a frame or none.
pub fn segmented_packets_are_lost_each_for_itself(test_lab: &TestLab) {
    const PACKETS_A_CALL: u64 = 60;
    for loss in [0.01f64, 0.1] {
        let (arrived, lost, frames) = survivors(test_lab, PACKETS_A_CALL, loss);
        let calls = arrived.len() as u64;
        if frames > calls * 30 {
            // Before Linux 6.2 a TUN interface took no segmented UDP.
            println!("skipped: segmented_packets: this kernel splits datagrams before the fabric sees them");
            return;
        }
        let packets = calls * PACKETS_A_CALL;
        let missing = packets - arrived.iter().sum::<u64>();
        assert!(is_likely(missing, packets, loss), "{missing} of {packets} at {loss}");
        assert_eq!(missing, lost, "lost that nobody asked to be lost");
        let untouched = arrived.iter().filter(|arrived| **arrived == PACKETS_A_CALL).count() as u64;
        let chance = (1.0 - loss).powi(PACKETS_A_CALL as i32);
        assert!(
            is_likely(untouched, calls, chance),
            "{untouched} of {calls} frames whole, by chance {chance}"
        );
        assert!(
            !is_likely((calls as f64 * (1.0 - loss)) as u64, calls, chance),
            "loss by frame would be noticed"
        );
    }
}

/// A TCP stream is segmented as well; its packets are counted before and behind the loss.
pub fn a_streams_packets_are_lost_as_asked(test_lab: &TestLab) {
    const BYTES: usize = 60_000_000;
    let loss = 0.01;
    let [client, server] = joined(test_lab, By::Fabric);
    let edge = fabric::SharedLink {
        name: "edge".to_owned(),
        span: fabric::Span::OutOf(vec!["h1".to_owned()]),
        rate_bits_per_s: None,
        queue_limit: None,
        is_network_card: false,
    };
    let rule = outward(Rule { loss: Probability::new(loss), ..Rule::default() });
    let policy = fabric::Policy { rules: vec![rule], links: vec![edge] };
    test_lab.fabric.set_policy(policy).expect("a policy");
    let sent: Vec<u8> = (0..BYTES).map(|number| (number * 7 % 251) as u8).collect();
    let received = stream(&client, &server, server.addresses[0], &sent);
    assert!(received == sent, "what arrived is not what was sent");
    let counters = test_lab.fabric.counters().expect("counters");
    let survived = test_lab.fabric.link_counters().expect("counters")["edge"].taken_packets;
    let lost = counters.lost_packets;
    assert!(counters.frames < counters.packets / 2, "nothing was segmented: {counters:?}");
    assert!(lost + survived > 40_000, "{counters:?}");
    assert!(is_likely(lost, lost + survived, loss), "{lost} lost, {survived} survived");
}

/// Sends `bytes` over TCP, one way; what arrived.
fn stream(client: &End, server: &End, address: IpAddr, bytes: &[u8]) -> Vec<u8> {
    let listener = server.inside(|| TcpListener::bind((address, 0)).expect("a listener"));
    let target = listener.local_addr().expect("its address");
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut received = Vec::new();
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
            stream.read_to_end(&mut received).expect("bytes");
            received
        });
        client.inside(|| {
            TcpStream::connect(target).expect("a connection").write_all(bytes).expect("all sent");
        });
        receiver.join().expect("the receiver")
    })
}

/// Standard deviation of a uniform distribution with half-width 1.
const UNIFORM_DEVIATION: f64 = 0.577;

fn uniform(x: f64) -> f64 {
    ((x + 1.0) / 2.0).clamp(0.0, 1.0)
}

fn exponential(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { 1.0 - (-x).exp() }
}

/// By the logistic approximation, good to a hundredth: nothing finer is asked for here.
fn normal(x: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * x).exp())
}

/// Kolmogorov's distance between what was drawn and a distribution.
fn distance(sorted: &[f64], distribution: impl Fn(f64) -> f64) -> f64 {
    let count = sorted.len() as f64;
    let distances = sorted.iter().enumerate().map(|(index, value)| {
        let expected = distribution(*value);
        (expected - index as f64 / count).abs().max((expected - (index + 1) as f64 / count).abs())
    });
    distances.fold(0.0, f64::max)
}

/// So wide a spread that a busy machine's lateness is small beside it: only another shape is beyond the tolerance.
pub fn delays_follow_the_distribution_asked_for(test_lab: &TestLab) {
    const DELAY: Duration = Duration::from_millis(400);
    const SPREAD: Duration = Duration::from_millis(100);
    const TOLERANCE: f64 = 0.08;
    let [client, server] = joined(test_lab, By::Fabric);
    type Shape = (Distribution, fn(f64) -> f64);
    let shapes: [Shape; 3] = [
        (Distribution::Uniform, uniform),
        (Distribution::Normal, normal),
        (Distribution::Exponential, exponential),
    ];
    for (distribution, asked) in shapes {
        let rule = Rule {
            delay: Some(DELAY),
            jitter: Some(Jitter { spread: SPREAD, distribution }),
            ..Rule::default()
        };
        let _imposed = test_lab.fabric.impose(outward(rule)).expect("imposed");
        let mut factors: Vec<f64> = delays(&client, &server)
            .into_iter()
            .map(|delay| (delay - DELAY.as_secs_f64()) / SPREAD.as_secs_f64())
            .collect();
        factors.sort_by(f64::total_cmp);
        let found = distance(&factors, asked);
        assert!(found < TOLERANCE, "{distribution:?}: {found}");
        // The same delays are none of the others, so the test can tell.
        for (other, shape) in shapes.iter().filter(|(other, _)| *other != distribution) {
            let apart = distance(&factors, shape);
            assert!(apart > 1.2 * TOLERANCE, "{distribution:?} passes for {other:?}: {apart}");
        }
        let narrower = distance(&factors, |x| asked(x / UNIFORM_DEVIATION));
        assert!(narrower > 1.2 * TOLERANCE, "{distribution:?} passes for a narrower one: {narrower}");
    }
}

/// Seconds that datagrams took, each by the stamp it carries.
fn delays(client: &End, server: &End) -> Vec<f64> {
    const DATAGRAMS: usize = 3000;
    let (sender, receiver) = sockets(client, server);
    receiver.set_nonblocking(false).expect("blocking");
    receiver.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let began = Instant::now();
    std::thread::scope(|scope| {
        let arrivals = scope.spawn(|| {
            let mut buffer = [0; 16];
            (0..DATAGRAMS)
                .map(|_| {
                    assert_eq!(receiver.recv(&mut buffer).expect("a datagram"), 8);
                    let sent_ns = u64::from_ne_bytes(buffer[..8].try_into().expect("eight bytes"));
                    began.elapsed().as_secs_f64() - sent_ns as f64 / 1e9
                })
                .collect()
        });
        for _ in 0..DATAGRAMS {
            std::thread::sleep(Duration::from_micros(300));
            sender.send(&(began.elapsed().as_nanos() as u64).to_ne_bytes()).expect("sent");
        }
        arrivals.join().expect("the receiver")
    })
}

/// The interface says 1500 bytes, the path says 1300: streams find that out, and so do those whose packets must stay whole.
pub fn a_path_of_small_packets_is_found_out(test_lab: &TestLab) {
    const PATH_BYTES: u32 = 1300;
    let [client, server] = joined(test_lab, By::Fabric);
    let rule = Rule { mtu_bytes: Some(PATH_BYTES), ..Rule::default() };
    let _small = test_lab.fabric.impose(rule).expect("imposed");
    let sent: Vec<u8> = (0..3_000_000).map(|number: u32| (number * 7 % 251) as u8).collect();
    for ((from, to), header_bytes) in client.addresses.into_iter().zip(server.addresses).zip([28usize, 48]) {
        let sender = client.inside(|| UdpSocket::bind((from, 0)).expect("a socket"));
        let receiver = server.inside(|| UdpSocket::bind((to, 0)).expect("a socket"));
        receiver.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        sender.connect(receiver.local_addr().expect("its address")).expect("a target");
        if to.is_ipv6() {
            // Only its sender may fragment an IPv6 packet, and must have been told before.
            assert!(stream(&client, &server, to, &sent) == sent, "{to}: what arrived is not what was sent");
        } else {
            let_fragment(&sender);
        }
        sender.send(&sent[..1400]).expect("sent");
        let mut buffer = [0; 2000];
        assert_eq!(receiver.recv(&mut buffer).expect("a datagram"), 1400, "{to}");
        assert_eq!(buffer[..1400], sent[..1400], "{to}");
        assert!(stream(&client, &server, to, &sent) == sent, "{to}: what arrived is not what was sent");
        keep_whole(&sender);
        let fits = PATH_BYTES as usize - header_bytes;
        wait_until(
            "what is too large is never refused",
            || matches!(sender.send(&sent[..=fits]), Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE)),
        );
        sender.send(&sent[..fits]).expect("what fits is taken");
        assert_eq!(receiver.recv(&mut buffer).expect("a datagram"), fits, "{to}");
    }
    assert_too_big_was_counted(&test_lab.fabric);
}

fn assert_too_big_was_counted(fabric: &Fabric) {
    let counters = fabric.counters().expect("counters");
    assert!(counters.too_big_packets > 0 && counters.fragment_packets > 0, "{counters:?}");
}

/// Every host sends to every other: each packet arrives.
pub fn two_hundred_hosts_lose_nothing(test_lab: &TestLab) {
    const HOSTS: u8 = 200;
    const PACKETS_A_PAIR: usize = 3;
    let places: Vec<_> =
        (1..=HOSTS).map(|number| test_lab.place(&format!("r{}/h{number}", number % 7), number)).collect();
    let sockets: Vec<UdpSocket> = places
        .iter()
        .map(|place| {
            let bind = || UdpSocket::bind((place.attachment.addresses.ipv4(), 7)).expect("a socket");
            let socket = crate::test_lab::at(place, bind);
            socket.set_nonblocking(true).expect("non-blocking");
            socket
        })
        .collect();
    let mut buffer = [0; 64];
    for round in 1..places.len() {
        for (from, socket) in sockets.iter().enumerate() {
            let to = places[(from + round) % places.len()].attachment.addresses.ipv4();
            for _ in 0..PACKETS_A_PAIR {
                socket.send_to(&[from as u8], (to, 7)).expect("sent");
            }
        }
        let mut arrived = vec![0; places.len()];
        wait_until(&format!("round {round}: some packets stay away"), || {
            for (to, socket) in sockets.iter().enumerate() {
                loop {
                    match socket.recv(&mut buffer) {
                        Ok(_) => {
                            let from = (to + places.len() - round) % places.len();
                            assert_eq!(usize::from(buffer[0]), from, "a packet came to the wrong host");
                            arrived[to] += 1;
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            arrived.iter().all(|arrived| *arrived == PACKETS_A_PAIR)
        });
    }
    let counters = test_lab.fabric.counters().expect("counters");
    let sent = places.len() * (places.len() - 1) * PACKETS_A_PAIR;
    assert_eq!(counters.delivered_packets, sent as u64, "{counters:?}");
    assert_eq!(counters.packets, sent as u64, "{counters:?}");
}
